#pragma once

#include <dflow/base/threads/thread_pool.hpp>
#include <dflow/kernels/cpu/loops/dispatch.hpp>
#include <dflow/kernels/cpu/routines/kernel_cache_state.hpp>
#include <dflow/kernels/cpu/routines/loop_types.hpp>
#include <dflow/kernels/cpu/routines/options.hpp>

#include <cstdint>

namespace dflow::cpu {

/// An array of Half or BFloat16 as float, for the duration of a call. With a null `from` it is only room for a result.
template <class T>
class Widened {
 public:
  Widened(ThreadPool& pool, const CpuOptions& options, std::int64_t n, const T* from)
      : pool_(pool),
        casts_(loops<CastLoops<loop_t<T>>>(options.max_level)),
        n_(n),
        scratch_(options.cache, static_cast<std::size_t>(n) * sizeof(float)) {
    if (from == nullptr) return;
    pool_.parallel_for(n, 0.2, [&](std::int64_t begin, std::int64_t end) {
      casts_.widen(end - begin, as_loop(from) + begin, get() + begin);
    });
  }
  [[nodiscard]] float* get() const { return scratch_.template as<float>(); }
  void narrow_to(T* to) const {
    pool_.parallel_for(n_, 0.3, [&](std::int64_t begin, std::int64_t end) {
      casts_.narrow(end - begin, get() + begin, as_loop(to) + begin);
    });
  }

 private:
  ThreadPool& pool_;
  const CastLoops<loop_t<T>>& casts_;
  std::int64_t n_;
  Scratch scratch_;
};

}  // namespace dflow::cpu
