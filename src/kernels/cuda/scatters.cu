#include <dflow/kernels/cuda/bodies/rows.hpp>
#include <dflow/kernels/cuda/grid/instantiate.hpp>

DFLOW_INSTANTIATE_BODIES(dflow::cuda::ScatterBodies);
