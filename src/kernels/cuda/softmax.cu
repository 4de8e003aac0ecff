#include <dflow/kernels/cuda/bodies/softmax.hpp>
#include <dflow/kernels/cuda/grid/instantiate.hpp>

DFLOW_INSTANTIATE_BODIES(dflow::cuda::SoftmaxBodies);
