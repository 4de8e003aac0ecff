#pragma once

#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/cpu/array/element_copy.hpp>
#include <dflow/kernels/cpu/reduction/top_k.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>
#include <type_traits>
#include <vector>

namespace dflow::cpu {

namespace detail {

/// An unsigned number for x, in the same order. Zeros of either sign have one key, and NaN has the largest.
template <class T>
std::uint64_t order_key(T x) {
  if constexpr (std::is_integral_v<T>) {
    constexpr std::uint64_t shift = std::is_signed_v<T> ? std::uint64_t{1} << 63 : 0;
    return static_cast<std::uint64_t>(x) ^ shift;
  } else {
    using F = std::conditional_t<std::is_same_v<T, double>, double, float>;
    using Bits = std::conditional_t<std::is_same_v<T, double>, std::uint64_t, std::uint32_t>;
    constexpr Bits sign = Bits{1} << (sizeof(Bits) * 8 - 1);
    const F number = static_cast<F>(x) + F(0);  // -0 + 0 is 0
    const Bits bits = std::bit_cast<Bits>(number);
    const Bits key = (bits & sign) != 0 ? ~bits : bits | sign;
    return number != number ? std::numeric_limits<std::uint64_t>::max() : std::uint64_t{key};
  }
}

inline constexpr std::int64_t keys_at_once = 256;
using OrderKeys = std::array<std::uint64_t, keys_at_once>;
using MakeKeys = void (*)(const void* x, std::int64_t n, std::uint64_t* keys);

template <class T>
void make_keys(const void* x, std::int64_t n, std::uint64_t* keys) {
  const T* const elements = static_cast<const T*>(x);
  for (std::int64_t i = 0; i < n; ++i) keys[i] = order_key(elements[i]);
}

MakeKeys keys_of(DType dtype) {
  return visit_dtype<RealTypes>(dtype, []<class T>() -> MakeKeys { return &make_keys<T>; });
}

struct RankedElement {
  std::uint64_t key;
  std::int32_t index;

  /// The larger one, or the one in front, comes first.
  friend bool operator<(const RankedElement& a, const RankedElement& b) {
    return a.key != b.key ? a.key > b.key : a.index < b.index;
  }
};

/// The k first elements of a row in `best`, in no order. It keeps at most twice as many on the way.
void choose_top(const void* x, std::size_t element_bytes, MakeKeys make, std::int64_t n, std::int64_t k,
                std::vector<RankedElement>& best) {
  const auto wanted = static_cast<std::size_t>(k), limit = 2 * wanted + static_cast<std::size_t>(keys_at_once);
  const auto keep_first = [&] {
    std::nth_element(best.begin(), best.begin() + k - 1, best.end());
    best.resize(wanted);
  };
  OrderKeys keys;
  std::uint64_t last = 0;  // the key of the last one of the k first elements so far
  bool has_all = false;
  best.clear();
  for (std::int64_t begin = 0; begin < n; begin += keys_at_once) {
    const std::int64_t count = std::min(keys_at_once, n - begin);
    make(static_cast<const std::byte*>(x) + static_cast<std::size_t>(begin) * element_bytes, count, keys.data());
    for (std::int64_t i = 0; i < count; ++i) {
      const std::uint64_t key = keys[static_cast<std::size_t>(i)];
      // An equal one has a higher position than those that were kept.
      if (key > last || !has_all) best.push_back({key, static_cast<std::int32_t>(begin + i)});
    }
    if (best.size() + static_cast<std::size_t>(keys_at_once) > limit && best.size() > wanted) {
      keep_first();
      last = best.back().key;  // nth_element puts it there
      has_all = true;
    }
  }
  if (best.size() > wanted) keep_first();
}

/// Less than k predictions are larger than that of the target, and all are finite.
template <class T>
bool is_among_first(const T* predictions, std::int64_t classes, std::int64_t target, std::int64_t k) {
  using F = std::conditional_t<std::is_same_v<T, double>, double, float>;
  if (target < 0 || target >= classes) return false;
  const F wanted = static_cast<F>(predictions[target]);
  std::int64_t larger = 0;
  for (std::int64_t i = 0; i < classes; ++i) {
    const F prediction = static_cast<F>(predictions[i]);
    if (!std::isfinite(prediction)) return false;
    if (prediction > wanted && ++larger >= k) return false;
  }
  return larger < k;
}

}  // namespace detail

void top_k(KernelContext& context, bool sorted) {
  using dflow::detail::element;
  const AnyTensor& x = context.input(0);
  const Shape shape = dflow::detail::inferred_shape(context);
  const int axis = shape.rank() - 1;
  const std::int64_t n = x.dim(axis), k = shape[axis], rows = shape.num_elements(0, axis);
  if (n > std::numeric_limits<std::int32_t>::max()) {
    context.fail(str_cat("the ", n, " elements of a row have positions beyond int32"));
  }
  AnyTensor& values = context.allocate_output(0, shape);
  auto* const indices = static_cast<std::int32_t*>(context.allocate_output(1, shape).raw_data());
  if (shape.num_elements() == 0) return;
  const DType dtype = x.dtype();
  const detail::MakeKeys make = detail::keys_of(dtype);
  const double cost_ns = static_cast<double>(n) * 1.5 + static_cast<double>(k) * 20;
  context.pool().parallel_for(rows, cost_ns, [&](std::int64_t first, std::int64_t end) {
    std::vector<detail::RankedElement> best;
    best.reserve(static_cast<std::size_t>(std::min(n, 2 * k + detail::keys_at_once)));
    for (std::int64_t row = first; row < end; ++row) {
      detail::choose_top(element(x, row * n), size_of(dtype), make, n, k, best);
      if (sorted) {
        std::sort(best.begin(), best.end());
      } else {
        std::sort(best.begin(), best.end(), [](const auto& a, const auto& b) { return a.index < b.index; });
      }
      for (std::int64_t i = 0; i < k; ++i) {
        const std::int32_t index = best[static_cast<std::size_t>(i)].index;
        indices[row * k + i] = index;
        dflow::detail::copy_elements(dtype, 1, element(x, row * n + index), element(values, row * k + i));
      }
    }
  });
}

void in_top_k(KernelContext& context, std::int64_t k) {
  const AnyTensor &predictions = context.input(0), &targets = context.input(1);
  const Shape shape = dflow::detail::inferred_shape(context);
  bool* const y = context.allocate_output<bool>(0, shape).data();
  const std::int64_t classes = predictions.dim(1);
  const bool is_wide = targets.dtype() == DType::int64;
  const void* const ids = targets.raw_data();
  visit_dtype<FloatTypes>(predictions.dtype(), [&]<class T>() {
    const T* const x = static_cast<const T*>(predictions.raw_data());
    context.pool().parallel_for(shape[0], static_cast<double>(classes) + 5, [&](std::int64_t first, std::int64_t end) {
      for (std::int64_t row = first; row < end; ++row) {
        const std::int64_t target =
            is_wide ? static_cast<const std::int64_t*>(ids)[row] : static_cast<const std::int32_t*>(ids)[row];
        y[row] = detail::is_among_first(x + row * classes, classes, target, k);
      }
    });
  });
}

}  // namespace dflow::cpu
