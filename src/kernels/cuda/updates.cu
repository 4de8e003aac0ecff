#include <dflow/kernels/cuda/grid/instantiate.hpp>
#include <dflow/kernels/cuda/state/bodies.hpp>

DFLOW_INSTANTIATE_BODIES(dflow::cuda::UpdateBodies);
