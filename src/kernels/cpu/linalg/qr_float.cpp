#include <dflow/kernels/cpu/linalg/qr.hpp>

namespace dflow {

template struct Kernel<Qr, Cpu, float>;

}  // namespace dflow
