#pragma once

#include <dflow/kernels/cpu/linalg/eigen.hpp>
#include <dflow/kernels/cpu/routines/kernel_cache_state.hpp>
#include <dflow/ops/linalg/fourier.hpp>

#include <unsupported/Eigen/FFT>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace dflow::cpu {

/// Idle plans above it are destroyed. If the device's allocator has a limit, it is an eighth of that limit at most.
inline constexpr std::size_t max_idle_plan_bytes = std::size_t{64} << 20;

/// The transform of lines of one length, unscaled. It is Eigen's mixed radix transform (kissfft); its time grows with
/// the sum of the length's prime factors. If one factor is large, it is a convolution with a chirp of a power of two
/// (Bluestein 1970), in double.
///
/// Thread safety: used by one thread at a time.
template <class R>
class FourierPlan {
 public:
  using Complex = std::complex<R>;

  FourierPlan(std::int64_t length, bool inverse) : length_(length), inverse_(inverse) {
    lines_.SetFlag(Eigen::FFT<R>::Unscaled);
    if (largest_prime_factor(length) > 50) chirp_.emplace(length, inverse);
  }

  std::int64_t length() const { return length_; }
  bool is_inverse() const { return inverse_; }
  /// The approximate size of its tables and buffers.
  std::size_t bytes() const {
    return sizeof(*this) + (chirp_ ? chirp_->bytes() : static_cast<std::size_t>(length_) * sizeof(Complex));
  }

  /// from and to do not overlap.
  void run(const Complex* from, Complex* to) {
    if (length_ <= 1) {
      std::copy_n(from, length_, to);
    } else if (chirp_) {
      chirp_->run(from, to);
    } else if (inverse_) {
      lines_.inv(to, from, length_);
    } else {
      lines_.fwd(to, from, length_);
    }
  }

 private:
  static std::int64_t largest_prime_factor(std::int64_t n) {
    std::int64_t largest = 1;
    for (std::int64_t p = 2; p * p <= n; ++p) {
      for (; n % p == 0; n /= p) largest = p;
    }
    return n > 1 ? n : largest;
  }

  /// With w[k] = exp(-i pi k^2 / n): jk = (j^2 + k^2 - (k - j)^2) / 2, so y[k] is w[k] times the convolution of x w
  /// with the conjugate of w.
  class Chirp {
   public:
    using Wide = std::complex<double>;

    Chirp(std::int64_t length, bool inverse) : factors_(static_cast<std::size_t>(length)) {
      std::size_t size = 1;
      while (size < 2 * factors_.size()) size *= 2;
      lines_.SetFlag(Eigen::FFT<double>::Unscaled);
      product_.resize(size);
      spectrum_.resize(size);
      kernel_.resize(size);
      std::vector<Wide> conjugates(size);
      for (std::int64_t k = 0; k < length; ++k) {
        const double angle = EIGEN_PI * static_cast<double>(k * k % (2 * length)) / static_cast<double>(length);
        const Wide factor(std::cos(angle), inverse ? std::sin(angle) : -std::sin(angle));
        const auto at = static_cast<std::size_t>(k);
        factors_[at] = factor;
        conjugates[at] = conjugates[(size - at) % size] = std::conj(factor);
      }
      lines_.fwd(kernel_.data(), conjugates.data(), static_cast<Eigen::Index>(size));
    }

    /// Includes the roots of unity of Eigen's transform and its inverse.
    std::size_t bytes() const { return (factors_.size() + 5 * product_.size()) * sizeof(Wide); }

    void run(const Complex* from, Complex* to) {
      const auto size = static_cast<Eigen::Index>(product_.size());
      for (std::size_t k = 0; k < product_.size(); ++k) {
        product_[k] = k < factors_.size() ? times(Wide(from[k]), factors_[k]) : Wide();
      }
      lines_.fwd(spectrum_.data(), product_.data(), size);
      for (std::size_t k = 0; k < spectrum_.size(); ++k) spectrum_[k] = times(spectrum_[k], kernel_[k]);
      lines_.inv(product_.data(), spectrum_.data(), size);
      const double scale = 1.0 / static_cast<double>(size);
      for (std::size_t k = 0; k < factors_.size(); ++k) to[k] = Complex(times(product_[k], factors_[k]) * scale);
    }

   private:
    /// The operator of the standard library checks for values that are not finite, which takes long.
    static Wide times(const Wide& a, const Wide& b) {
      return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
    }

    Eigen::FFT<double> lines_;
    std::vector<Wide> factors_, kernel_, product_, spectrum_;
  };

  std::int64_t length_;
  bool inverse_;
  Eigen::FFT<R> lines_;
  std::optional<Chirp> chirp_;
};

/// Plans that wait for the next lines of their length. The kernels of a device share one set for each element type,
/// kept in its KernelCache. The least recently used plans go first.
///
/// Thread safety: safe.
template <class R>
class FourierPlans {
 public:
  explicit FourierPlans(std::size_t max_idle_bytes) : max_idle_bytes_(max_idle_bytes) {}

