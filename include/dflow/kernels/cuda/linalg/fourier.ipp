#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/cuda/driver/transforms.hpp>
#include <dflow/kernels/cuda/linalg/fourier.hpp>
#include <dflow/kernels/cuda/linalg/kernel_work.ipp>

#include <algorithm>
#include <cstdint>

namespace dflow::cuda {

namespace detail {

/// Transforms of a call, by the library if lines have more than one element.
class Fourier {
 public:
  Fourier(KernelContext& context, const FourierFunctions& functions) : work_(context), functions_(functions) {}

  KernelWork& work() { return work_; }

  /// y = x, in other extents of the last `rank` dimensions.
  void resize(const AnyTensor& x, int rank, AnyTensor& y) const {
    ResizeArgs args;
    args.n = y.num_elements();
    args.rank = rank;
    for (int d = 0; d < rank; ++d) {
      args.x_dims[d] = x.dim(x.rank() - rank + d);
      args.y_dims[d] = y.dim(y.rank() - rank + d);
    }
    args.x = x.raw_data();
    args.y = y.raw_data();
    work_.launch(function_of_size<ResizeBody>(size_of(y.dtype())), args.n, &args);
  }

  void scale(AnyTensor& y, double factor) const {
    const ScaleArgs args{y.num_elements(), factor, y.raw_data()};
    if (factor != 1) work_.launch(is_complex(y.dtype()) ? functions_.scale_complex : functions_.scale, args.n, &args);
  }

  /// The coefficients y stand for lines of `length` real elements.
  void change_half_lines(AnyTensor& y, std::int64_t length, double alone, double paired, bool makes_real) const {
    HalfLinesArgs args;
    args.n = y.num_elements();
    args.columns = std::max<std::int64_t>(y.dim(y.rank() - 1), 1);
    args.length = length;
    args.alone = alone;
    args.paired = paired;
    args.makes_real = makes_real;
    args.y = y.raw_data();
    work_.launch(functions_.half_lines, args.n, &args);
  }

  /// Complex elements along one dimension, in place.
  void transform_axis(AnyTensor& y, int axis, bool is_backward) {
    const std::int64_t length = y.dim(axis), inner = y.shape().num_elements(axis + 1, y.rank());
    if (y.num_elements() == 0 || length == 1) return;
    const TransformCall call{is_backward ? TransformKind::backward : TransformKind::forward, y.dtype(), length,
                             y.num_elements() / length};
    if (inner == 1) return run(call, y, y);
    const std::int64_t outer = y.shape().num_elements(0, axis);
    AnyTensor& lines = work_.temporary(y.dtype(), {outer, inner, length});
    work_.transpose(y, outer, length, inner, lines);
    run(call, lines, lines);
    work_.transpose(lines, outer, inner, length, y);
  }

  /// x, of real elements, to the coefficients y, which differ in the last dimension alone.
  void forward(AnyTensor& x, int rank, AnyTensor& y) {
    const int last = x.rank() - 1;
    if (y.num_elements() == 0) return;
    if (x.dim(last) == 1) {
      cast(functions_.to_complex, x, y);
    } else {
      run({TransformKind::real_forward, functions_.complex, x.dim(last), x.num_elements() / x.dim(last)}, x, y);
    }
    for (int axis = last - 1; axis > last - rank; --axis) transform_axis(y, axis, false);
  }

  /// The coefficients y, which are used up, to x, unscaled. Coefficients that stand for themselves alone count as
  /// real.
  void backward(AnyTensor& y, int rank, AnyTensor& x) {
    const int last = x.rank() - 1;
    if (y.num_elements() == 0) return;
    for (int axis = last - 1; axis > last - rank; --axis) transform_axis(y, axis, true);
    if (x.dim(last) == 1) return cast(functions_.to_real, y, x);
    change_half_lines(y, x.dim(last), 1, 1, true);
    run({TransformKind::real_backward, functions_.complex, x.dim(last), x.num_elements() / x.dim(last)}, y, x);
  }

  /// The extents of the real elements: the extents of the batch, then the lengths on input 1.
  Shape real_shape(const Shape& given) const {
    const Tensor<std::int32_t>& lengths = work_.context().input<std::int32_t>(1);
    Shape shape = given.subshape(0, given.rank() - static_cast<int>(lengths.num_elements()));
    for (const std::int32_t length : lengths) shape = shape.appended(length);
    return shape;
  }
  static Shape half_shape(const Shape& real) {
    const int last = real.rank() - 1;
    return real[last] > 0 ? real.with_dim(last, real[last] / 2 + 1) : real;
  }
  int rank() const { return static_cast<int>(work_.context().input(1).num_elements()); }
  /// Real elements that are transformed together.
  static std::int64_t size(const Shape& real, int rank) {
    return std::max<std::int64_t>(real.num_elements(real.rank() - rank, real.rank()), 1);
  }

