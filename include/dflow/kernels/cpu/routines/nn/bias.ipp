#pragma once

#include <dflow/kernels/cpu/loops/dispatch.hpp>
#include <dflow/kernels/cpu/routines/loop_types.hpp>
#include <dflow/kernels/cpu/routines/nn/bias.hpp>

#include <cstdint>
#include <type_traits>

namespace dflow::cpu {

template <class T>
void bias_add(ThreadPool& pool, std::int64_t rows, std::int64_t channels, const T* x, const T* bias, T* y, bool relu,
              const CpuOptions& options) {
  const auto& table = loops<BiasLoops<wrapping_loop_t<T>>>(options.max_level);
  const double cost_ns = 0.1 * static_cast<double>(channels) * sizeof(T);
  pool.parallel_for(rows, cost_ns, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t at = begin * channels;
    table.add(end - begin, channels, as_wrapping_loop(x) + at, as_wrapping_loop(bias), relu && !std::is_integral_v<T>,
              as_wrapping_loop(y) + at);
    if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
      for (std::int64_t i = at; relu && i < end * channels; ++i) y[i] = y[i] < T(0) ? T(0) : y[i];
    }
  });
}

template <class T>
void bias_add_channels_first(ThreadPool& pool, std::int64_t batch, std::int64_t channels, std::int64_t inner,
                             const T* x, const T* bias, T* y, const CpuOptions& options) {
  const auto& table = loops<BiasLoops<wrapping_loop_t<T>>>(options.max_level);
  const double cost_ns = 5 + 0.1 * static_cast<double>(inner) * sizeof(T);
  pool.parallel_for(batch * channels, cost_ns, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      // One channel in `inner` rows.
      table.add(inner, 1, as_wrapping_loop(x) + r * inner, as_wrapping_loop(bias) + r % channels, false,
                as_wrapping_loop(y) + r * inner);
    }
  });
}

}  // namespace dflow::cpu
