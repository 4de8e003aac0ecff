#include <dflow/kernels/cuda/bodies/batch_norm.hpp>
#include <dflow/kernels/cuda/grid/instantiate.hpp>

DFLOW_INSTANTIATE_BODIES(dflow::cuda::BatchNormBodies);
