#include <dflow/ops/array/constant.ipp>
#include <dflow/ops/array/like.ipp>
#include <dflow/ops/array/shape.ipp>
