#include <dflow/kernels/cuda/grid/instantiate.hpp>
#include <dflow/kernels/cuda/nn/window_bodies.hpp>

DFLOW_INSTANTIATE_BODIES(dflow::cuda::PoolBodies);