 private:
  void cast(const KernelFunction& function, const AnyTensor& x, AnyTensor& y) const {
    const CastArgs args{y.num_elements(), x.raw_data(), y.raw_data()};
    work_.launch(function, args.n, &args);
  }

  void run(const TransformCall& call, AnyTensor& from, AnyTensor& to) {
    if (call.length > dflow::detail::max_fourier_length) {
      work_.context().fail(
          str_cat("cannot transform ", call.length, " elements, more than ", dflow::detail::max_fourier_length));
    }
    std::size_t bytes = 0;
    work_.call_library("asking for the memory of a Fourier transform", [&](Driver& driver, const DeviceCore& core) {
      return driver.transforms().transform_workspace(core.device(), call, bytes);
    });
    void* const workspace = work_.workspace(bytes);
    work_.call_library("a Fourier transform", [&](Driver& driver, const DeviceCore& core) {
      return driver.transforms().run_transform(core.device(), call, from.raw_data(), to.raw_data(), workspace, bytes,
                                               work_.uses().all(), core.compute());
    });
  }

  KernelWork work_;
  const FourierFunctions functions_;
};

}  // namespace detail

void transform_complex(KernelContext& context, const FourierFunctions& functions, int rank, bool is_inverse) {
  const AnyTensor& x = context.input(0);
  AnyTensor& y = context.allocate_output(0, dflow::detail::inferred_shape(context));
  if (y.num_elements() == 0) return;
  detail::Fourier fourier(context, functions);
  fourier.work().copy(x, y);
  for (int axis = y.rank() - 1; axis >= y.rank() - rank; --axis) fourier.transform_axis(y, axis, is_inverse);
  if (is_inverse) fourier.scale(y, 1 / static_cast<double>(detail::Fourier::size(y.shape(), rank)));
}

void transform_real(KernelContext& context, const FourierFunctions& functions) {
  AnyTensor& y = context.allocate_output(0, dflow::detail::inferred_shape(context));
  if (y.num_elements() == 0) return;
  detail::Fourier fourier(context, functions);
  const AnyTensor& x = context.input(0);
  AnyTensor& resized = fourier.work().temporary(functions.real, fourier.real_shape(x.shape()));
  fourier.resize(x, fourier.rank(), resized);
  fourier.forward(resized, fourier.rank(), y);
}

void transform_to_real(KernelContext& context, const FourierFunctions& functions) {
  AnyTensor& x = context.allocate_output(0, dflow::detail::inferred_shape(context));
  if (x.num_elements() == 0) return;
  detail::Fourier fourier(context, functions);
  AnyTensor& resized = fourier.work().temporary(functions.complex, detail::Fourier::half_shape(x.shape()));
  fourier.resize(context.input(0), fourier.rank(), resized);
  fourier.backward(resized, fourier.rank(), x);
  fourier.scale(x, 1 / static_cast<double>(detail::Fourier::size(x.shape(), fourier.rank())));
}

void make_rfft_gradient(KernelContext& context, const FourierFunctions& functions) {
  AnyTensor& dx = context.allocate_output(0, dflow::detail::inferred_shape(context));
  if (dx.num_elements() == 0) return;
  const AnyTensor& dy = context.input(0);
  if (dy.num_elements() == 0) return clear_output(context, dx);
  detail::Fourier fourier(context, functions);
  AnyTensor& real = fourier.work().temporary(functions.real, fourier.real_shape(dy.shape()));
  AnyTensor& half = fourier.work().temporary(functions.complex, dy.shape());
  fourier.work().copy(dy, half);
  fourier.change_half_lines(half, real.dim(real.rank() - 1), 1, 0.5, false);
  fourier.backward(half, fourier.rank(), real);
  fourier.resize(real, fourier.rank(), dx);
}

void make_irfft_gradient(KernelContext& context, const FourierFunctions& functions) {
  AnyTensor& dy = context.allocate_output(0, dflow::detail::inferred_shape(context));
  if (dy.num_elements() == 0) return;
  const AnyTensor& dx = context.input(0);
  if (dx.num_elements() == 0) return clear_output(context, dy);
  detail::Fourier fourier(context, functions);
  const double size = static_cast<double>(detail::Fourier::size(dx.shape(), fourier.rank()));
  AnyTensor& real = fourier.work().temporary(functions.real, dx.shape());
  fourier.work().copy(dx, real);
  AnyTensor& half = fourier.work().temporary(functions.complex, detail::Fourier::half_shape(dx.shape()));
  fourier.forward(real, fourier.rank(), half);
  fourier.change_half_lines(half, dx.dim(dx.rank() - 1), 1 / size, 2 / size, false);
  fourier.resize(half, fourier.rank(), dy);
}

}  // namespace dflow::cuda
