#include <dflow/ops/reduction/add_n.ipp>
#include <dflow/ops/reduction/prod_gradient.ipp>
#include <dflow/ops/reduction/reduce.ipp>
#include <dflow/ops/reduction/segment.ipp>
