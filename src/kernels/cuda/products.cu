#include <dflow/kernels/cuda/grid/instantiate.hpp>
#include <dflow/kernels/cuda/products/bodies.hpp>

DFLOW_INSTANTIATE_BODIES(dflow::cuda::ProductBodies);
