#pragma once

#include <dflow/kernels/cuda/bodies/elementwise.hpp>
#include <dflow/ops/math/binary.hpp>

#include <cstdint>
#include <limits>
#include <type_traits>

namespace dflow::cuda {

/// x, its dimensions joined to runs that are kept or reduced, becomes y [outputs].
struct ReduceArgs {
  static constexpr int max_runs = 8;

  const void* x = nullptr;
  void* y = nullptr;
  std::int64_t outputs = 1;
  std::int64_t reduced = 1;  ///< elements for each of them
  std::int32_t num_kept_runs = 0, num_reduced_runs = 0;
  std::int64_t kept_extents[max_runs] = {}, kept_strides[max_runs] = {};
  std::int64_t reduced_extents[max_runs] = {}, reduced_strides[max_runs] = {};
};

/// The position of the first maximum, or minimum, of x [outer, along, inner]: y [outer, inner].
struct ArgArgs {
  const void* x = nullptr;
  std::int64_t* y = nullptr;
  std::int64_t outer = 1, along = 1, inner = 1;
};

/// y[i] = x[0][i] + x[1][i] + ...
struct AddNArgs {
  static constexpr int max_inputs = 16;

  std::int64_t n = 0;
  std::int32_t num_inputs = 0;
  const void* x[max_inputs] = {};
  void* y = nullptr;
  // For 16-bit floats, which are rounded once: float [n], null unless there are more inputs than one launch takes.
  const float* sums_before = nullptr;
  float* sums = nullptr;
};

namespace detail {

/// The type in which sums and products are computed: 64 bits for integers, which wrap.
template <class T>
using SumType = std::conditional_t<std::is_integral_v<T>, std::uint64_t, WideType<T>>;

template <class T>
DFLOW_FN SumType<T> widened(T x) {
  if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(x));
  } else {
    return static_cast<SumType<T>>(x);
  }
}

// A reduction: `first` of no elements, `of` an element, `combined` of two parts, `finished` of all.

struct SumReduction {
  template <class T>
  using Part = SumType<T>;
  template <class T>
  DFLOW_FN static Part<T> first() {
    return Part<T>(0);
  }
  template <class T>
  DFLOW_FN static Part<T> of(T x) {
    return widened(x);
  }
  template <class T>
  DFLOW_FN static Part<T> combined(Part<T> a, Part<T> b) {
    return a + b;
  }
  template <class T>
  DFLOW_FN static T finished(Part<T> part, std::int64_t) {
    return static_cast<T>(part);
  }
};

struct MeanReduction : SumReduction {
  template <class T>
  DFLOW_FN static T finished(Part<T> part, std::int64_t n) {
    if constexpr (!std::is_integral_v<T>) {
      return static_cast<T>(part / static_cast<Part<T>>(n));
    } else {
      using Quotient = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
      return n == 0 ? T(0) : static_cast<T>(static_cast<Quotient>(part) / static_cast<Quotient>(n));
    }
  }
};

struct ProdReduction : SumReduction {
  template <class T>
  DFLOW_FN static Part<T> first() {
    return Part<T>(1);
  }
  template <class T>
  DFLOW_FN static Part<T> combined(Part<T> a, Part<T> b) {
    return a * b;
  }
};

/// Half the sum of the squares.
struct HalfSquareReduction : SumReduction {
  template <class T>
  DFLOW_FN static Part<T> of(T x) {
    return widened(x) * widened(x);
  }
  template <class T>
  DFLOW_FN static T finished(Part<T> part, std::int64_t) {
    return static_cast<T>(part * Part<T>(0.5f));
  }
};

template <class O>
struct ExtremeReduction {
  template <class T>
  using Part = WideType<T>;
  template <class T>
  DFLOW_FN static Part<T> first() {
    using Limits = std::numeric_limits<Part<T>>;
    constexpr bool is_max = std::is_same_v<O, Maximum>;
    if constexpr (Limits::has_infinity) {
      constexpr Part<T> infinity = Limits::infinity();
      return is_max ? -infinity : infinity;
    } else {
      constexpr Part<T> lowest = Limits::lowest(), highest = Limits::max();
      return is_max ? lowest : highest;
    }
  }
  template <class T>
  DFLOW_FN static Part<T> of(T x) {
    return static_cast<Part<T>>(x);
  }
  template <class T>
  DFLOW_FN static Part<T> combined(Part<T> a, Part<T> b) {
    return O::template apply<Part<T>>(a, b);
  }
  template <class T>
  DFLOW_FN static T finished(Part<T> part, std::int64_t) {
    return static_cast<T>(part);
  }
};

template <bool is_all>
struct LogicalReduction {
  template <class>
  using Part = bool;
  template <class>
  DFLOW_FN static bool first() {
    return is_all;
  }
  template <class>
  DFLOW_FN static bool of(bool x) {
    return x;
  }
  template <class>
  DFLOW_FN static bool combined(bool a, bool b) {
    return is_all ? a && b : a || b;
  }
  template <class>
  DFLOW_FN static bool finished(bool part, std::int64_t) {
    return part;
  }
};

/// The offset of element `index` of the runs, in their order.
DFLOW_FN inline std::int64_t offset_in(std::int64_t index, int num_runs, const std::int64_t* extents,
                                       const std::int64_t* strides) {
  std::int64_t offset = 0;
  for (int r = num_runs - 1; r > 0; --r) {
    offset += index % extents[r] * strides[r];
    index /= extents[r];
  }
  return num_runs == 0 ? 0 : offset + index * strides[0];
}

