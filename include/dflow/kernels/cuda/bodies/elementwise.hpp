#pragma once

/// Public: the bodies of elementwise ops for GPUs.

#include <dflow/kernels/cuda/grid/error_slot.hpp>
#include <dflow/op/complex_math.hpp>
#include <dflow/op/derivative.hpp>
#include <dflow/op/elementwise.hpp>
#include <dflow/op/op_table.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace dflow::cuda {

/// The most dimensions of broadcasting inputs, after neighbours are joined where possible.
inline constexpr int max_broadcast_rank = 8;

template <int num_inputs>
struct DenseArgs {
  std::int64_t n = 0;
  const void* x[num_inputs] = {};
  void* y = nullptr;
  ErrorSlot* errors = nullptr;  ///< null unless the op checks its elements
  std::uint32_t kernel = 0;     ///< which of the step's kernels it is, for errors
  std::uint32_t repeated = 0;   ///< bit i: input i is one element
};

template <int num_inputs>
struct BroadcastArgs {
  std::int64_t n = 0;
  const void* x[num_inputs] = {};
  void* y = nullptr;
  ErrorSlot* errors = nullptr;
  std::uint32_t kernel = 0;
  std::int32_t rank = 0;
  std::int64_t extents[max_broadcast_rank] = {};
  std::int64_t strides[num_inputs][max_broadcast_rank] = {};  ///< in elements; 0 where the input is repeated
};

namespace detail {

using dflow::detail::For;

/// The type in which elements are compared; sums, products and updates of floating-point numbers are computed in it
/// too.
template <class T>
using WideType = std::conditional_t<math::HalfPrecision<T>, float, T>;

/// y[i] of an elementwise op, from one element of each input.
template <class O, class T, class Thread, class Args, std::size_t... I>
DFLOW_FN void compute_element(const Thread& thread, const Args& args, std::int64_t i,
                              const std::int64_t (&at)[sizeof...(I)], std::index_sequence<I...>) {
  using C = ElementwiseComputeType<O, T>;
  using R = ElementwiseStoredType<O, T>;
  if constexpr (ChecksElements<O, For<T, I>...>) {
    // The host finds the error's text by the same check of the same elements.
    if (O::check(static_cast<const T*>(args.x[I])[at[I]]...) != nullptr) {
      note_error(thread, args.errors, args.kernel, [&](ErrorSlot& slot) {
        slot.position = i;
        (static_cast<void>(*reinterpret_cast<T*>(slot.values[I]) = static_cast<const T*>(args.x[I])[at[I]]), ...);
      });
      return;
    }
  }
  static_cast<R*>(args.y)[i] =
      static_cast<R>(O::template apply<C>(static_cast<C>(static_cast<const T*>(args.x[I])[at[I]])...));
}

}  // namespace detail

/// y[i] = O(x0[i], x1[i], ...) for all i; an input may be one element for all of them, and y may be an input.
template <class O, class T>
struct DenseBody {
  static constexpr const char* name = "elementwise";
  static constexpr bool has_barriers = false;
  static constexpr int num_inputs = elementwise_arity<O>;
  using Args = DenseArgs<num_inputs>;

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    for (std::int64_t i = thread.index(); i < args.n; i += thread.count()) {
      std::int64_t at[num_inputs];
      for (int k = 0; k < num_inputs; ++k) at[k] = (args.repeated >> k & 1u) != 0 ? 0 : i;
      detail::compute_element<O, T>(thread, args, i, at, ArgumentsOf<O>{});
    }
  }
};

/// The same with inputs broadcast to the shape of y.
template <class O, class T>
struct BroadcastBody {
  static constexpr const char* name = "elementwise, broadcast";
  static constexpr bool has_barriers = false;
  static constexpr int num_inputs = elementwise_arity<O>;
  using Args = BroadcastArgs<num_inputs>;

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    for (std::int64_t i = thread.index(); i < args.n; i += thread.count()) {
      std::int64_t at[num_inputs] = {};
      std::int64_t rest = i;
      for (int d = args.rank - 1; d >= 0; --d) {
        const std::int64_t index = d == 0 ? rest : rest % args.extents[d];
        rest /= args.extents[d];
        for (int k = 0; k < num_inputs; ++k) at[k] += index * args.strides[k][d];
      }
      detail::compute_element<O, T>(thread, args, i, at, ArgumentsOf<O>{});
    }
  }
};

namespace detail {

template <class O, class T>
struct BodiesOfOp {
  using type = std::conditional_t<(elementwise_arity<O> > 1), TypeList<DenseBody<O, T>, BroadcastBody<O, T>>,
                                  TypeList<DenseBody<O, T>>>;
};

template <class O, class Types>
struct BodiesOfTypes;
template <class O, class... Ts>
struct BodiesOfTypes<O, TypeList<Ts...>> {
  using type = concat_t<typename BodiesOfOp<O, Ts>::type...>;
};

}  // namespace detail

/// A type that the expressions of elementwise ops are computed in on a GPU, complex numbers as `math::Complex`: numbers
/// and bool.
template <class T>
inline constexpr bool is_elementwise_type = contains_v<T, PlainTypes>;
/// The type of an element in a body.
using math::DeviceElement;

namespace detail {

template <class Types>
struct DeviceElementsOf;
template <class... Ts>
struct DeviceElementsOf<TypeList<Ts...>> {
  using type = concat_t<std::conditional_t<is_elementwise_type<Ts>, TypeList<DeviceElement<Ts>>, TypeList<>>...>;
};

/// A list of element types as bodies use them; strings are left out.
template <class Types>
using DeviceElements = typename DeviceElementsOf<Types>::type;

template <class O>
using ElementwiseTypesOf = DeviceElements<element_t<0, typename O::TypeParams>>;

template <class Ops>
struct BodiesOfOps;
template <class... Ops>
struct BodiesOfOps<TypeList<Ops...>> {
  using type = concat_t<typename BodiesOfTypes<Ops, ElementwiseTypesOf<Ops>>::type...>;
};

}  // namespace detail

/// All bodies of a list of elementwise ops and of the derivatives that their gradients build:
/// `DFLOW_INSTANTIATE_BODIES(ElementwiseBodies<UnaryOps>);`
template <class Ops>
using ElementwiseBodies = typename detail::BodiesOfOps<typename dflow::detail::WithAllDerivatives<Ops>::type>::type;

}  // namespace dflow::cuda
