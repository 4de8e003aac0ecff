#pragma once

#include <dflow/kernels/cuda/elementwise/bodies.hpp>
#include <dflow/ops/math/binary.hpp>

#include <cstdint>
#include <type_traits>

namespace dflow::cuda {

/// What updates a variable, and its slots, element by element.
struct UpdateArgs {
  static constexpr int max_variables = 3, max_factors = 6;

  std::int64_t n = 0;
  void* variables[max_variables] = {};
  const void* gradient = nullptr;
  const void* factors[max_factors] = {};  ///< one element each
  /// Where a kernel before in the step may have noted an error: then nothing is written. Null if none can have.
  const ErrorSlot* errors = nullptr;
  bool use_nesterov = false;
};

namespace detail {

template <class T>
DFLOW_FN WideType<T> factor(const UpdateArgs& args, int i) {
  return static_cast<WideType<T>>(*static_cast<const T*>(args.factors[i]));
}

/// Calls `update(i, gradient)` for the elements of this thread, the gradient as a C.
template <class T, class C, class Thread, class Update>
DFLOW_FN void for_each_update(const Thread& thread, const UpdateArgs& args, const Update& update) {
  if (args.errors != nullptr && args.errors->kernel != 0) return;
  for (std::int64_t i = thread.index(); i < args.n; i += thread.count()) {
    update(i, static_cast<C>(static_cast<const T*>(args.gradient)[i]));
  }
}

}  // namespace detail

/// variable = O(variable, gradient)
template <class O, class T>
struct AssignUpdateBody {
  static constexpr const char* name = "assign update";
  static constexpr bool has_barriers = false;
  using Args = UpdateArgs;

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    using C = ElementwiseComputeType<O, T>;
    T* const variable = static_cast<T*>(args.variables[0]);
    detail::for_each_update<T, C>(thread, args, [&](std::int64_t i, C value) {
      variable[i] = static_cast<T>(O::template apply<C>(static_cast<C>(variable[i]), value));
    });
  }
};

/// factors: lr. variable -= lr gradient
template <class T>
struct GradientDescentBody {
  static constexpr const char* name = "gradient descent";
  static constexpr bool has_barriers = false;
  using Args = UpdateArgs;

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    using C = detail::WideType<T>;
    T* const variable = static_cast<T*>(args.variables[0]);
    const C lr = detail::factor<T>(args, 0);
    detail::for_each_update<T, C>(thread, args, [&](std::int64_t i, C gradient) {
      variable[i] = static_cast<T>(static_cast<C>(variable[i]) - lr * gradient);
    });
  }
};

/// variables: the variable, the accumulator; factors: lr, momentum. As `ApplyMomentum` says.
template <class T>
struct MomentumBody {
  static constexpr const char* name = "momentum";
  static constexpr bool has_barriers = false;
  using Args = UpdateArgs;

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    using C = detail::WideType<T>;
    T* const variable = static_cast<T*>(args.variables[0]);
    T* const accumulator = static_cast<T*>(args.variables[1]);
    const C lr = detail::factor<T>(args, 0), momentum = detail::factor<T>(args, 1);
    detail::for_each_update<T, C>(thread, args, [&](std::int64_t i, C gradient) {
      const C sum = static_cast<C>(accumulator[i]) * momentum + gradient;
      accumulator[i] = static_cast<T>(sum);
      const C direction = args.use_nesterov ? gradient + momentum * sum : sum;
      variable[i] = static_cast<T>(static_cast<C>(variable[i]) - lr * direction);
    });
  }
};

/// variables: the variable, m, v; factors: beta1^t, beta2^t, lr, beta1, beta2, epsilon. As `ApplyAdam` says.
template <class T>
struct AdamBody {
  static constexpr const char* name = "adam";
  static constexpr bool has_barriers = false;
  using Args = UpdateArgs;

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    using C = detail::WideType<T>;
    T* const variable = static_cast<T*>(args.variables[0]);
    T* const m = static_cast<T*>(args.variables[1]);
    T* const v = static_cast<T*>(args.variables[2]);
    const C beta1 = detail::factor<T>(args, 3), beta2 = detail::factor<T>(args, 4);
    const C epsilon = detail::factor<T>(args, 5);
    const C lr = detail::factor<T>(args, 2) * math::sqrt(C(1) - detail::factor<T>(args, 1)) /
                 (C(1) - detail::factor<T>(args, 0));
    const C of_m = args.use_nesterov ? beta1 : C(1), of_gradient = args.use_nesterov ? C(1) - beta1 : C(0);
    detail::for_each_update<T, C>(thread, args, [&](std::int64_t i, C gradient) {
      const C old_m = static_cast<C>(m[i]), old_v = static_cast<C>(v[i]);
      const C new_m = old_m + (C(1) - beta1) * (gradient - old_m);
      const C new_v = old_v + (C(1) - beta2) * (gradient * gradient - old_v);
      m[i] = static_cast<T>(new_m);
      v[i] = static_cast<T>(new_v);
      const C direction = of_m * new_m + of_gradient * gradient;
      variable[i] = static_cast<T>(static_cast<C>(variable[i]) - lr * direction / (math::sqrt(new_v) + epsilon));
    });
  }
};

namespace detail {

template <class Numbers, class Floats>
struct UpdateBodiesOf;
template <class... Ns, class... Fs>
struct UpdateBodiesOf<TypeList<Ns...>, TypeList<Fs...>> {
  using type = TypeList<AssignUpdateBody<Add, Ns>..., AssignUpdateBody<Sub, Ns>..., GradientDescentBody<Fs>...,
                        MomentumBody<Fs>..., AdamBody<Fs>...>;
};

}  // namespace detail

using UpdateBodies =
    typename detail::UpdateBodiesOf<typename detail::OnlyElementwiseTypes<NumberTypes>::type, FloatTypes>::type;

}  // namespace dflow::cuda
