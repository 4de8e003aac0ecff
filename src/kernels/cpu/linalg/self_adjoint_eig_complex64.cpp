#include <dflow/kernels/cpu/linalg/self_adjoint_eig.hpp>

namespace dflow {

template struct Kernel<SelfAdjointEig, Cpu, std::complex<float>>;

}  // namespace dflow
