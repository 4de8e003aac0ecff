#pragma once

#include <dflow/kernels/cuda/driver/error_code.hpp>
#include <dflow/kernels/cuda/grid/kernel_function.hpp>

#include <cstdint>
#include <string>

namespace dflow::cuda {

/// Code that was loaded to a device; 0 is none.
enum class ProgramHandle : std::uintptr_t { none = 0 };

/// The functions that dflow uses of NVRTC, and of CUDA's runtime for code made at run time, as a thin table:
/// `nvrtc_programs()` calls them, and the tests have a table that compiles for the host.
///
/// Functions return at once with an error code, `compile` after some tens of milliseconds, and do not throw.
///
/// Thread safety: all functions may be called from any thread.
class Programs {
 public:
  Programs() = default;
  Programs(const Programs&) = delete;
  Programs& operator=(const Programs&) = delete;
  virtual ~Programs() = default;

  /// Compiles CUDA C++ for a compute capability (90 is 9.0); no GPU of that capability need be present. not_supported
  /// if the text is refused, or NVRTC cannot be loaded: `log` says why.
  virtual ErrorCode compile(const std::string& text, int capability, std::string& image, std::string& log) noexcept = 0;
  virtual ErrorCode load(int device, const std::string& image, ProgramHandle& program) noexcept = 0;
  /// The kernel of that name, which a driver launches; it is valid as long as the program is loaded. It has its
  /// address alone.
  virtual ErrorCode find_kernel(int device, ProgramHandle program, const char* name,
                                KernelFunction& function) noexcept = 0;
  /// Nothing that was launched of it runs any more.
  virtual ErrorCode unload(int device, ProgramHandle program) noexcept = 0;
};

}  // namespace dflow::cuda
