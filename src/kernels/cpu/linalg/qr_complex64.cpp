#include <dflow/kernels/cpu/linalg/qr.hpp>

namespace dflow {

template struct Kernel<Qr, Cpu, std::complex<float>>;

}  // namespace dflow
