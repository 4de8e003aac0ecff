#include <dflow/kernels/cuda/bodies/capture.hpp>
#include <dflow/kernels/cuda/bodies/made.hpp>
#include <dflow/kernels/cuda/grid/instantiate.hpp>

DFLOW_INSTANTIATE_BODIES(dflow::cuda::MadeBodies);
DFLOW_INSTANTIATE_BODIES(dflow::cuda::CaptureBodies);
