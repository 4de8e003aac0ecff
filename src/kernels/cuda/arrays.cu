#include <dflow/kernels/cuda/array/list_bodies.hpp>
#include <dflow/kernels/cuda/grid/instantiate.hpp>

DFLOW_INSTANTIATE_BODIES(dflow::concat_t<dflow::cuda::ArrayBodies, dflow::cuda::ListBodies>);
