#pragma once

#include <dflow/base/type_list.hpp>
#include <dflow/kernels/cuda/bodies/elementwise.hpp>

#include <cstdint>
#include <type_traits>

namespace dflow::cuda {

/// Arguments for x [rows, channels]. U is the type of all arrays with one value a channel: float, or double for double
/// elements.
struct ChannelArgs {
  std::int64_t rows = 0, channels = 0;
  std::int64_t splits = 1;  ///< the rows are summed in so many parts
  const void* x = nullptr;
  const void* dy = nullptr;    ///< [rows, channels]
  const void* mean = nullptr;  ///< U [channels], as all that follows but y and parts
  const void* variance = nullptr;
  const void* scale = nullptr;
  const void* offset = nullptr;
  const void* sums[2] = {};  ///< gradients of offset and scale
  void* parts = nullptr;     ///< U [number of sums, splits, channels]
  void* y = nullptr;         ///< [rows, channels]
  void* results[2] = {};
  double epsilon = 0;
  bool is_training = false;
};

namespace detail {

template <class T>
using ChannelType = std::conditional_t<std::is_same_v<T, double>, double, float>;

// The sums over the rows of a channel, and the results made from the sums.

struct MeanOfChannel {
  static constexpr const char* name = "channel means";
  static constexpr const char* joined_name = "joined channel means";
  static constexpr int sums = 1;

  template <class T, class U>
  DFLOW_FN static void add(U (&sum)[1], const ChannelArgs& args, std::int64_t at, std::int64_t) {
    sum[0] += static_cast<U>(static_cast<const T*>(args.x)[at]);
  }
  /// results: the mean, twice.
  template <class U>
  DFLOW_FN static void finish(const U (&sum)[1], const ChannelArgs& args, std::int64_t channel) {
    const U mean = sum[0] / static_cast<U>(args.rows);
    for (void* result : args.results) static_cast<U*>(result)[channel] = mean;
  }
};

struct VarianceOfChannel {
  static constexpr const char* name = "channel variances";
  static constexpr const char* joined_name = "joined channel variances";
  static constexpr int sums = 1;

  template <class T, class U>
  DFLOW_FN static void add(U (&sum)[1], const ChannelArgs& args, std::int64_t at, std::int64_t channel) {
    const U centred = static_cast<U>(static_cast<const T*>(args.x)[at]) - static_cast<const U*>(args.mean)[channel];
    sum[0] += centred * centred;
  }
  /// results: the plain variance, and with Bessel's correction; of one value it is 0 either way.
  template <class U>
  DFLOW_FN static void finish(const U (&sum)[1], const ChannelArgs& args, std::int64_t channel) {
    const U variance = sum[0] / static_cast<U>(args.rows);
    static_cast<U*>(args.results[0])[channel] = variance;
    static_cast<U*>(args.results[1])[channel] =
        variance * (static_cast<U>(args.rows) / static_cast<U>(args.rows > 1 ? args.rows - 1 : 1));
  }
};

template <class U>
DFLOW_FN U inverse_deviation(const ChannelArgs& args, std::int64_t channel) {
  return U(1) / math::sqrt(static_cast<const U*>(args.variance)[channel] + static_cast<U>(args.epsilon));
}

struct GradientsOfChannel {
  static constexpr const char* name = "channel gradients";
  static constexpr const char* joined_name = "joined channel gradients";
  static constexpr int sums = 2;

  template <class T, class U>
  DFLOW_FN static void add(U (&sum)[2], const ChannelArgs& args, std::int64_t at, std::int64_t channel) {
    const U dy = static_cast<U>(static_cast<const T*>(args.dy)[at]);
    sum[0] += dy;
    sum[1] += dy * (static_cast<U>(static_cast<const T*>(args.x)[at]) - static_cast<const U*>(args.mean)[channel]);
  }
  /// results: the gradients of the offset and of the scale.
  template <class U>
  DFLOW_FN static void finish(const U (&sum)[2], const ChannelArgs& args, std::int64_t channel) {
    static_cast<U*>(args.results[0])[channel] = sum[0];
    static_cast<U*>(args.results[1])[channel] = sum[1] * inverse_deviation<U>(args, channel);
  }
};

inline constexpr std::uint32_t channels_of_block = 32, row_lanes = 8;

}  // namespace detail

/// Adds up parts of the rows, a block for 32 channels and one part: neighbouring threads have neighbouring channels.
template <class T, class S>
struct ChannelPartsBody {
  static constexpr const char* name = S::name;
  static constexpr bool has_barriers = true;
  static constexpr std::uint32_t threads = detail::channels_of_block * detail::row_lanes;
  using Args = ChannelArgs;
  using U = detail::ChannelType<T>;

