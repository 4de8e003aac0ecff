#include <dflow/kernels/cuda/bodies/prod_gradients.hpp>
#include <dflow/kernels/cuda/grid/instantiate.hpp>

DFLOW_INSTANTIATE_BODIES(dflow::cuda::OthersBodies);
