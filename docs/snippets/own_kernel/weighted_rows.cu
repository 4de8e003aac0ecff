// [unit]
#include "weighted_rows_body.hpp"

#include <dflow/kernels/cuda/grid/instantiate.hpp>

using WeightedRowsBodies = dflow::TypeList<WeightedRowsBody<float>, WeightedRowsBody<double>>;
DFLOW_INSTANTIATE_BODIES(WeightedRowsBodies);
// [unit]
