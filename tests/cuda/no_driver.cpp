// Replaces the library's door to CUDA; the tests are linked without that door.

#include <dflow/kernels/cuda/driver/driver.hpp>

namespace dflow::cuda {

std::shared_ptr<Driver> cuda_driver() {
  throw_error(Status::failed_precondition("this program is linked without CUDA"));
}

}  // namespace dflow::cuda
