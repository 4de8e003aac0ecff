#include <dflow/kernels/cuda/grid/instantiate.hpp>
#include <dflow/kernels/cuda/state/joint_bodies.hpp>

DFLOW_INSTANTIATE_BODIES(dflow::cuda::JointUpdateBodies);
