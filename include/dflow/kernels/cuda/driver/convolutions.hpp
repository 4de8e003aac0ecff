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
/// filter_cols, in_channels] to y [batch, out_rows, out_cols, out_channels]. All are packed in that order. It is a
/// correlation, as in neural networks. Elements of 16 bits are multiplied and added in float, all others in their own
/// type, or float in TF32. A run gives the same bits as any other one of the plan.
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

/// The addresses of a call's operands, in the memory of its device; the call writes the operand that its kind makes.
struct ConvolutionOperands {
  void* x = nullptr;
  void* filter = nullptr;
  void* y = nullptr;
  void* workspace = nullptr;
  std::size_t workspace_bytes = 0;
};

/// The functions of cuDNN that dflow uses, as a thin table: `cudnn_convolutions()` calls cuDNN, and the tests have a
/// table that computes the call on the host as it was recorded.
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

  /// Chooses how to compute the call with at most the given workspace; `workspace_bytes` is the size that the plan
  /// takes, aligned to 256. not_supported if the library has no way.
  virtual ErrorCode make_convolution_plan(int device, const ConvolutionCall& call, std::size_t max_workspace_bytes,
                                          ConvolutionPlanHandle& plan, std::size_t& workspace_bytes) noexcept = 0;
  /// Work that the plan has issued still runs.
  virtual ErrorCode destroy_convolution_plan(int device, ConvolutionPlanHandle plan) noexcept = 0;
  virtual ErrorCode run_convolution(int device, ConvolutionPlanHandle plan, const ConvolutionOperands& operands,
                                    std::span<const MemoryUse> uses, StreamHandle stream) noexcept = 0;
};

}  // namespace dflow::cuda
