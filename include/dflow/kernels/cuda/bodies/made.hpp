#pragma once

#include <dflow/core/dtype.hpp>
#include <dflow/kernels/cuda/bodies/arrays.hpp>
#include <dflow/kernels/cuda/bodies/elementwise.hpp>
#include <dflow/kernels/cuda/grid/error_slot.hpp>

#include <cstdint>
#include <type_traits>

namespace dflow::cuda {

/// y [outer, depth, inner]. For each index [outer, inner] in [0, depth) one element becomes *on.
struct OneHotArgs {
  std::int64_t count = 0;  ///< of indices
  std::int64_t depth = 0, inner = 1;
  const void* indices = nullptr;
  const void* on = nullptr;
  void* y = nullptr;
};

template <int bytes, class Index>
struct OneHotBody {
  static constexpr const char* name = "one hot";
  static constexpr bool has_barriers = false;
  using Args = OneHotArgs;

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    using Element = Bits<bytes>;
    for (std::int64_t i = thread.index(); i < args.count; i += thread.count()) {
      const std::int64_t at = static_cast<std::int64_t>(static_cast<const Index*>(args.indices)[i]);
      if (at < 0 || at >= args.depth) continue;
      static_cast<Element*>(args.y)[(i / args.inner * args.depth + at) * args.inner + i % args.inner] =
          *static_cast<const Element*>(args.on);
    }
  }
};

/// y[i] = start + i delta, rounded once; integers wrap.
template <class T>
struct RangeArgs {
  using Wide = std::conditional_t<std::is_integral_v<T>, std::uint64_t, double>;

  std::int64_t n = 0;
  Wide start = 0, delta = 0;
  T* y = nullptr;
};

template <class T>
struct RangeBody {
  static constexpr const char* name = "range";
  static constexpr bool has_barriers = false;
  using Args = RangeArgs<T>;

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    for (std::int64_t i = thread.index(); i < args.n; i += thread.count()) {
      args.y[i] = static_cast<T>(args.start + static_cast<typename Args::Wide>(i) * args.delta);
    }
  }
};

/// Matrices [rows, columns] with 0 outside of a band: `lower` diagonals below the main one and `upper` above it.
struct BandArgs {
  std::int64_t n = 0;  ///< elements of all
  std::int64_t rows = 0, columns = 0, lower = 0, upper = 0;
  const void* x = nullptr;
  void* y = nullptr;  ///< may be x
};

template <int bytes>
struct BandBody {
  static constexpr const char* name = "band";
  static constexpr bool has_barriers = false;
  using Args = BandArgs;

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    using Element = Bits<bytes>;
    for (std::int64_t i = thread.index(); i < args.n; i += thread.count()) {
      const std::int64_t column = i % args.columns, row = i / args.columns % args.rows;
      const bool is_inside = row - column <= args.lower && column - row <= args.upper;
      static_cast<Element*>(args.y)[i] = is_inside ? static_cast<const Element*>(args.x)[i] : Element{};
    }
  }
};

/// Notes whether x [n] holds infinity or NaN.
struct CheckFiniteArgs {
  static constexpr std::uint32_t has_nan = 1, has_inf = 2;  ///< the error's detail

  std::int64_t n = 0;
  const void* x = nullptr;
  ErrorSlot* errors = nullptr;
  std::uint32_t kernel = 0;
};

template <class T>
struct CheckFiniteBody {
  static constexpr const char* name = "check finite";
  static constexpr bool has_barriers = false;
  using Args = CheckFiniteArgs;

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    using C = detail::WideType<T>;
    const auto at = [&](std::int64_t i) { return static_cast<C>(static_cast<const T*>(args.x)[i]); };
    for (std::int64_t i = thread.index(); i < args.n; i += thread.count()) {
      if (at(i) - at(i) == C(0)) continue;
      // The thread that finds the step's first error looks at all elements.
      note_error(thread, args.errors, args.kernel, [&](ErrorSlot& slot) {
        for (std::int64_t k = 0; k < args.n; ++k) {
          if (at(k) - at(k) == C(0)) continue;
          slot.detail |= at(k) == at(k) ? Args::has_inf : Args::has_nan;
        }
      });
      return;
    }
  }
};

namespace detail {

template <class Floats>
struct CheckBodiesOf;
template <class... Fs>
struct CheckBodiesOf<TypeList<Fs...>> {
  using type = TypeList<CheckFiniteBody<Fs>...>;
};

template <class Index>
using OneHotBodiesOf = TypeList<OneHotBody<1, Index>, OneHotBody<2, Index>, OneHotBody<4, Index>, OneHotBody<8, Index>,
                                OneHotBody<16, Index>>;
template <class Reals>
struct RangeBodiesOf;
template <class... Rs>
struct RangeBodiesOf<TypeList<Rs...>> {
  using type = TypeList<RangeBody<Rs>...>;
};

}  // namespace detail

using MadeBodies = concat_t<detail::OneHotBodiesOf<std::uint8_t>, detail::OneHotBodiesOf<std::int32_t>,
                            detail::OneHotBodiesOf<std::int64_t>, typename detail::RangeBodiesOf<RealTypes>::type,
                            typename detail::CheckBodiesOf<FloatTypes>::type,
                            TypeList<BandBody<1>, BandBody<2>, BandBody<4>, BandBody<8>, BandBody<16>>>;

}  // namespace dflow::cuda
