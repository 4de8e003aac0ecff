#include <dflow/kernels/cuda/bodies/joint_updates.hpp>
#include <dflow/kernels/cuda/grid/instantiate.hpp>

DFLOW_INSTANTIATE_BODIES(dflow::cuda::JointUpdateBodies);
