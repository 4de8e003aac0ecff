#include <dflow/ops/expr.ipp>
