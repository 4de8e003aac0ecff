#pragma once

#include <dflow/kernels/cuda/bodies/arrays.hpp>
#include <dflow/kernels/cuda/bodies/reductions.hpp>
#include <dflow/kernels/cuda/bodies/updates.hpp>
#include <dflow/ops/math/binary.hpp>

#include <cstdint>
#include <type_traits>

namespace dflow::cuda {

/// Keys to sort rows by: the rows' indices, and `limit` for an index outside [0, limit). The values are the rows'
/// places.
struct RowKeysArgs {
  std::int64_t count = 0, limit = 0;
  const void* indices = nullptr;
  std::uint64_t* keys = nullptr;
  std::int64_t* places = nullptr;
  bool drops_negative = false;  ///< else they are noted as errors, as all others outside
  ErrorSlot* errors = nullptr;
  std::uint32_t kernel = 0;
};

template <class Index>
struct RowKeysBody {
  static constexpr const char* name = "keys of rows";
  static constexpr bool has_barriers = false;
  using Args = RowKeysArgs;

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    for (std::int64_t i = thread.index(); i < args.count; i += thread.count()) {
      const std::int64_t index = static_cast<std::int64_t>(static_cast<const Index*>(args.indices)[i]);
      const bool is_inside = index >= 0 && index < args.limit;
      if (!is_inside && !(args.drops_negative && index < 0)) {
        note_error(thread, args.errors, args.kernel, [&](ErrorSlot& slot) {
          slot.position = i;
          *reinterpret_cast<std::int64_t*>(slot.values[0]) = index;
        });
      }
      args.keys[i] = static_cast<std::uint64_t>(is_inside ? index : args.limit);
      args.places[i] = i;
    }
  }
};

/// Notes an error, of `detail` 1, where an element is 0.
struct NonZeroArgs {
  std::int64_t n = 0;
  const void* x = nullptr;
  ErrorSlot* errors = nullptr;
  std::uint32_t kernel = 0;
};

template <class T>
struct NonZeroBody {
  static constexpr const char* name = "divisors that are 0";
  static constexpr bool has_barriers = false;
  using Args = NonZeroArgs;

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    for (std::int64_t i = thread.index(); i < args.n; i += thread.count()) {
      if (static_cast<const T*>(args.x)[i] != T(0)) continue;
      note_error(thread, args.errors, args.kernel, [](ErrorSlot& slot) { slot.detail = 1; });
    }
  }
};

/// Rows of variables and the values for them, sorted: `keys` of the rows, `places` in `values`.
struct RowUpdateArgs {
  UpdateArgs update;  ///< gradient: the values [n, row]; n: elements of all values
  std::int64_t count = 0, row = 0, limit = 0;
  const std::uint64_t* keys = nullptr;
  const std::int64_t* places = nullptr;
  bool repeats = false;  ///< one value stands for all
};

namespace detail {

/// Calls body(first, column, at) for the elements of the rows that begin a run of equal keys; `at`: of the variable.
template <class Thread, class Body>
DFLOW_FN void for_each_row(const Thread& thread, const RowUpdateArgs& args, const Body& body) {
  if (args.update.errors != nullptr && args.update.errors->kernel != 0) return;
  for (std::int64_t i = thread.index(); i < args.count * args.row; i += thread.count()) {
    const std::int64_t first = i / args.row, column = i % args.row;
    const std::uint64_t key = args.keys[first];
    if (key >= static_cast<std::uint64_t>(args.limit) || (first > 0 && args.keys[first - 1] == key)) continue;
    body(first, column, static_cast<std::int64_t>(key) * args.row + column);
  }
}

/// Calls take(value) for each value of an element, in the order in which the values were given.
template <class T, class Take>
DFLOW_FN void for_each_value(const RowUpdateArgs& args, std::int64_t first, std::int64_t column, const Take& take) {
  const T* const values = static_cast<const T*>(args.update.gradient);
  for (std::int64_t i = first; i < args.count && args.keys[i] == args.keys[first]; ++i) {
    take(values[args.repeats ? 0 : args.places[i] * args.row + column]);
  }
}

/// Their sum.
template <class T>
DFLOW_FN SumType<T> sum_of_values(const RowUpdateArgs& args, std::int64_t first, std::int64_t column) {
  SumType<T> sum(0);
  for_each_value<T>(args, first, column, [&](T value) { sum += widened(value); });
  return sum;
}

}  // namespace detail

