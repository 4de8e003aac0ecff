#pragma once

#include <dflow/kernels/cpu/linalg/fourier_plan.hpp>
#include <dflow/ops/array/index_list.hpp>
#include <dflow/ops/linalg/fourier.hpp>

#include <algorithm>
#include <complex>
#include <type_traits>

namespace dflow {

namespace cpu {

/// FFT and IFFT over the last dimensions.
template <class Op, class C>
struct FourierKernel {
  using R = typename C::value_type;

  double cost_ns(const KernelInit& init) const {
    return 1000 + estimated_elements(init.inputs[0]) * 20 * Op::fourier_rank;
  }

  void operator()(KernelContext& context, const Tensor<C>& x, Tensor<C>& y) const {
    const Shape& shape = x.shape();
    const C* from = x.data();
    for (int axis = shape.rank() - 1; axis >= shape.rank() - Op::fourier_rank; --axis) {
      const R scale = Op::is_inverse ? R(1) / static_cast<R>(shape[axis]) : R(1);
      transform_axis<R>(context, shape, axis, Op::is_inverse, scale, from, y.data());
      from = y.data();
    }
  }
};

/// to = from; each dimension is cut at its end or filled up with zeros there.
template <class T>
void resize_dims(const Shape& from_shape, const T* from, const Shape& to_shape, T* to) {
  if (to_shape.num_elements() == 0) return;
  const int last = to_shape.rank() - 1;
  const std::int64_t count = std::min(from_shape[last], to_shape[last]);
  const std::int64_t lines = to_shape.num_elements(0, last);
  for (std::int64_t line = 0; line < lines; ++line, to += to_shape[last]) {
    std::int64_t rest = line, at = 0, stride = 1;
    bool is_inside = true;
    for (int i = last; i-- > 0;) {
      const std::int64_t index = rest % to_shape[i];
      rest /= to_shape[i];
      is_inside = is_inside && index < from_shape[i];
      at += index * stride;
      stride *= from_shape[i];
    }
    const std::int64_t filled = is_inside ? count : 0;
    if (filled > 0) std::copy_n(from + at * from_shape[last], filled, to);
    std::fill(to + filled, to + to_shape[last], T());
  }
}

/// How often a coefficient of the last dimension of `length` stands for itself and its conjugate.
inline double multiplicity(std::int64_t k, std::int64_t length) { return k == 0 || 2 * k == length ? 1.0 : 2.0; }

/// The transforms between real elements and the half of their coefficients. Lengths count real elements.
template <class R>
class RealFourier {
 public:
  using C = std::complex<R>;

  RealFourier(KernelContext& context, const Shape& batch, const Tensor<std::int32_t>& lengths)
      : context_(context), rank_(static_cast<int>(lengths.num_elements())), real_(batch), half_(batch) {
    for (const std::int32_t length : lengths) real_ = real_.appended(length);
    half_ = real_;
    if (length() > 0) half_ = half_.with_dim(last(), length() / 2 + 1);
  }

  const Shape& real_shape() const { return real_; }
  const Shape& half_shape() const { return half_; }
  /// The length of the last dimension.
  std::int64_t length() const { return real_[last()]; }
  /// Real elements for each matrix of the batch.
  std::int64_t size() const { return real_.num_elements(real_.rank() - rank_, real_.rank()); }

  /// x is of `real_shape`, y of `half_shape`.
  void forward(const R* x, C* y) {
    if (half_.num_elements() == 0) return;
    const std::int64_t n = length(), half = half_[last()];
    for_each_line<R>(context_, half_.num_elements() / half, n, false,
                     [&](FourierPlan<R>& plan, std::int64_t line, C* in, C* out) {
                       std::copy_n(x + line * n, n, in);
                       plan.run(in, out);
                       std::copy_n(out, half, y + line * half);
                     });
    for (int axis = last() - 1; axis > last() - rank_; --axis) {
      transform_axis<R>(context_, half_, axis, false, R(1), y, y);
    }
  }

  /// y is of `half_shape` and is written to, x of `real_shape`; unscaled. Coefficients k and n - k are taken as each
  /// other's conjugates.
  void backward(C* y, R* x) {
    if (half_.num_elements() == 0) return;
    const std::int64_t n = length(), half = half_[last()];
    for (int axis = last() - 1; axis > last() - rank_; --axis) {
      transform_axis<R>(context_, half_, axis, true, R(1), y, y);
    }
    for_each_line<R>(context_, half_.num_elements() / half, n, true,
                     [&](FourierPlan<R>& plan, std::int64_t line, C* in, C* out) {
                       std::copy_n(y + line * half, half, in);
                       for (std::int64_t k = 0; k < half; ++k) {
                         if (multiplicity(k, n) == 1.0) {
                           in[k] = in[k].real();
                         } else {
                           in[n - k] = std::conj(in[k]);
                         }
                       }
                       plan.run(in, out);
                       for (std::int64_t i = 0; i < n; ++i) x[line * n + i] = out[i].real();
                     });
  }

  template <class T>
  AnyTensor temporary(const Shape& shape) const {
    return context_.allocate_temporary(dtype_of<T>, shape);
  }

 private:
  int last() const { return real_.rank() - 1; }

  KernelContext& context_;
  int rank_;
  Shape real_, half_;
};

template <class T>
struct RealFourierKernelOf {
  double cost_ns(const KernelInit& init) const { return 1000 + estimated_elements(init.inputs[0]) * 40; }