  std::unique_ptr<FourierPlan<R>> take(std::int64_t length, bool inverse) {
    {
      const std::lock_guard lock(mutex_);
      for (auto plan = idle_.begin(); plan != idle_.end(); ++plan) {
        if ((*plan)->length() != length || (*plan)->is_inverse() != inverse) continue;
        auto taken = std::move(*plan);
        idle_.erase(plan);
        idle_bytes_ -= taken->bytes();
        return taken;
      }
    }
    return std::make_unique<FourierPlan<R>>(length, inverse);
  }

  void give_back(std::unique_ptr<FourierPlan<R>> plan) {
    const std::size_t bytes = plan->bytes();
    if (bytes > max_idle_bytes_) return;
    std::list<std::unique_ptr<FourierPlan<R>>> dropped;  // destroyed without the lock
    const std::lock_guard lock(mutex_);
    idle_.push_front(std::move(plan));
    idle_bytes_ += bytes;
    while (idle_bytes_ > max_idle_bytes_ || idle_.size() > max_idle) {
      idle_bytes_ -= idle_.back()->bytes();
      dropped.splice(dropped.end(), idle_, std::prev(idle_.end()));
    }
  }

  std::size_t idle_bytes() const {
    const std::lock_guard lock(mutex_);
    return idle_bytes_;
  }

 private:
  static constexpr std::size_t max_idle = 128;
  mutable std::mutex mutex_;
  std::list<std::unique_ptr<FourierPlan<R>>> idle_;  ///< the last used first
  std::size_t idle_bytes_ = 0, max_idle_bytes_;
};

/// The plans that a cache holds, made if there are none; without a cache, plans for the call alone.
template <class R>
std::shared_ptr<FourierPlans<R>> find_fourier_plans(KernelCache* cache) {
  constexpr std::string_view key = std::is_same_v<R, float> ? "FourierPlans<float>" : "FourierPlans<double>";
  if (cache == nullptr) return std::make_shared<FourierPlans<R>>(0);
  KernelCache::State& state = cache->state();
  {
    const std::lock_guard lock(state.mutex);
    if (const PrimitiveCache::Primitive* found = state.primitives.find(key)) {
      return std::static_pointer_cast<FourierPlans<R>>(std::const_pointer_cast<void>(*found));
    }
  }
  auto plans = std::make_shared<FourierPlans<R>>(std::min(max_idle_plan_bytes, state.max_idle_bytes));
  PrimitiveCache::Primitive replaced;
  const std::lock_guard lock(state.mutex);
  replaced = state.primitives.insert(key, plans);
  return plans;
}

/// Nanoseconds for one line.
inline double fourier_line_ns(std::int64_t length) {
  const auto n = static_cast<double>(length);
  return 20 + 2 * n * std::log2(n + 1);
}

/// Calls body(plan, line, in, out), with buffers of a line, for each of `count` lines of one length.
template <class R, class Body>
void for_each_line(KernelContext& context, std::int64_t count, std::int64_t length, bool inverse, const Body& body) {
  constexpr std::int64_t longest = dflow::detail::max_fourier_length;
  static_assert(longest <= std::numeric_limits<int>::max(), "Eigen counts in int");
  if (length > longest) context.fail(str_cat("cannot transform ", length, " elements, more than ", longest));
  KernelCache* const cache = cpu_options(context).cache;
  const std::shared_ptr<FourierPlans<R>> plans = find_fourier_plans<R>(cache);
  context.pool().parallel_for(count, fourier_line_ns(length), [&](std::int64_t begin, std::int64_t end) {
    const Scratch lines(cache, 2 * static_cast<std::size_t>(length) * sizeof(std::complex<R>));
    auto* const in = lines.template as<std::complex<R>>();
    auto plan = plans->take(length, inverse);
    for (std::int64_t line = begin; line < end; ++line) body(*plan, line, in, in + length);
    plans->give_back(std::move(plan));
  });
}

/// Transforms x along dimension `axis` in place and multiplies it by `scale`.
template <class R>
void transform_axis(KernelContext& context, const Shape& shape, int axis, bool inverse, R scale,
                    const std::complex<R>* from, std::complex<R>* to) {
  const std::int64_t n = shape[axis], stride = shape.num_elements(axis + 1, shape.rank());
  const auto move = [&](FourierPlan<R>& plan, std::int64_t line, std::complex<R>* in, std::complex<R>* out) {
    const std::int64_t base = line / stride * n * stride + line % stride;
    for (std::int64_t i = 0; i < n; ++i) in[i] = from[base + i * stride];
    plan.run(in, out);
    for (std::int64_t i = 0; i < n; ++i) to[base + i * stride] = out[i] * scale;
  };
  if (shape.num_elements() != 0) for_each_line<R>(context, shape.num_elements() / n, n, inverse, move);
}

}  // namespace dflow::cpu