/// variable = O(variable, value) for one after the other; 16-bit floats are rounded once.
template <class O, class T>
struct ScatterBody {
  static constexpr const char* name = "scatter";
  static constexpr bool has_barriers = false;
  using Args = RowUpdateArgs;

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    using C = detail::WideType<T>;
    T* const variable = static_cast<T*>(args.update.variables[0]);
    detail::for_each_row(thread, args, [&](std::int64_t first, std::int64_t column, std::int64_t at) {
      C result = static_cast<C>(variable[at]);
      detail::for_each_value<T>(args, first, column, [&](T value) {
        result = static_cast<C>(O::template apply<C>(result, static_cast<C>(value)));
      });
      variable[at] = static_cast<T>(result);
    });
  }
};

/// variable = value, the last one.
template <int bytes>
struct ScatterUpdateBody {
  static constexpr const char* name = "scatter update";
  static constexpr bool has_barriers = false;
  using Args = RowUpdateArgs;

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    using Element = Bits<bytes>;
    Element* const variable = static_cast<Element*>(args.update.variables[0]);
    detail::for_each_row(thread, args, [&](std::int64_t first, std::int64_t column, std::int64_t at) {
      detail::for_each_value<Element>(args, first, column, [&](const Element& value) { variable[at] = value; });
    });
  }
};

/// variable = the sum of the values.
template <class T>
struct SegmentSumBody {
  static constexpr const char* name = "segment sum";
  static constexpr bool has_barriers = false;
  using Args = RowUpdateArgs;

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    detail::for_each_row(thread, args, [&](std::int64_t first, std::int64_t column, std::int64_t at) {
      static_cast<T*>(args.update.variables[0])[at] = static_cast<T>(detail::sum_of_values<T>(args, first, column));
    });
  }
};

/// Applies `Update` to the rows of the variables that have a gradient; rows of equal index are added up. Update: of T,
/// the same type that updates all elements.
template <class Update, class T>
struct SparseUpdateBody {
  static constexpr const char* name = Update::sparse_name;
  static constexpr bool has_barriers = false;
  using Args = RowUpdateArgs;

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    const Update update(args.update);
    detail::for_each_row(thread, args, [&](std::int64_t first, std::int64_t column, std::int64_t at) {
      update(at, detail::sum_of_values<T>(args, first, column));
    });
  }
};

namespace detail {

template <class O, class Types>
struct ScatterBodiesOf;
template <class O, class... Ts>
struct ScatterBodiesOf<O, TypeList<Ts...>> {
  using type = TypeList<ScatterBody<O, Ts>...>;
};
template <class Types, class... Os>
using ScattersOf = concat_t<typename ScatterBodiesOf<Os, Types>::type...>;

template <class Floats, class Numbers, class Integers>
struct RowBodiesOf;
template <class... Fs, class... Ns, class... Is>
struct RowBodiesOf<TypeList<Fs...>, TypeList<Ns...>, TypeList<Is...>> {
  using type =
      TypeList<RowKeysBody<std::int32_t>, RowKeysBody<std::int64_t>, ScatterUpdateBody<1>, ScatterUpdateBody<2>,
               ScatterUpdateBody<4>, ScatterUpdateBody<8>, ScatterUpdateBody<16>, SegmentSumBody<Ns>...,
               NonZeroBody<Is>..., SparseUpdateBody<RuleUpdate<dflow::detail::GradientDescentRule, Fs>, Fs>...,
               SparseUpdateBody<RuleUpdate<dflow::detail::MomentumRule, Fs>, Fs>...,
               SparseUpdateBody<RuleUpdate<dflow::detail::AdamRule, Fs>, Fs>...,
               SparseUpdateBody<RuleUpdate<dflow::detail::RmsPropRule, Fs>, Fs>...>;
};

}  // namespace detail

using ScatterBodies = concat_t<detail::ScattersOf<detail::DeviceElements<NumberTypes>, Add, Sub, Mul, Div>,
                               detail::ScattersOf<RealTypes, Minimum, Maximum>>;
using RowBodies = typename detail::RowBodiesOf<FloatTypes, detail::DeviceElements<NumberTypes>, IntTypes>::type;

}  // namespace dflow::cuda
