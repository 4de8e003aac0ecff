#include <dflow/kernels/cuda/bodies/random.hpp>
#include <dflow/kernels/cuda/grid/instantiate.hpp>

DFLOW_INSTANTIATE_BODIES(dflow::cuda::RandomBodies);
