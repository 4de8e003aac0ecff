#pragma once

#include <dflow/kernels/cuda/bodies/arrays.hpp>
#include <dflow/kernels/cuda/bodies/elementwise.hpp>
#include <dflow/op/conversion.hpp>

#include <cstdint>

namespace dflow::cuda {

/// y[i] = x[i] in another element type.
struct CastArgs {
  std::int64_t n = 0;
  const void* x = nullptr;
  void* y = nullptr;
};

template <class From, class To>
struct CastBody {
  static constexpr const char* name = "cast";
  static constexpr bool has_barriers = false;
  using Args = CastArgs;

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    for (std::int64_t i = thread.index(); i < args.n; i += thread.count()) {
      static_cast<To*>(args.y)[i] = dflow::detail::converted<To>(static_cast<const From*>(args.x)[i]);
    }
  }
};

/// y[i] = condition[i / row] ? a[i] : b[i]; y may be a or b.
struct SelectArgs {
  std::int64_t n = 0;
  std::int64_t row = 1;
  const bool* condition = nullptr;
  const void* a = nullptr;
  const void* b = nullptr;
  void* y = nullptr;
};

template <int bytes>
struct SelectBody {
  static constexpr const char* name = "select";
  static constexpr bool has_barriers = false;
  using Args = SelectArgs;

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    using Element = Bits<bytes>;
    for (std::int64_t i = thread.index(); i < args.n; i += thread.count()) {
      const void* const from = args.condition[i / args.row] ? args.a : args.b;
      static_cast<Element*>(args.y)[i] = static_cast<const Element*>(from)[i];
    }
  }
};

/// y[i, j] = params[indices[i], j], for indices in [0, limit).
struct GatherArgs {
  std::int64_t count = 0;  ///< of indices
  std::int64_t row = 0;    ///< elements; 0: the indices alone are looked at
  std::int64_t limit = 0;
  const void* params = nullptr;
  const void* indices = nullptr;
  void* y = nullptr;
  ErrorSlot* errors = nullptr;
  std::uint32_t kernel = 0;
};

template <int bytes, class Index>
struct GatherBody {
  static constexpr const char* name = "gather";
  static constexpr bool has_barriers = false;
  using Args = GatherArgs;

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    using Element = Bits<bytes>;
    const std::int64_t width = args.row == 0 ? 1 : args.row;
    for (std::int64_t i = thread.index(); i < args.count * width; i += thread.count()) {
      const std::int64_t index = static_cast<std::int64_t>(static_cast<const Index*>(args.indices)[i / width]);
      if (index < 0 || index >= args.limit) {
        note_error(thread, args.errors, args.kernel, [&](ErrorSlot& slot) {
          slot.position = i / width;
          *reinterpret_cast<std::int64_t*>(slot.values[0]) = index;
        });
      } else if (args.row != 0) {
        static_cast<Element*>(args.y)[i] = static_cast<const Element*>(args.params)[index * args.row + i % args.row];
      }
    }
  }
};

namespace detail {

template <class Froms, class Tos>
struct CastBodiesOf;
template <class... Fs, class... Ts>
struct CastBodiesOf<TypeList<Fs...>, TypeList<Ts...>> {
  template <class F>
  using From = TypeList<CastBody<F, Ts>...>;
  using type = concat_t<From<Fs>...>;
};

using CastTypes = DeviceElements<PlainTypes>;

template <class Index>
using GatherBodiesOf = TypeList<GatherBody<1, Index>, GatherBody<2, Index>, GatherBody<4, Index>, GatherBody<8, Index>,
                                GatherBody<16, Index>>;

}  // namespace detail

using CastBodies = typename detail::CastBodiesOf<detail::CastTypes, detail::CastTypes>::type;
using IndexBodies = concat_t<TypeList<SelectBody<1>, SelectBody<2>, SelectBody<4>, SelectBody<8>, SelectBody<16>>,
                             detail::GatherBodiesOf<std::int32_t>, detail::GatherBodiesOf<std::int64_t>>;

}  // namespace dflow::cuda
