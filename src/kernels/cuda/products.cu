#include <dflow/kernels/cuda/bodies/products.hpp>
#include <dflow/kernels/cuda/grid/instantiate.hpp>

DFLOW_INSTANTIATE_BODIES(dflow::cuda::ProductBodies);