/// Reduces the elements begin, begin + step, ... of output `o`. Adds them in short sums, so that errors grow slowly.
template <class R, class T>
DFLOW_FN typename R::template Part<T> reduced_part(const ReduceArgs& args, std::int64_t o, std::int64_t begin,
                                                   std::int64_t step) {
  constexpr int length = 64;
  const T* const x = static_cast<const T*>(args.x);  // null where there are no elements
  const std::int64_t first = offset_in(o, args.num_kept_runs, args.kept_extents, args.kept_strides);
  auto total = R::template first<T>(), part = total;
  int num = 0;
  for (std::int64_t i = begin; i < args.reduced; i += step) {
    const T element = x[first + offset_in(i, args.num_reduced_runs, args.reduced_extents, args.reduced_strides)];
    part = R::template combined<T>(part, R::template of<T>(element));
    if (++num == length) {
      total = R::template combined<T>(total, part);
      part = R::template first<T>();
      num = 0;
    }
  }
  return R::template combined<T>(total, part);
}

}  // namespace detail

/// Each thread computes outputs by itself.
template <class R, class T>
struct ReduceByThreadBody {
  static constexpr const char* name = "reduce, by thread";
  static constexpr bool has_barriers = false;
  using Args = ReduceArgs;

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    for (std::int64_t o = thread.index(); o < args.outputs; o += thread.count()) {
      static_cast<T*>(args.y)[o] = R::template finished<T>(detail::reduced_part<R, T>(args, o, 0, 1), args.reduced);
    }
  }
};

/// The threads of a block compute an output together. The parts are joined in one order.
template <class R, class T>
struct ReduceByBlockBody {
  static constexpr const char* name = "reduce, by block";
  static constexpr bool has_barriers = true;
  static constexpr std::uint32_t threads = 256;
  using Args = ReduceArgs;

  struct Shared {
    typename R::template Part<T> parts[threads];
  };

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    Shared& shared = thread.template shared<Shared>();
    const std::uint32_t index = thread.index_in_block();
    for (std::int64_t o = thread.block(); o < args.outputs; o += thread.blocks()) {
      shared.parts[index] = detail::reduced_part<R, T>(args, o, index, threads);
      for (std::uint32_t half = threads / 2; half > 0; half /= 2) {
        thread.barrier();
        if (index < half) {
          shared.parts[index] = R::template combined<T>(shared.parts[index], shared.parts[index + half]);
        }
      }
      if (index == 0) static_cast<T*>(args.y)[o] = R::template finished<T>(shared.parts[0], args.reduced);
      thread.barrier();
    }
  }
};

/// Skips NaN; 0 if nothing is left.
template <class T, bool is_max>
struct ArgBody {
  static constexpr const char* name = is_max ? "argmax" : "argmin";
  static constexpr bool has_barriers = false;
  using Args = ArgArgs;

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    using Wide = detail::WideType<T>;
    for (std::int64_t o = thread.index(); o < args.outer * args.inner; o += thread.count()) {
      const T* const x = static_cast<const T*>(args.x) + o / args.inner * args.along * args.inner + o % args.inner;
      std::int64_t at = 0;
      bool is_found = false;
      Wide best = Wide(0);
      for (std::int64_t i = 0; i < args.along; ++i) {
        const Wide value = static_cast<Wide>(x[i * args.inner]);
        const bool is_better = is_found ? (is_max ? value > best : value < best) : value == value;
        if (!is_better) continue;
        is_found = true;
        best = value;
        at = i;
      }
      args.y[o] = at;
    }
  }
};

/// 16-bit floats are added in float, integers wrap.
template <class T>
struct AddNBody {
  static constexpr const char* name = "add n";
  static constexpr bool has_barriers = false;
  using Args = AddNArgs;

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    for (std::int64_t i = thread.index(); i < args.n; i += thread.count()) {
      detail::SumType<T> sum = detail::widened(static_cast<const T*>(args.x[0])[i]);
      for (int k = 1; k < args.num_inputs; ++k) sum = sum + detail::widened(static_cast<const T*>(args.x[k])[i]);
      if constexpr (math::HalfPrecision<T>) {
        if (args.sums_before != nullptr) sum = args.sums_before[i] + sum;
        if (args.sums != nullptr) {
          args.sums[i] = sum;
          continue;
        }
      }
      static_cast<T*>(args.y)[i] = static_cast<T>(sum);
    }
  }
};

namespace detail {

template <class R, class T>
using BodiesOfReduction = TypeList<ReduceByThreadBody<R, T>, ReduceByBlockBody<R, T>>;

template <class Numbers>
struct NumberReductions;
template <class... Ts>
struct NumberReductions<TypeList<Ts...>> {
  template <class R>
  using Of = concat_t<BodiesOfReduction<R, Ts>...>;
  using Sums = concat_t<Of<SumReduction>, Of<MeanReduction>, Of<ProdReduction>, TypeList<AddNBody<Ts>...>>;
  using Extremes = concat_t<Of<ExtremeReduction<Maximum>>, Of<ExtremeReduction<Minimum>>,
                            TypeList<ArgBody<Ts, true>...>, TypeList<ArgBody<Ts, false>...>>;
};

}  // namespace detail

using SumBodies = typename detail::NumberReductions<detail::DeviceElements<NumberTypes>>::Sums;
using ExtremeBodies = concat_t<typename detail::NumberReductions<RealTypes>::Extremes,
                               detail::BodiesOfReduction<detail::LogicalReduction<true>, bool>,
                               detail::BodiesOfReduction<detail::LogicalReduction<false>, bool>>;

}  // namespace dflow::cuda
