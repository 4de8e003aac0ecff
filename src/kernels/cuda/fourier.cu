#include <dflow/kernels/cuda/bodies/fourier.hpp>
#include <dflow/kernels/cuda/grid/instantiate.hpp>

DFLOW_INSTANTIATE_BODIES(dflow::cuda::FourierBodies);
