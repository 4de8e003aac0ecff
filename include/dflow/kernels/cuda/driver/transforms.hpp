#pragma once

#include <dflow/core/dtype.hpp>
#include <dflow/kernels/cuda/driver/error_code.hpp>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>

namespace dflow::cuda {

struct MemoryUse;
enum class StreamHandle : std::uintptr_t;

enum class TransformKind : std::uint8_t {
  forward,       ///< complex lines of `length` to complex lines, which may be the same
  backward,      ///< the same with the other sign
  real_forward,  ///< real lines of `length` to the first length / 2 + 1 coefficients
  real_backward  ///< these coefficients, which are used up, to real lines; the first and a middle one are real
};

/// The discrete Fourier transforms of `batch` lines that lie one behind the other, unscaled.
struct TransformCall {
  TransformKind kind = TransformKind::forward;
  DType dtype = DType::invalid;  ///< of the coefficients: complex64 or complex128
  std::int64_t length = 0;
  std::int64_t batch = 0;

  friend auto operator<=>(const TransformCall&, const TransformCall&) = default;
};

/// The functions of cuFFT that dflow uses, as a thin table: `cufft_transforms()` calls cuFFT, and the tests have a
/// table that computes the call on the host.
///
/// Functions return at once with an error code, and do not throw.
///
/// Thread safety: all functions may be called from any thread.
class Transforms {
 public:
  Transforms() = default;
  Transforms(const Transforms&) = delete;
  Transforms& operator=(const Transforms&) = delete;
  virtual ~Transforms() = default;

  /// How much memory, aligned to 256, the call takes beside its operands.
  virtual ErrorCode transform_workspace(int device, const TransformCall& call, std::size_t& bytes) noexcept = 0;
  virtual ErrorCode run_transform(int device, const TransformCall& call, void* from, void* to, void* workspace,
                                  std::size_t workspace_bytes, std::span<const MemoryUse> uses,
                                  StreamHandle stream) noexcept = 0;
};

}  // namespace dflow::cuda
