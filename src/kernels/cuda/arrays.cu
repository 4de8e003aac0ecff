#include <dflow/kernels/cuda/bodies/lists.hpp>
#include <dflow/kernels/cuda/grid/instantiate.hpp>

DFLOW_INSTANTIATE_BODIES(dflow::concat_t<dflow::cuda::ArrayBodies, dflow::cuda::ListBodies>);
