#include <dflow/ops/math/add_n.ipp>
#include <dflow/ops/math/batch_matmul.ipp>
#include <dflow/ops/math/prod_gradient.ipp>
#include <dflow/ops/math/reduce.ipp>
