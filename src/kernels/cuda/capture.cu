#include <dflow/kernels/cuda/capture/bodies.hpp>
#include <dflow/kernels/cuda/grid/instantiate.hpp>

DFLOW_INSTANTIATE_BODIES(dflow::cuda::CaptureBodies);
