#include <dflow/kernels/cpu/linalg/svd.hpp>

namespace dflow {

template struct Kernel<Svd, Cpu, std::complex<float>>;

}  // namespace dflow
