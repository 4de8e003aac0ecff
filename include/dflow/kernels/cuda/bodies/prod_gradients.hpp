#pragma once

#include <dflow/kernels/cuda/bodies/reductions.hpp>
#include <dflow/ops/reduction/prod_gradient.hpp>

#include <cstdint>

namespace dflow::cuda {

/// Each element of y is made of all other elements of its group. A reduction of x would make one output of a group.
struct OthersArgs {
  ReduceArgs groups;         ///< x, and y of the same shape
  const void* dy = nullptr;  ///< of gradients
  void* before = nullptr;    ///< scratch: a part for each element
};

namespace detail {

/// The product of all others.
template <class T>
struct OtherProducts {
  using Part = WideType<T>;
  DFLOW_FN static Part first() { return Part(1); }
  DFLOW_FN static Part of(const OthersArgs& args, std::int64_t at) {
    return static_cast<Part>(static_cast<const T*>(args.groups.x)[at]);
  }
  DFLOW_FN static Part combined(Part a, Part b) { return a * b; }
  DFLOW_FN static T finished(Part part) { return static_cast<T>(part); }
};

/// The derivative part of the same product of dual numbers x + dy e.
template <class T>
struct OtherProductGradients {
  using Number = WideType<T>;
  struct Part {
    Number value, derivative;
  };
  DFLOW_FN static Part first() { return {Number(1), Number(0)}; }
  DFLOW_FN static Part of(const OthersArgs& args, std::int64_t at) {
    return {static_cast<Number>(static_cast<const T*>(args.groups.x)[at]),
            static_cast<Number>(static_cast<const T*>(args.dy)[at])};
  }
  DFLOW_FN static Part combined(Part a, Part b) {
    return {a.value * b.value, a.value * b.derivative + a.derivative * b.value};
  }
  DFLOW_FN static T finished(Part part) { return static_cast<T>(part.derivative); }
};

DFLOW_FN inline std::int64_t place_in_group(const ReduceArgs& args, std::int64_t first, std::int64_t i) {
  return first + offset_in(i, args.num_reduced_runs, args.reduced_extents, args.reduced_strides);
}

/// Makes elements [begin, end) of the group that begins at `first` from the parts before and behind them.
template <class P, class T>
DFLOW_FN void make_of_others(const OthersArgs& args, std::int64_t first, std::int64_t begin, std::int64_t end,
                             typename P::Part before, typename P::Part behind) {
  auto* const befores = static_cast<typename P::Part*>(args.before);
  for (std::int64_t i = begin; i < end; ++i) {
    const std::int64_t at = place_in_group(args.groups, first, i);
    befores[at] = before;
    before = P::combined(before, P::of(args, at));
  }
  for (std::int64_t i = end; i-- > begin;) {
    const std::int64_t at = place_in_group(args.groups, first, i);
    const auto others = P::combined(befores[at], behind);
    behind = P::combined(behind, P::of(args, at));
    static_cast<T*>(args.groups.y)[at] = P::finished(others);
  }
}

}  // namespace detail

/// Each thread computes groups by itself.
template <class P, class T>
struct OthersByThreadBody {
  static constexpr const char* name = "product of others, by thread";
  static constexpr bool has_barriers = false;
  using Args = OthersArgs;

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    const ReduceArgs& groups = args.groups;
    for (std::int64_t o = thread.index(); o < groups.outputs; o += thread.count()) {
      const std::int64_t first = detail::offset_in(o, groups.num_kept_runs, groups.kept_extents, groups.kept_strides);
      detail::make_of_others<P, T>(args, first, 0, groups.reduced, P::first(), P::first());
    }
  }
};

/// The threads of a block compute a group together, a stretch each.
template <class P, class T>
struct OthersByBlockBody {
  static constexpr const char* name = "product of others, by block";
  static constexpr bool has_barriers = true;
  static constexpr std::uint32_t threads = 256;
  using Args = OthersArgs;

  struct Shared {
    typename P::Part parts[threads];
  };

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    Shared& shared = thread.template shared<Shared>();
    const ReduceArgs& groups = args.groups;
    const std::int64_t index = thread.index_in_block(), length = (groups.reduced + threads - 1) / threads;
    const std::int64_t begin = index * length < groups.reduced ? index * length : groups.reduced;
    const std::int64_t end = begin + length < groups.reduced ? begin + length : groups.reduced;
    for (std::int64_t o = thread.block(); o < groups.outputs; o += thread.blocks()) {
      const std::int64_t first = detail::offset_in(o, groups.num_kept_runs, groups.kept_extents, groups.kept_strides);
      typename P::Part part = P::first();
      for (std::int64_t i = begin; i < end; ++i) {
        part = P::combined(part, P::of(args, detail::place_in_group(groups, first, i)));
      }
      shared.parts[index] = part;
      thread.barrier();
      typename P::Part before = P::first(), behind = P::first();
      for (std::int64_t k = 0; k < index; ++k) before = P::combined(before, shared.parts[k]);
      for (std::int64_t k = threads; --k > index;) behind = P::combined(behind, shared.parts[k]);
      detail::make_of_others<P, T>(args, first, begin, end, before, behind);
      thread.barrier();
    }
  }
};

namespace detail {

template <class Elements>
struct OthersBodiesOf;
template <class... Ts>
struct OthersBodiesOf<TypeList<Ts...>> {
  template <template <class> class P>
  using Of = concat_t<TypeList<OthersByThreadBody<P<Ts>, Ts>, OthersByBlockBody<P<Ts>, Ts>>...>;
  using type = concat_t<Of<OtherProducts>, Of<OtherProductGradients>>;
};

}  // namespace detail

using OthersBodies =
    typename detail::OthersBodiesOf<detail::DeviceElements<element_t<0, ExclusiveProd::TypeParams>>>::type;

}  // namespace dflow::cuda
