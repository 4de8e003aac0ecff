#include <dflow/kernels/cuda/bodies/elementwise.hpp>
#include <dflow/kernels/cuda/grid/instantiate.hpp>
#include <dflow/ops/math/unary.hpp>

DFLOW_INSTANTIATE_BODIES(dflow::cuda::ElementwiseBodies<dflow::TrigonometricOps>);
