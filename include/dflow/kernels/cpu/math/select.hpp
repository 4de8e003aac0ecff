#pragma once

#include <dflow/kernels/cpu/array/element_copy.hpp>
#include <dflow/kernels/cpu/elementwise/code.hpp>
#include <dflow/ops/math/select.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace dflow {

namespace cpu::detail {

DFLOW_BEGIN_INDEPENDENT_LOOPS
/// y[i] = condition[i] ? t[i] : e[i], of elements of so many bytes; y may be t or e.
template <std::size_t bytes>
void select_elements(std::int64_t n, const bool* condition, const void* t, const void* e, void* y) {
  using Word = std::conditional_t<
      bytes == 1, std::uint8_t,
      std::conditional_t<bytes == 2, std::uint16_t, std::conditional_t<bytes == 4, std::uint32_t, std::uint64_t>>>;
  struct Element {
    Word words[bytes / sizeof(Word)];
  };
  DFLOW_INDEPENDENT_ITERATIONS
  for (std::int64_t i = 0; i < n; ++i) {
    const std::size_t at = static_cast<std::size_t>(i) * bytes;
    Element from_t, from_e;
    std::memcpy(&from_t, static_cast<const std::byte*>(t) + at, bytes);
    std::memcpy(&from_e, static_cast<const std::byte*>(e) + at, bytes);
    const Element chosen = condition[i] ? from_t : from_e;
    std::memcpy(static_cast<std::byte*>(y) + at, &chosen, bytes);
  }
}
DFLOW_END_INDEPENDENT_LOOPS

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
