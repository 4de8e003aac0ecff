#include <dflow/kernels/cpu/linalg/qr.hpp>

namespace dflow {

template struct Kernel<Qr, Cpu, double>;

}  // namespace dflow
