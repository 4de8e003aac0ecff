#include <dflow/kernels/cuda/bodies/indices.hpp>
#include <dflow/kernels/cuda/grid/instantiate.hpp>

DFLOW_INSTANTIATE_BODIES(dflow::cuda::CastBodies);
