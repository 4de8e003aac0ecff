#include <dflow/kernels/cpu/linalg/svd.hpp>

namespace dflow {

template struct Kernel<Svd, Cpu, float>;

}  // namespace dflow
