#include "cuda/recorded_convolution.hpp"

#include <dflow/base/str_cat.hpp>
#include <dflow/core/bfloat16.hpp>
#include <dflow/core/half.hpp>
#include <dflow/core/tensor.hpp>

#include <bit>
#include <cstring>
#include <type_traits>
#include <vector>

namespace dflow::testing {

using cuda::ConvolutionCall;
using cuda::ConvolutionKind;
using cuda::ConvolutionOperands;
using cuda::MemoryUse;

namespace {

std::int64_t size_of_x(const ConvolutionCall& c) { return c.batch * c.in_rows * c.in_cols * c.in_channels; }
std::int64_t size_of_y(const ConvolutionCall& c) { return c.batch * c.out_rows * c.out_cols * c.out_channels; }
std::int64_t size_of_filter(const ConvolutionCall& c) {
  return c.out_channels * c.filter_rows * c.filter_cols * c.in_channels;
}

float as_multiplied(float value, const ConvolutionCall& call) {
  if (!call.allows_tf32) return value;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return std::bit_cast<float>((bits + 0xFFFu + (bits >> 13 & 1u)) & ~0x1FFFu);
}
double as_multiplied(double value, const ConvolutionCall&) { return value; }

/// Calls body(x, filter, y) with the numbers of the elements of each product that the sum is made of.
template <class Body>
void for_each_product(const ConvolutionCall& c, const Body& body) {
  for (std::int64_t n = 0; n < c.batch; ++n) {
    for (std::int64_t i = 0; i < c.out_rows; ++i) {
      for (std::int64_t j = 0; j < c.out_cols; ++j) {
        for (std::int64_t r = 0; r < c.filter_rows; ++r) {
          const std::int64_t row = i * c.stride_rows + r * c.dilation_rows - c.pad_top;
          if (row < 0 || row >= c.in_rows) continue;
          for (std::int64_t s = 0; s < c.filter_cols; ++s) {
            const std::int64_t column = j * c.stride_cols + s * c.dilation_cols - c.pad_left;
            if (column < 0 || column >= c.in_cols) continue;
            for (std::int64_t k = 0; k < c.out_channels; ++k) {
              for (std::int64_t l = 0; l < c.in_channels; ++l) {
                body(((n * c.in_rows + row) * c.in_cols + column) * c.in_channels + l,
                     ((k * c.filter_rows + r) * c.filter_cols + s) * c.in_channels + l,
                     ((n * c.out_rows + i) * c.out_cols + j) * c.out_channels + k);
              }
            }
          }
        }
      }
    }
  }
}

template <class T>
void compute(const ConvolutionCall& call, const ConvolutionOperands& operands) {
  using Sum = std::conditional_t<(sizeof(T) == 2), float, T>;
  T* const x = static_cast<T*>(operands.x);
  T* const filter = static_cast<T*>(operands.filter);
  T* const y = static_cast<T*>(operands.y);
  const auto at = [&](const T* data, std::int64_t i) { return as_multiplied(static_cast<Sum>(data[i]), call); };
  const auto write = [&](T* to, std::int64_t n, const auto& index_of, const auto& term) {
    std::vector<Sum> sums(static_cast<std::size_t>(n));
    for_each_product(call, [&](std::int64_t of_x, std::int64_t of_filter, std::int64_t of_y) {
      sums[static_cast<std::size_t>(index_of(of_x, of_filter, of_y))] += term(of_x, of_filter, of_y);
    });
    for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(sums[static_cast<std::size_t>(i)]);
  };
  using I = std::int64_t;
  switch (call.kind) {
    case ConvolutionKind::forward:
      return write(
          y, size_of_y(call), [](I, I, I of_y) { return of_y; },
          [&](I of_x, I of_filter, I) { return at(x, of_x) * at(filter, of_filter); });
    case ConvolutionKind::backward_input:
      return write(
          x, size_of_x(call), [](I of_x, I, I) { return of_x; },
          [&](I, I of_filter, I of_y) { return at(y, of_y) * at(filter, of_filter); });
    case ConvolutionKind::backward_filter:
      return write(
          filter, size_of_filter(call), [](I, I of_filter, I) { return of_filter; },
          [&](I of_x, I, I of_y) { return at(x, of_x) * at(y, of_y); });
  }
}

/// How many places a window of that extent has.
std::int64_t places(std::int64_t extent, std::int64_t window, std::int64_t dilation, std::int64_t stride) {
  const std::int64_t reach = (window - 1) * dilation + 1;
  return extent < reach ? 0 : (extent - reach) / stride + 1;
}

}  // namespace

std::string what_is_wrong_with(const ConvolutionCall& call) {
  for (const std::int64_t extent : {call.batch, call.in_rows, call.in_cols, call.in_channels, call.out_rows,
                                    call.out_cols, call.out_channels, call.filter_rows, call.filter_cols}) {
    if (extent < 1) return "an operand without elements";
  }
  if (call.stride_rows < 1 || call.stride_cols < 1 || call.dilation_rows < 1 || call.dilation_cols < 1) {
    return "a stride or dilation below 1";
  }
  if (call.pad_top < 0 || call.pad_bottom < 0 || call.pad_left < 0 || call.pad_right < 0) return "a negative padding";
  if (call.out_rows != places(call.in_rows + call.pad_top + call.pad_bottom, call.filter_rows, call.dilation_rows,
                              call.stride_rows) ||
      call.out_cols != places(call.in_cols + call.pad_left + call.pad_right, call.filter_cols, call.dilation_cols,
                              call.stride_cols)) {
    return "y is not of the size that x and the filter give it";
  }
  if (!is_floating(call.dtype)) return str_cat("elements of type ", dtype_name(call.dtype));
  if (!std::has_single_bit(static_cast<unsigned>(call.alignment_bytes))) return "an alignment that is no power of 2";
  if (static_cast<std::size_t>(call.alignment_bytes) < size_of(call.dtype)) {
    return "operands that are not aligned as their elements";
  }
  if (call.allows_tf32 && call.dtype != DType::float32) return "TF32 of elements that are not float";
  return {};
}

std::vector<MemoryUse> memory_of(const ConvolutionCall& call, const ConvolutionOperands& operands) {
  const auto bytes = [&](std::int64_t elements) { return static_cast<std::size_t>(elements) * size_of(call.dtype); };
  std::vector<MemoryUse> all{
      {operands.x, bytes(size_of_x(call)), call.kind == ConvolutionKind::backward_input},
      {operands.filter, bytes(size_of_filter(call)), call.kind == ConvolutionKind::backward_filter},
      {operands.y, bytes(size_of_y(call)), call.kind == ConvolutionKind::forward}};
  if (operands.workspace_bytes != 0) all.push_back({operands.workspace, operands.workspace_bytes, true});
  return all;
}

void compute_convolution(const ConvolutionCall& call, const ConvolutionOperands& operands) {
  if (operands.workspace_bytes != 0) std::memset(operands.workspace, 0xA5, operands.workspace_bytes);
  visit_dtype<NumberTypes>(call.dtype, [&]<class T>() {
    if constexpr (is_floating_element<T>) compute<T>(call, operands);
    return 0;
  });
}

}  // namespace dflow::testing
