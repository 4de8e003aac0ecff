#include <dflow/kernels/cpu/linalg/svd.hpp>

namespace dflow {

template struct Kernel<Svd, Cpu, double>;

}  // namespace dflow
