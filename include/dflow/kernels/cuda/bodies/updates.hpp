#pragma once

#include <dflow/kernels/cuda/bodies/elementwise.hpp>
#include <dflow/ops/math/binary.hpp>

#include <cstdint>
#include <type_traits>

namespace dflow::cuda {

/// Arguments to update a variable and its slots element by element.
struct UpdateArgs {
  static constexpr int max_variables = 3, max_factors = 6;

  std::int64_t n = 0;
  void* variables[max_variables] = {};
  const void* gradient = nullptr;
  const void* factors[max_factors] = {};  ///< one element each
  /// The slot for errors of earlier kernels in the step: if it has an error, nothing is written. Null if no kernel can
  /// have noted one.
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

// Updates: made of the arguments by each thread, and called for the elements that it changes.

namespace detail {

/// variable = O(variable, gradient)
template <class O, class T>
struct AssignUpdate {
  static constexpr const char* name = "assign update";
  static constexpr const char* joint_name = "joint assign updates";
  static constexpr int num_variables = 1;
  using C = ElementwiseComputeType<O, T>;

  DFLOW_FN explicit AssignUpdate(const UpdateArgs& args) : variable(static_cast<T*>(args.variables[0])) {}

  DFLOW_FN void operator()(std::int64_t i, C value) const {
    variable[i] = static_cast<T>(O::template apply<C>(static_cast<C>(variable[i]), value));
  }

  T* variable;
};

/// factors: lr. variable -= lr gradient
template <class T>
struct GradientDescentUpdate {
  static constexpr const char* name = "gradient descent";
  static constexpr const char* sparse_name = "sparse gradient descent";
  static constexpr const char* joint_name = "joint gradient descent";
  static constexpr int num_variables = 1;
  using C = WideType<T>;

  DFLOW_FN explicit GradientDescentUpdate(const UpdateArgs& args)
      : variable(static_cast<T*>(args.variables[0])), lr(factor<T>(args, 0)) {}

  DFLOW_FN void operator()(std::int64_t i, C gradient) const {
    variable[i] = static_cast<T>(static_cast<C>(variable[i]) - lr * gradient);
  }

  T* variable;
  C lr;
};

/// variables: the variable, the accumulator; factors: lr, momentum. As `ApplyMomentum` says.
template <class T>
struct MomentumUpdate {
  static constexpr const char* name = "momentum";
  static constexpr const char* sparse_name = "sparse momentum";
  static constexpr const char* joint_name = "joint momentum";
  static constexpr int num_variables = 2;
  using C = WideType<T>;

  DFLOW_FN explicit MomentumUpdate(const UpdateArgs& args)
      : variable(static_cast<T*>(args.variables[0])),
        accumulator(static_cast<T*>(args.variables[1])),
        lr(factor<T>(args, 0)),
        momentum(factor<T>(args, 1)),
        use_nesterov(args.use_nesterov) {}

  DFLOW_FN void operator()(std::int64_t i, C gradient) const {
    const C sum = static_cast<C>(accumulator[i]) * momentum + gradient;
    accumulator[i] = static_cast<T>(sum);
    const C direction = use_nesterov ? gradient + momentum * sum : sum;
    variable[i] = static_cast<T>(static_cast<C>(variable[i]) - lr * direction);
  }

  T *variable, *accumulator;
  C lr, momentum;
  bool use_nesterov;
};

/// variables: the variable, m, v; factors: beta1^t, beta2^t, lr, beta1, beta2, epsilon. As `ApplyAdam` says.
template <class T>
struct AdamUpdate {
  static constexpr const char* name = "adam";
  static constexpr const char* sparse_name = "sparse adam";
  static constexpr const char* joint_name = "joint adam";
  static constexpr int num_variables = 3;
  using C = WideType<T>;

  DFLOW_FN explicit AdamUpdate(const UpdateArgs& args)
      : variable(static_cast<T*>(args.variables[0])),
        m(static_cast<T*>(args.variables[1])),
        v(static_cast<T*>(args.variables[2])),
        beta1(factor<T>(args, 3)),
        beta2(factor<T>(args, 4)),
        epsilon(factor<T>(args, 5)),
        lr(factor<T>(args, 2) * math::sqrt(C(1) - factor<T>(args, 1)) / (C(1) - factor<T>(args, 0))),
        of_m(args.use_nesterov ? beta1 : C(1)),
        of_gradient(args.use_nesterov ? C(1) - beta1 : C(0)) {}

  DFLOW_FN void operator()(std::int64_t i, C gradient) const {
    const C old_m = static_cast<C>(m[i]), old_v = static_cast<C>(v[i]);
    const C new_m = old_m + (C(1) - beta1) * (gradient - old_m);
    const C new_v = old_v + (C(1) - beta2) * (gradient * gradient - old_v);
    m[i] = static_cast<T>(new_m);
    v[i] = static_cast<T>(new_v);
    const C direction = of_m * new_m + of_gradient * gradient;
    variable[i] = static_cast<T>(static_cast<C>(variable[i]) - lr * direction / (math::sqrt(new_v) + epsilon));
  }

  T *variable, *m, *v;
  C beta1, beta2, epsilon, lr, of_m, of_gradient;
};

}  // namespace detail

/// An update of all elements.
template <class Update, class T>
struct DenseUpdateBody {
  static constexpr const char* name = Update::name;
  static constexpr bool has_barriers = false;
  using Args = UpdateArgs;

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    const Update update(args);
    detail::for_each_update<T, typename Update::C>(thread, args, update);
  }
};
template <class O, class T>
using AssignUpdateBody = DenseUpdateBody<detail::AssignUpdate<O, T>, T>;
template <class T>
using GradientDescentBody = DenseUpdateBody<detail::GradientDescentUpdate<T>, T>;
template <class T>
using MomentumBody = DenseUpdateBody<detail::MomentumUpdate<T>, T>;
template <class T>
using AdamBody = DenseUpdateBody<detail::AdamUpdate<T>, T>;

namespace detail {

template <class Numbers, class Floats>
struct UpdateBodiesOf;
template <class... Ns, class... Fs>
struct UpdateBodiesOf<TypeList<Ns...>, TypeList<Fs...>> {
  using type = TypeList<AssignUpdateBody<Add, Ns>..., AssignUpdateBody<Sub, Ns>..., GradientDescentBody<Fs>...,
                        MomentumBody<Fs>..., AdamBody<Fs>...>;
};

}  // namespace detail

using UpdateBodies = typename detail::UpdateBodiesOf<detail::DeviceElements<NumberTypes>, FloatTypes>::type;

}  // namespace dflow::cuda
