#include <dflow/kernels/cuda/grid/instantiate.hpp>
#include <dflow/kernels/cuda/rows/move_bodies.hpp>

DFLOW_INSTANTIATE_BODIES(dflow::cuda::MoveBodies);
