#include <dflow/ops/math/matmul.ipp>
