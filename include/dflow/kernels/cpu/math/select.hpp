#pragma once

#include <dflow/kernels/cpu/array/element_copy.hpp>
#include <dflow/ops/math/select.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace dflow {

namespace cpu::detail {

/// y[i] = condition[i] ? t[i] : e[i], of elements of so many bytes; y may be t or e.
template <std::size_t bytes>
void select_one_by_one(std::int64_t n, const bool* condition, const std::byte* t, const std::byte* e, std::byte* y) {
  for (std::int64_t i = 0; i < n; ++i) {
    std::array<std::byte, bytes> chosen;  // through memory of its own: y may be either
    const std::size_t at = static_cast<std::size_t>(i) * bytes;
    std::memcpy(chosen.data(), (condition[i] ? t : e) + at, bytes);
    std::memcpy(y + at, chosen.data(), bytes);
  }
}

/// The same by masks, in blocks of a length that the compiler knows, so that it vectorises them.
template <std::size_t bytes>
void select_elements(std::int64_t n, const bool* condition, const void* from_t, const void* from_e, void* to) {
  const auto* const t = static_cast<const std::byte*>(from_t);
  const auto* const e = static_cast<const std::byte*>(from_e);
  auto* const y = static_cast<std::byte*>(to);
  std::int64_t i = 0;
  if constexpr (bytes <= 8) {
    using Word = std::conditional_t<
        bytes == 1, std::uint8_t,
        std::conditional_t<bytes == 2, std::uint16_t, std::conditional_t<bytes == 4, std::uint32_t, std::uint64_t>>>;
    constexpr std::int64_t block = 16;
    std::array<Word, block> a, b;
    std::array<std::uint8_t, block> chosen;
    for (; n - i >= block; i += block) {
      const std::size_t at = static_cast<std::size_t>(i) * bytes;
      std::memcpy(chosen.data(), condition + i, block);
      std::memcpy(a.data(), t + at, sizeof(a));
      std::memcpy(b.data(), e + at, sizeof(b));
      for (std::size_t j = 0; j < block; ++j) {
        const auto mask = static_cast<Word>(Word(0) - Word(chosen[j]));
        a[j] = static_cast<Word>((a[j] & mask) | (b[j] & static_cast<Word>(~mask)));
      }
      std::memcpy(y + at, a.data(), sizeof(a));
    }
  }
  const std::size_t at = static_cast<std::size_t>(i) * bytes;
  select_one_by_one<bytes>(n - i, condition + i, t + at, e + at, y + at);
}

}  // namespace cpu::detail

template <>
struct Kernel<Select, Cpu> {
  double cost_ns(const KernelInit& init) const { return 50 + estimated_elements(init.node.outputs[0]) * 0.5; }

  void operator()(KernelContext& context) const {
    const Tensor<bool>& condition = context.input<bool>(0);
    const AnyTensor &t = context.input(1), &e = context.input(2);
    if (!(t.shape() == e.shape())) reject(context, "branches of shapes ", t.shape(), e.shape());
    if (condition.rank() == 0) return context.set_output(0, condition.scalar() ? t : e);
    const Shape shape = t.shape();
    const bool by_rows = !(condition.shape() == shape);
    if (by_rows && (condition.rank() != 1 || shape.rank() == 0 || condition.dim(0) != shape.dim(0))) {
      reject(context, "condition and branches of shapes ", condition.shape(), shape);
    }
    AnyTensor& y = context.forward_or_allocate(context.owns_input(1) ? 1 : 2, 0, shape);
    if (y.num_elements() == 0) return;
    const std::int64_t row = shape.num_elements() / condition.num_elements();
    const bool by_elements = row == 1 && y.dtype() != DType::string;
    context.pool().parallel_for(
        condition.num_elements(), 0.5 * static_cast<double>(row), [&](std::int64_t begin, std::int64_t end) {
          if (by_elements) {
            detail::with_element_bytes(y.dtype(), [&](auto bytes) {
              cpu::detail::select_elements<bytes()>(end - begin, condition.data() + begin, detail::element(t, begin),
                                                    detail::element(e, begin), detail::element(y, begin));
            });
          } else {
            select_rows(begin, end, row, condition.data(), t, e, y);
          }
        });
  }

 private:
  static void select_rows(std::int64_t begin, std::int64_t end, std::int64_t row, const bool* condition,
                          const AnyTensor& t, const AnyTensor& e, AnyTensor& y) {
    for (std::int64_t i = begin; i < end; ++i) {
      const void* const from = detail::element(condition[i] ? t : e, i * row);
      void* const to = detail::element(y, i * row);
      if (from != to) detail::copy_elements(y.dtype(), row, from, to);
    }
  }
  [[noreturn]] static void reject(const KernelContext& context, const char* what, const Shape& a, const Shape& b) {
    context.fail(str_cat(what, a.to_string(), " and ", b.to_string(), " do not go together"));
  }
};

}  // namespace dflow
