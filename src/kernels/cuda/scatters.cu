#include <dflow/kernels/cuda/grid/instantiate.hpp>
#include <dflow/kernels/cuda/rows/bodies.hpp>

DFLOW_INSTANTIATE_BODIES(dflow::cuda::ScatterBodies);
