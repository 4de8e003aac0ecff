#include <dflow/ops/standard_ops.ipp>
