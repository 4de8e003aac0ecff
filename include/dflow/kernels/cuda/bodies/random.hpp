#pragma once

#include <dflow/base/type_list.hpp>
#include <dflow/core/dtype.hpp>
#include <dflow/kernels/shared/random_distributions.hpp>

#include <cstdint>

namespace dflow::cuda {

/// y[0..n) from a part of a stream: value i depends on that and on i alone.
template <class Distribution>
struct RandomArgs {
  std::int64_t n = 0;
  PhiloxStream stream = {};
  Distribution distribution = {};
  void* y = nullptr;
};

template <class T, class Distribution>
struct RandomBody {
  static constexpr const char* name = "random numbers";
  static constexpr bool has_barriers = false;
  using Args = RandomArgs<Distribution>;

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    constexpr std::int64_t per_group = Distribution::values_per_group;
    const std::int64_t groups = args.n / per_group + (args.n % per_group != 0 ? 1 : 0);
    for (std::int64_t group = thread.index(); group < groups; group += thread.count()) {
      PhiloxStream part = args.stream;
      part.skip(static_cast<std::uint64_t>(group) * Distribution::groups_apart);
      T values[per_group];
      args.distribution(part, values);
      T* const to = static_cast<T*>(args.y) + group * per_group;
      for (std::int64_t i = 0; i < per_group && group * per_group + i < args.n; ++i) to[i] = values[i];
    }
  }
};

namespace detail {

template <class Floats, class Integers>
struct RandomBodiesOf;
template <class... Fs, class... Is>
struct RandomBodiesOf<TypeList<Fs...>, TypeList<Is...>> {
  using type = concat_t<TypeList<RandomBody<Fs, UniformDistribution<Fs>>, RandomBody<Fs, NormalDistribution<Fs>>,
                                 RandomBody<Fs, TruncatedNormalDistribution<Fs>>>...,
                        TypeList<RandomBody<Is, UniformIntDistribution<Is>>...>>;
};

}  // namespace detail

using RandomBodies = typename detail::RandomBodiesOf<FloatTypes, IndexTypes>::type;

}  // namespace dflow::cuda
