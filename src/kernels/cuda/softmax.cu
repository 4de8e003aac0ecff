#include <dflow/kernels/cuda/grid/instantiate.hpp>
#include <dflow/kernels/cuda/nn/softmax_bodies.hpp>

DFLOW_INSTANTIATE_BODIES(dflow::cuda::SoftmaxBodies);