  struct Shared {
    U parts[S::sums][detail::row_lanes][detail::channels_of_block];
  };

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    Shared& shared = thread.template shared<Shared>();
    const std::uint32_t column = thread.index_in_block() % detail::channels_of_block;
    const std::uint32_t lane = thread.index_in_block() / detail::channels_of_block;
    const std::int64_t tiles = (args.channels + detail::channels_of_block - 1) / detail::channels_of_block;
    for (std::int64_t t = thread.block(); t < tiles * args.splits; t += thread.blocks()) {
      const std::int64_t split = t / tiles, channel = t % tiles * detail::channels_of_block + column;
      U sum[S::sums] = {};
      if (channel < args.channels) {
        for (std::int64_t row = split * detail::row_lanes + lane; row < args.rows;
             row += args.splits * detail::row_lanes) {
          S::template add<T, U>(sum, args, row * args.channels + channel, channel);
        }
      }
      for (int s = 0; s < S::sums; ++s) shared.parts[s][lane][column] = sum[s];
      for (std::uint32_t half = detail::row_lanes / 2; half > 0; half /= 2) {
        thread.barrier();
        if (lane >= half) continue;
        for (int s = 0; s < S::sums; ++s) shared.parts[s][lane][column] += shared.parts[s][lane + half][column];
      }
      if (lane == 0 && channel < args.channels) {
        for (int s = 0; s < S::sums; ++s) {
          static_cast<U*>(args.parts)[(s * args.splits + split) * args.channels + channel] = shared.parts[s][0][column];
        }
      }
      thread.barrier();
    }
  }
};

/// Adds up the parts in their order.
template <class U, class S>
struct JoinChannelsBody {
  static constexpr const char* name = S::joined_name;
  static constexpr bool has_barriers = false;
  using Args = ChannelArgs;

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    for (std::int64_t channel = thread.index(); channel < args.channels; channel += thread.count()) {
      U sum[S::sums] = {};
      for (int s = 0; s < S::sums; ++s) {
        for (std::int64_t split = 0; split < args.splits; ++split) {
          sum[s] += static_cast<const U*>(args.parts)[(s * args.splits + split) * args.channels + channel];
        }
      }
      S::template finish<U>(sum, args, channel);
    }
  }
};

/// y = (x - mean) / sqrt(variance + epsilon) * scale + offset.
template <class T>
struct NormaliseBody {
  static constexpr const char* name = "batch normalisation";
  static constexpr bool has_barriers = false;
  using Args = ChannelArgs;

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    using U = detail::ChannelType<T>;
    const std::int64_t n = args.rows * args.channels;
    for (std::int64_t i = thread.index(); i < n; i += thread.count()) {
      const std::int64_t channel = i % args.channels;
      const U factor = detail::inverse_deviation<U>(args, channel) * static_cast<const U*>(args.scale)[channel];
      const U centred = static_cast<U>(static_cast<const T*>(args.x)[i]) - static_cast<const U*>(args.mean)[channel];
      static_cast<T*>(args.y)[i] = static_cast<T>(centred * factor + static_cast<const U*>(args.offset)[channel]);
    }
  }
};

/// y: the gradient of x.
template <class T>
struct NormaliseGradBody {
  static constexpr const char* name = "batch normalisation gradient";
  static constexpr bool has_barriers = false;
  using Args = ChannelArgs;

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    using U = detail::ChannelType<T>;
    const std::int64_t n = args.rows * args.channels;
    for (std::int64_t i = thread.index(); i < n; i += thread.count()) {
      const std::int64_t channel = i % args.channels;
      const U inverse = detail::inverse_deviation<U>(args, channel);
      U dy = static_cast<U>(static_cast<const T*>(args.dy)[i]);
      if (args.is_training) {  // the parts through the mean and the variance
        const U normalised =
            (static_cast<U>(static_cast<const T*>(args.x)[i]) - static_cast<const U*>(args.mean)[channel]) * inverse;
        dy -=
            (static_cast<const U*>(args.sums[0])[channel] + normalised * static_cast<const U*>(args.sums[1])[channel]) /
            static_cast<U>(args.rows);
      }
      static_cast<T*>(args.y)[i] = static_cast<T>(dy * inverse * static_cast<const U*>(args.scale)[channel]);
    }
  }
};

namespace detail {

template <class T>
using BatchNormBodiesOf = TypeList<ChannelPartsBody<T, MeanOfChannel>, ChannelPartsBody<T, VarianceOfChannel>,
                                   ChannelPartsBody<T, GradientsOfChannel>, NormaliseBody<T>, NormaliseGradBody<T>>;
template <class U>
using JoinChannelsBodies = TypeList<JoinChannelsBody<U, MeanOfChannel>, JoinChannelsBody<U, VarianceOfChannel>,
                                    JoinChannelsBody<U, GradientsOfChannel>>;

}  // namespace detail

using BatchNormBodies = concat_t<detail::BatchNormBodiesOf<float>, detail::BatchNormBodiesOf<double>,
                                 detail::BatchNormBodiesOf<Half>, detail::BatchNormBodiesOf<BFloat16>,
                                 detail::JoinChannelsBodies<float>, detail::JoinChannelsBodies<double>>;

}  // namespace dflow::cuda
