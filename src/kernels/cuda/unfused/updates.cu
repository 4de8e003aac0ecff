#include <dflow/kernels/cuda/bodies/updates.hpp>
#include <dflow/kernels/cuda/grid/instantiate.hpp>

DFLOW_INSTANTIATE_BODIES(dflow::cuda::UpdateBodies);
