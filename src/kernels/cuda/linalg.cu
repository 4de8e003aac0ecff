#include <dflow/kernels/cuda/bodies/linalg.hpp>
#include <dflow/kernels/cuda/grid/instantiate.hpp>

DFLOW_INSTANTIATE_BODIES(dflow::cuda::LinalgBodies);
