#include <dflow/ops/math/matmul.ipp>
#include <dflow/ops/math/segment.ipp>
