#pragma once

#include <dflow/kernels/cpu/routines/array/transpose.hpp>
#include <dflow/kernels/cpu/routines/loop_types.hpp>
#include <dflow/kernels/cpu/routines/nn/bias.hpp>
#include <dflow/kernels/cpu/routines/nn/conv2d.hpp>
#include <dflow/kernels/cpu/routines/nn/conv2d_builtin.hpp>
#include <dflow/kernels/cpu/routines/nn/conv2d_groups.hpp>
#include <dflow/kernels/cpu/routines/nn/conv2d_taps.hpp>
#include <dflow/kernels/cpu/routines/onednn.hpp>
#include <dflow/kernels/cpu/routines/widened.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>

namespace dflow::cpu {

inline std::int64_t input_size(const Conv2dShape& s) { return s.batch * s.in_rows * s.in_cols * s.in_channels; }
inline std::int64_t filter_size(const Conv2dShape& s) { return patch_size(s) * s.out_channels; }
inline std::int64_t output_size(const Conv2dShape& s) { return s.batch * s.out_rows() * s.out_cols() * s.out_channels; }

/// oneDNN if requested, and by default if its primitives can be kept and the convolution is not tiny.
inline bool wants_onednn(const Conv2dShape& s, const CpuOptions& options, bool is_by_filter = false) {
  if (!has_onednn() || options.backend == CpuBackend::builtin) return false;
  if (input_size(s) == 0 || output_size(s) == 0 || filter_size(s) == 0) return false;
  if (s.pad_top < 0 || s.pad_left < 0) return false;
  if (options.backend == CpuBackend::onednn) return true;
  if (is_depthwise(s) && prefers_loops(s, is_by_filter)) return false;
  return options.cache != nullptr && output_size(s) * patch_size(s) >= std::int64_t{1} << 20;
}

template <class T>
void conv2d(ThreadPool& pool, const Conv2dShape& shape, const T* input, const T* filter, T* output,
            const Epilogue<T>& epilogue, const CpuOptions& options) {
  if (output_size(shape) == 0) return;
  if (const UsedTaps used(shape); !used.are_all()) {
    const Scratch taps(options.cache, static_cast<std::size_t>(used.size()) * sizeof(T));
    used.pick(filter, taps.as<T>());
    return conv2d<T>(pool, used.shape(), input, taps.as<T>(), output, epilogue, options);
  }
  if constexpr (is_16_bit_float<T>) {
    const Widened<T> x(pool, options, input_size(shape), input);
    const Widened<T> w(pool, options, filter_size(shape), filter);
    const Widened<T> y(pool, options, output_size(shape), epilogue.accumulate ? output : nullptr);
    conv2d<float>(pool, shape, x.get(), w.get(), y.get(), {epilogue.accumulate}, options);
    y.narrow_to(output);
  } else {
    if constexpr (std::is_same_v<T, float>) {
      // oneDNN may add a bias between parts of a sum; added to the sum it has the bits of `bias_add`, and costs no
      // more.
      if (wants_onednn(shape, options) && !epilogue.accumulate &&
          onednn_conv2d(pool, shape, input, filter, output, options)) {
        if (epilogue.bias != nullptr) {
          const std::int64_t channels = shape.out_channels;
          bias_add(pool, output_size(shape) / channels, channels, output, epilogue.bias, output, epilogue.relu,
                   options);
        }
        return;
      }
    }
    if (shape.groups > 1) return conv2d_in_groups(pool, shape, input, filter, output, epilogue, options);
    conv2d_builtin(pool, shape, input, filter, output, epilogue, options);
  }
}

/// The gradient by the input as a convolution by oneDNN, or false.
inline bool onednn_conv2d_backward_input_unit_stride(ThreadPool& pool, const Conv2dShape& s, const float* filter,
                                                     const float* grad_output, float* grad_input,
                                                     const CpuOptions& options) {
  if (s.stride_rows != 1 || s.stride_cols != 1 || s.groups != 1) return false;
  const Conv2dShape turned = turned_shape(s);
  if (std::min({turned.pad_top, turned.pad_left, turned.pad_bottom, turned.pad_right}) < 0) return false;
  const std::int64_t taps = s.filter_rows * s.filter_cols;
  const std::int64_t tap_size = s.in_channels * s.out_channels;
  const Scratch scratch(options.cache, taps == 1 ? 0 : static_cast<std::size_t>(taps * tap_size) * sizeof(float));
  for (std::int64_t tap = 0; tap < taps && taps > 1; ++tap) {
    std::copy_n(filter + (taps - 1 - tap) * tap_size, tap_size, scratch.as<float>() + tap * tap_size);
  }
  return onednn_conv2d_turned(pool, turned, grad_output, taps == 1 ? filter : scratch.as<float>(), grad_input, options);
}

template <class T>
void conv2d_backward_input(ThreadPool& pool, const Conv2dShape& shape, const T* filter, const T* grad_output,
                           T* grad_input, const CpuOptions& options) {
  if (input_size(shape) == 0) return;
  if (const UsedTaps used(shape); !used.are_all()) {
    if (used.are_none()) return static_cast<void>(std::fill_n(grad_input, input_size(shape), T(0.0f)));
    const Scratch taps(options.cache, static_cast<std::size_t>(used.size()) * sizeof(T));
    used.pick(filter, taps.as<T>());
    return conv2d_backward_input<T>(pool, used.shape(), taps.as<T>(), grad_output, grad_input, options);
  }
  if constexpr (is_16_bit_float<T>) {
    const Widened<T> w(pool, options, filter_size(shape), filter);
    const Widened<T> dy(pool, options, output_size(shape), grad_output);
    const Widened<T> dx(pool, options, input_size(shape), nullptr);
    conv2d_backward_input<float>(pool, shape, w.get(), dy.get(), dx.get(), options);
    dx.narrow_to(grad_input);
  } else {
    if constexpr (std::is_same_v<T, float>) {
      if (wants_onednn(shape, options) &&
          onednn_conv2d_backward_input_unit_stride(pool, shape, filter, grad_output, grad_input, options)) {
        return;
      }
    }
    if (shape.groups == 1 && is_pointwise(shape)) {
      // Pixels [batch rows columns, out_channels] times the transposed filter: faster than oneDNN's own gradient.
      gemm(pool, false, true, shape.batch * shape.in_rows * shape.in_cols, shape.in_channels, shape.out_channels,
           grad_output, filter, grad_input, {}, options);
      return;
    }
    if constexpr (std::is_same_v<T, float>) {
      if (wants_onednn(shape, options) &&
          onednn_conv2d_backward_input(pool, shape, filter, grad_output, grad_input, options)) {
        return;
      }
    }
    if (shape.groups > 1) return conv2d_backward_input_in_groups(pool, shape, filter, grad_output, grad_input, options);
    conv2d_backward_input_builtin(pool, shape, filter, grad_output, grad_input, options);
  }
}

/// The most windows of one image that oneDNN may sum in one accumulator.
inline constexpr std::int64_t most_windows_of_image = std::int64_t{1} << 17;

/// With few channels, a tile of several rows of the window keeps more multipliers busy than oneDNN's loops do.
inline bool wants_onednn_backward_filter(const Conv2dShape& s, const CpuOptions& options) {
  const bool has_few_channels = s.in_channels <= 4 && s.out_channels >= 32;
  return wants_onednn(s, options, true) &&
         ((!has_few_channels && s.out_rows() * s.out_cols() <= most_windows_of_image) ||
          options.backend == CpuBackend::onednn);
}

/// The batch in halves, since oneDNN sums all windows of a call in one accumulator. False if oneDNN does not know the
/// shape.
inline bool onednn_backward_filter_in_halves(ThreadPool& pool, const Conv2dShape& s, const float* input,
                                             const float* grad_output, float* grad_filter, const CpuOptions& options) {
  constexpr std::int64_t most_windows = 16384;
  if (s.batch == 1 || s.batch * s.out_rows() * s.out_cols() <= most_windows) {
    return onednn_conv2d_backward_filter(pool, s, input, grad_output, grad_filter, options);
  }
  Conv2dShape first = s, second = s;
  first.batch = (s.batch + 1) / 2;
  second.batch = s.batch - first.batch;
  if (!onednn_backward_filter_in_halves(pool, first, input, grad_output, grad_filter, options)) return false;
  const std::int64_t size = filter_size(s);
  const Scratch scratch(options.cache, static_cast<std::size_t>(size) * sizeof(float));
  float* const other = scratch.as<float>();
  if (!onednn_backward_filter_in_halves(pool, second, input + input_size(first), grad_output + output_size(first),
                                        other, options)) {
    return false;
  }
  for (std::int64_t i = 0; i < size; ++i) grad_filter[i] += other[i];
  return true;
}

template <class T>
void conv2d_backward_filter(ThreadPool& pool, const Conv2dShape& shape, const T* input, const T* grad_output,
                            T* grad_filter, const CpuOptions& options) {
  if (filter_size(shape) == 0) return;
  if (const UsedTaps used(shape); !used.are_all()) {
    const Scratch taps(options.cache, static_cast<std::size_t>(used.size()) * sizeof(T));
    if (!used.are_none()) {
      conv2d_backward_filter<T>(pool, used.shape(), input, grad_output, taps.as<T>(), options);
    }
    return used.place(taps.as<T>(), grad_filter);
  }
  if constexpr (is_16_bit_float<T>) {
    const Widened<T> x(pool, options, input_size(shape), input);
    const Widened<T> dy(pool, options, output_size(shape), grad_output);
    const Widened<T> dw(pool, options, filter_size(shape), nullptr);
    conv2d_backward_filter<float>(pool, shape, x.get(), dy.get(), dw.get(), options);
    dw.narrow_to(grad_filter);
  } else if (shape.groups == 1 && is_pointwise(shape)) {
    // The product of the transposed pixels of one side and the pixels of the other, with fewer rows than columns: the
    // long operand is read in order, once.
    const std::int64_t pixels = shape.batch * shape.in_rows * shape.in_cols;
    const std::int64_t in = shape.in_channels, out = shape.out_channels;
    if (in <= out) return gemm(pool, true, false, in, out, pixels, input, grad_output, grad_filter, {}, options);
    const Scratch turned(options.cache, static_cast<std::size_t>(in * out) * sizeof(T));
    gemm(pool, true, false, out, in, pixels, grad_output, input, turned.as<T>(), {}, options);
    transpose(pool, sizeof(T), std::array{out, in}, std::array{1, 0}, turned.as<T>(), grad_filter, options);
  } else {
    if constexpr (std::is_same_v<T, float>) {
      if (wants_onednn_backward_filter(shape, options) &&
          onednn_backward_filter_in_halves(pool, shape, input, grad_output, grad_filter, options)) {
        return;
      }
    }
    if (shape.groups > 1)
      return conv2d_backward_filter_in_groups(pool, shape, input, grad_output, grad_filter, options);
    conv2d_backward_filter_builtin(pool, shape, input, grad_output, grad_filter, options);
  }
}

}  // namespace dflow::cpu
