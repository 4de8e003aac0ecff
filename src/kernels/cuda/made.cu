#include <dflow/kernels/cuda/array/made_bodies.hpp>
#include <dflow/kernels/cuda/capture/bodies.hpp>
#include <dflow/kernels/cuda/grid/instantiate.hpp>

DFLOW_INSTANTIATE_BODIES(dflow::cuda::MadeBodies);
DFLOW_INSTANTIATE_BODIES(dflow::cuda::CaptureBodies);
