#include <dflow/kernels/cuda/grid/instantiate.hpp>
#include <dflow/kernels/cuda/random/bodies.hpp>

DFLOW_INSTANTIATE_BODIES(dflow::cuda::RandomBodies);
