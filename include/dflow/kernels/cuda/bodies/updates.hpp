#pragma once

#include <dflow/kernels/cuda/bodies/elementwise.hpp>
#include <dflow/kernels/shared/update_rules.hpp>
#include <dflow/ops/math/binary.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

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

/// What a rule takes from `op/scalar_math.hpp`.
struct UpdateMath {
  template <class C>
  DFLOW_FN static C sqrt(C x) {
    return math::sqrt(x);
  }
};

/// An update by a rule of `kernels/shared/update_rules.hpp`.
template <template <class, class> class RuleOf, class T>
struct RuleUpdate {
  using C = WideType<T>;
  using Rule = RuleOf<C, UpdateMath>;
  static constexpr const char* name = Rule::name;
  static constexpr const char* sparse_name = Rule::sparse_name;
  static constexpr const char* joint_name = Rule::joint_name;
  static constexpr int num_variables = Rule::num_variables;
  static_assert(num_variables <= UpdateArgs::max_variables && Rule::num_factors <= UpdateArgs::max_factors);

  DFLOW_FN explicit RuleUpdate(const UpdateArgs& args)
      : RuleUpdate(args, std::make_index_sequence<Rule::num_factors>()) {
    for (int v = 0; v < num_variables; ++v) variables[v] = static_cast<T*>(args.variables[v]);
  }

  DFLOW_FN void operator()(std::int64_t i, C gradient) const {
    update(i, gradient, std::make_index_sequence<num_variables>());
  }

  T* variables[num_variables];
  Rule rule;

 private:
  struct Factors {
    C values[Rule::num_factors];
  };
  template <std::size_t... F>
  DFLOW_FN RuleUpdate(const UpdateArgs& args, std::index_sequence<F...>)
      : rule(Factors{{factor<T>(args, F)...}}.values, args.use_nesterov) {}

  template <std::size_t... V>
  DFLOW_FN void update(std::int64_t i, C gradient, std::index_sequence<V...>) const {
    C values[] = {static_cast<C>(variables[V][i])...};
    rule(gradient, values[V]...);
    ((variables[V][i] = static_cast<T>(values[V])), ...);
  }
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
template <template <class, class> class Rule, class T>
using RuleBody = DenseUpdateBody<detail::RuleUpdate<Rule, T>, T>;

namespace detail {

template <class Numbers, class Floats>
struct UpdateBodiesOf;
template <class... Ns, class... Fs>
struct UpdateBodiesOf<TypeList<Ns...>, TypeList<Fs...>> {
  using type =
      TypeList<AssignUpdateBody<Add, Ns>..., AssignUpdateBody<Sub, Ns>...,
               RuleBody<dflow::detail::GradientDescentRule, Fs>..., RuleBody<dflow::detail::MomentumRule, Fs>...,
               RuleBody<dflow::detail::AdamRule, Fs>..., RuleBody<dflow::detail::RmsPropRule, Fs>...>;
};

}  // namespace detail

using UpdateBodies = typename detail::UpdateBodiesOf<detail::DeviceElements<NumberTypes>, FloatTypes>::type;

}  // namespace dflow::cuda
