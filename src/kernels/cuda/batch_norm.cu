#include <dflow/kernels/cuda/grid/instantiate.hpp>
#include <dflow/kernels/cuda/nn/batch_norm_bodies.hpp>

DFLOW_INSTANTIATE_BODIES(dflow::cuda::BatchNormBodies);
