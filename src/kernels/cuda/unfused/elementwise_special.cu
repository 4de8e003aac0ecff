#include <dflow/kernels/cuda/bodies/elementwise.hpp>
#include <dflow/kernels/cuda/grid/instantiate.hpp>
#include <dflow/ops/math/special.hpp>

DFLOW_INSTANTIATE_BODIES(dflow::cuda::ElementwiseBodies<dflow::SpecialOps>);
