#include <dflow/kernels/cuda/grid/instantiate.hpp>
#include <dflow/kernels/cuda/linalg/fourier_bodies.hpp>

DFLOW_INSTANTIATE_BODIES(dflow::cuda::FourierBodies);
