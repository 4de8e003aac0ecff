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
/// How a library will compute a convolution; 0 is none.
enum class ConvolutionPlanHandle : std::uintptr_t { none = 0 };

enum class ConvolutionKind : std::uint8_t {
  forward,         ///< y from x and the filter
  backward_input,  ///< x, as the transpose in it, from y and the filter
  backward_filter  ///< the filter, as the transpose in it, from x and y
};

/// A convolution of images x [batch, in_rows, in_cols, in_channels] with a filter [out_channels, filter_rows,
/// filter_cols, in_channels] to y [batch, out_rows, out_cols, out_channels], all packed in that order: a correlation,
/// as in neural networks. Elements of 16 bits are multiplied and added in float, all others in their own type, or float
/// in TF32. A run gives the same bits as any other one of the plan.
struct ConvolutionCall {
  ConvolutionKind kind = ConvolutionKind::forward;
  DType dtype = DType::invalid;
  bool allows_tf32 = false;
  std::int32_t alignment_bytes = 256;  ///< that all operands have, a power of 2
  std::int64_t batch = 0, in_rows = 0, in_cols = 0, in_channels = 0;
  std::int64_t out_rows = 0, out_cols = 0, out_channels = 0;
  std::int64_t filter_rows = 0, filter_cols = 0;
  std::int64_t stride_rows = 1, stride_cols = 1;
  std::int64_t dilation_rows = 1, dilation_cols = 1;
  std::int64_t pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;

  friend auto operator<=>(const ConvolutionCall&, const ConvolutionCall&) = default;
};

/// Where the operands of a call are, in the memory of its device; it writes the one that its kind makes.
struct ConvolutionOperands {
  void* x = nullptr;
  void* filter = nullptr;
  void* y = nullptr;
  void* workspace = nullptr;
  std::size_t workspace_bytes = 0;
};

/// What dflow asks of cuDNN, as a thin table of functions: one implementation calls it (`cudnn_convolutions()`), that
/// of tests computes the call as it was recorded on the host.
///
/// Functions return at once with an error code, and do not throw.
///
/// Thread safety: all functions may be called from any thread.
class Convolutions {
 public:
  Convolutions() = default;
  Convolutions(const Convolutions&) = delete;
  Convolutions& operator=(const Convolutions&) = delete;
  virtual ~Convolutions() = default;

  /// Chooses how the call is computed with at most so much workspace; `workspace_bytes` is what it takes, aligned to
  /// 256. not_supported where the library has no way to.
  virtual ErrorCode make_convolution_plan(int device, const ConvolutionCall& call, std::size_t max_workspace_bytes,
                                          ConvolutionPlanHandle& plan, std::size_t& workspace_bytes) noexcept = 0;
  /// What was issued by it still runs.
  virtual ErrorCode destroy_convolution_plan(int device, ConvolutionPlanHandle plan) noexcept = 0;
  virtual ErrorCode run_convolution(int device, ConvolutionPlanHandle plan, const ConvolutionOperands& operands,
                                    std::span<const MemoryUse> uses, StreamHandle stream) noexcept = 0;
};

}  // namespace dflow::cuda
