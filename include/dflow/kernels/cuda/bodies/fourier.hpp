#pragma once

#include <dflow/kernels/cuda/bodies/arrays.hpp>
#include <dflow/kernels/cuda/bodies/elementwise.hpp>

#include <cstdint>

namespace dflow::cuda {

/// y [outer, dims...] = x, each dimension cut at its end or filled up with zeros there.
struct ResizeArgs {
  static constexpr int max_rank = 3;

  std::int64_t n = 0;  ///< elements of y
  std::int32_t rank = 0;
  std::int64_t x_dims[max_rank] = {}, y_dims[max_rank] = {};
  const void* x = nullptr;
  void* y = nullptr;
};

template <int bytes>
struct ResizeBody {
  static constexpr const char* name = "cut or fill up dimensions";
  static constexpr bool has_barriers = false;
  using Args = ResizeArgs;

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    using Element = Bits<bytes>;
    for (std::int64_t i = thread.index(); i < args.n; i += thread.count()) {
      std::int64_t rest = i, at = 0, stride = 1;
      bool is_inside = true;
      for (int d = args.rank - 1; d >= 0; --d) {
        const std::int64_t index = rest % args.y_dims[d];
        rest /= args.y_dims[d];
        is_inside = is_inside && index < args.x_dims[d];
        at += index * stride;
        stride *= args.x_dims[d];
      }
      static_cast<Element*>(args.y)[i] =
          is_inside ? static_cast<const Element*>(args.x)[rest * stride + at] : Element{};
    }
  }
};

/// y[i] *= factor
struct ScaleArgs {
  std::int64_t n = 0;
  double factor = 1;
  void* y = nullptr;
};

template <class T>
struct ScaleBody {
  static constexpr const char* name = "scale";
  static constexpr bool has_barriers = false;
  using Args = ScaleArgs;

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    for (std::int64_t i = thread.index(); i < args.n; i += thread.count()) {
      T& y = static_cast<T*>(args.y)[i];
      if constexpr (is_complex_element<T>) {
        const auto factor = static_cast<typename T::value_type>(args.factor);
        y = T(y.real() * factor, y.imag() * factor);
      } else {
        y *= static_cast<T>(args.factor);
      }
    }
  }
};

/// Arguments to multiply the first length / 2 + 1 coefficients of lines. The factor is `paired` for coefficients that
/// stand for themselves and their conjugates, and `alone` for the others. The others may lose their imaginary part.
struct HalfLinesArgs {
  std::int64_t n = 0;
  std::int64_t columns = 1, length = 1;
  double alone = 1, paired = 1;
  bool makes_real = false;
  void* y = nullptr;
};

template <class C>
struct HalfLinesBody {
  static constexpr const char* name = "coefficients of real lines";
  static constexpr bool has_barriers = false;
  using Args = HalfLinesArgs;

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    using R = typename C::value_type;
    for (std::int64_t i = thread.index(); i < args.n; i += thread.count()) {
      C& y = static_cast<C*>(args.y)[i];
      const std::int64_t k = i % args.columns;
      const bool is_alone = k == 0 || 2 * k == args.length;
      const R factor = static_cast<R>(is_alone ? args.alone : args.paired);
      y = C(y.real() * factor, is_alone && args.makes_real ? R(0) : y.imag() * factor);
    }
  }
};

using FourierBodies =
    TypeList<ResizeBody<1>, ResizeBody<2>, ResizeBody<4>, ResizeBody<8>, ResizeBody<16>, ScaleBody<float>,
             ScaleBody<double>, ScaleBody<math::Complex<float>>, ScaleBody<math::Complex<double>>,
             HalfLinesBody<math::Complex<float>>, HalfLinesBody<math::Complex<double>>>;

}  // namespace dflow::cuda
