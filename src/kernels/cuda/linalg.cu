#include <dflow/kernels/cuda/grid/instantiate.hpp>
#include <dflow/kernels/cuda/linalg/bodies.hpp>

DFLOW_INSTANTIATE_BODIES(dflow::cuda::LinalgBodies);
