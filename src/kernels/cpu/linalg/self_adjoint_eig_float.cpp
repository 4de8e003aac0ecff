#include <dflow/kernels/cpu/linalg/self_adjoint_eig.hpp>

namespace dflow {

template struct Kernel<SelfAdjointEig, Cpu, float>;

}  // namespace dflow