  /// The transform that a kernel's inputs ask for: input 1 has the lengths of the innermost dimensions of x.
  RealFourier<T> transform(KernelContext& context, const Shape& x) const {
    const Tensor<std::int32_t>& lengths = context.input<std::int32_t>(1);
    return {context, x.subshape(0, x.rank() - static_cast<int>(lengths.num_elements())), lengths};
  }
};

/// The op's shape function rejects nodes with element types that do not match.
[[noreturn]] inline void reject_precision(const KernelContext& context) {
  context.fail("Treal and Tcomplex are of different precision");
}

template <class T, class U>
struct RfftKernel : RealFourierKernelOf<T> {
  void operator()(KernelContext& context, const Tensor<T>& x, const Tensor<std::int32_t>&, Tensor<U>& y) const {
    if constexpr (std::is_same_v<U, std::complex<T>>) {
      RealFourier<T> fourier = this->transform(context, x.shape());
      AnyTensor resized = fourier.template temporary<T>(fourier.real_shape());
      resize_dims(x.shape(), x.data(), fourier.real_shape(), Tensor<T>::of(resized).data());
      fourier.forward(Tensor<T>::of(resized).data(), y.data());
    } else {
      reject_precision(context);
    }
  }
};

template <class T, class U>
struct IrfftKernel : RealFourierKernelOf<T> {
  void operator()(KernelContext& context, const Tensor<U>& y, const Tensor<std::int32_t>&, Tensor<T>& x) const {
    if constexpr (std::is_same_v<U, std::complex<T>>) {
      RealFourier<T> fourier = this->transform(context, y.shape());
      AnyTensor resized = fourier.template temporary<U>(fourier.half_shape());
      resize_dims(y.shape(), y.data(), fourier.half_shape(), Tensor<U>::of(resized).data());
      fourier.backward(Tensor<U>::of(resized).data(), x.data());
      const T scale = T(1) / static_cast<T>(std::max<std::int64_t>(fourier.size(), 1));
      for (T& value : x) value *= scale;
    } else {
      reject_precision(context);
    }
  }
};

}  // namespace cpu

template <class C>
struct Kernel<Fft, Cpu, C> : cpu::FourierKernel<Fft, C> {};
template <class C>
struct Kernel<Fft2d, Cpu, C> : cpu::FourierKernel<Fft2d, C> {};
template <class C>
struct Kernel<Fft3d, Cpu, C> : cpu::FourierKernel<Fft3d, C> {};
template <class C>
struct Kernel<Ifft, Cpu, C> : cpu::FourierKernel<Ifft, C> {};
template <class C>
struct Kernel<Ifft2d, Cpu, C> : cpu::FourierKernel<Ifft2d, C> {};
template <class C>
struct Kernel<Ifft3d, Cpu, C> : cpu::FourierKernel<Ifft3d, C> {};
template <class T, class U>
struct Kernel<Rfft, Cpu, T, U> : cpu::RfftKernel<T, U> {};
template <class T, class U>
struct Kernel<Rfft2d, Cpu, T, U> : cpu::RfftKernel<T, U> {};
template <class T, class U>
struct Kernel<Rfft3d, Cpu, T, U> : cpu::RfftKernel<T, U> {};
template <class T, class U>
struct Kernel<Irfft, Cpu, T, U> : cpu::IrfftKernel<T, U> {};
template <class T, class U>
struct Kernel<Irfft2d, Cpu, T, U> : cpu::IrfftKernel<T, U> {};
template <class T, class U>
struct Kernel<Irfft3d, Cpu, T, U> : cpu::IrfftKernel<T, U> {};

template <class T, class U>
struct Kernel<RfftGrad, Cpu, T, U> : cpu::RealFourierKernelOf<T> {
  void operator()(KernelContext& context, const Tensor<U>& dy, const Tensor<std::int32_t>&, const Tensor<std::int32_t>&,
                  Tensor<T>& dx) const {
    if constexpr (std::is_same_v<U, std::complex<T>>) {
      cpu::RealFourier<T> fourier = this->transform(context, dy.shape());
      AnyTensor half = fourier.template temporary<U>(fourier.half_shape()),
                real = fourier.template temporary<T>(fourier.real_shape());
      U* to = Tensor<U>::of(half).data();
      const std::int64_t length = fourier.length(), columns = dy.dim(dy.rank() - 1);
      for (std::int64_t i = 0; i < dy.num_elements(); ++i) {
        to[i] = dy.data()[i] * static_cast<T>(1 / cpu::multiplicity(i % columns, length));
      }
      fourier.backward(to, Tensor<T>::of(real).data());
      cpu::resize_dims(fourier.real_shape(), Tensor<T>::of(real).data(), dx.shape(), dx.data());
    } else {
      cpu::reject_precision(context);
    }
  }
};

template <class T, class U>
struct Kernel<IrfftGrad, Cpu, T, U> : cpu::RealFourierKernelOf<T> {
  void operator()(KernelContext& context, const Tensor<T>& dx, const Tensor<std::int32_t>&, const Tensor<std::int32_t>&,
                  Tensor<U>& dy) const {
    if constexpr (std::is_same_v<U, std::complex<T>>) {
      cpu::RealFourier<T> fourier = this->transform(context, dx.shape());
      AnyTensor half = fourier.template temporary<U>(fourier.half_shape());
      U* to = Tensor<U>::of(half).data();
      fourier.forward(dx.data(), to);
      const std::int64_t length = fourier.length(), count = half.num_elements(),
                         columns = count == 0 ? 1 : length / 2 + 1;
      for (std::int64_t i = 0; i < count; ++i) {
        to[i] *= static_cast<T>(cpu::multiplicity(i % columns, length) / static_cast<double>(fourier.size()));
      }
      cpu::resize_dims(fourier.half_shape(), to, dy.shape(), dy.data());
    } else {
      cpu::reject_precision(context);
    }
  }
};

}  // namespace dflow
