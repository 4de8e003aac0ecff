#include <dflow/kernels/cuda/bodies/windows.hpp>
#include <dflow/kernels/cuda/grid/instantiate.hpp>

DFLOW_INSTANTIATE_BODIES(dflow::cuda::PoolBodies);
