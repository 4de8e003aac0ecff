#include <dflow/kernels/cuda/grid/instantiate.hpp>
#include <dflow/kernels/cuda/reduction/prod_gradient_bodies.hpp>

DFLOW_INSTANTIATE_BODIES(dflow::cuda::OthersBodies);
