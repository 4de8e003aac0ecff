#pragma once

#include <dflow/kernels/cpu/array/element_copy.hpp>
#include <dflow/kernels/cpu/routines/array/rows.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace dflow::detail {

/// Row i of `to` = row rows[i] of `from`, for rows of `row` elements, at least one. Precondition: `from` has the rows.
inline void copy_named_rows(KernelContext& context, const AnyTensor& from, std::int64_t row,
                            std::span<const std::int64_t> rows, AnyTensor& to) {
  const auto count = static_cast<std::int64_t>(rows.size());
  if (from.dtype() != DType::string) {
    static_cast<void>(cpu::gather_rows(context.pool(), 1, from.num_elements() / row, count,
                                       static_cast<std::size_t>(row) * size_of(from.dtype()), from.raw_data(),
                                       rows.data(), to.raw_data(), cpu_options(context)));
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    copy_elements(DType::string, row, element(from, rows[static_cast<std::size_t>(i)] * row), element(to, i * row));
  }
}

}  // namespace dflow::detail
