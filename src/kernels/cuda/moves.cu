#include <dflow/kernels/cuda/bodies/moves.hpp>
#include <dflow/kernels/cuda/grid/instantiate.hpp>

DFLOW_INSTANTIATE_BODIES(dflow::cuda::MoveBodies);
