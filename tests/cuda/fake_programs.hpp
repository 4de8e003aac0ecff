#pragma once

#include <dflow/kernels/cuda/driver/driver.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace dflow::testing {

class FakeDriver;

/// The NVRTC of a `FakeDriver`: the host's compiler compiles the text. The threads of the grid run one after the other
/// in an order that the launch chooses. A text that was compiled once in this process is kept.
///
/// Thread safety: as Programs.
class FakePrograms final : public cuda::Programs {
 public:
  explicit FakePrograms(FakeDriver& driver) : driver_(driver) {}

  /// Refuses texts from now on with that log; an empty log accepts them again.
  void refuse(std::string log);
  /// Loading code fails from now on with that error; with ok it works again.
  void fail_loads(cuda::ErrorCode code);
  std::vector<std::string> texts() const;  ///< that were compiled, in order
  std::size_t num_alive() const;
  /// Keeps the program of a kernel that is launched; null, and an error, if that program was unloaded.
  std::shared_ptr<const void> use_of(const cuda::KernelFunction& function) const;

  cuda::ErrorCode compile(const std::string& text, int capability, std::string& image,
                          std::string& log) noexcept override;
  cuda::ErrorCode load(int device, const std::string& image, cuda::ProgramHandle& program) noexcept override;
  cuda::ErrorCode find_kernel(int device, cuda::ProgramHandle program, const char* name,
                              cuda::KernelFunction& function) noexcept override;
  cuda::ErrorCode unload(int device, cuda::ProgramHandle program) noexcept override;

 private:
  struct Loaded {
    int device = 0;
    void* library = nullptr;
    std::shared_ptr<const void> use;
  };

  FakeDriver& driver_;
  mutable std::mutex mutex_;
  std::uintptr_t next_handle_ = 1;
  std::map<std::uintptr_t, Loaded> loaded_;
  std::vector<std::string> texts_;
  std::string refusal_;
  cuda::ErrorCode load_code_ = cuda::ErrorCode::ok;
};

/// Compiles CUDA C++ of kernels for the host into a library and returns its path, which is empty if the compiler
/// refuses the text. Each kernel `k` has a function `emulate_k`, as `KernelFunction::emulate`.
std::string compile_for_host(const std::string& text);

}  // namespace dflow::testing
