#include <dflow/kernels/cuda/grid/instantiate.hpp>
#include <dflow/kernels/cuda/reduction/bodies.hpp>

DFLOW_INSTANTIATE_BODIES(dflow::cuda::ExtremeBodies);
