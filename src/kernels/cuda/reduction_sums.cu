#include <dflow/kernels/cuda/bodies/reductions.hpp>
#include <dflow/kernels/cuda/grid/instantiate.hpp>

DFLOW_INSTANTIATE_BODIES(dflow::cuda::SumBodies);
