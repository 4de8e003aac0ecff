#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/ops/data_flow/partition.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace dflow::detail {

/// About the time that it takes to read and copy a short text.
inline constexpr double text_cost_ns = 60;

/// Calls `body(i)` for each of `count` elements, by several threads where that pays.
template <class Body>
void each_text(const KernelContext& context, std::int64_t count, Body body) {
  context.pool().parallel_for(count, text_cost_ns, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) body(i);
  });
}

inline double text_loop_cost_ns(const KernelInit& init) {
  return 200 + text_cost_ns * estimated_elements(init.inputs[0]);
}

/// The beginning of a text in quotes, for a message.
inline std::string quoted_start(std::string_view text) {
  constexpr std::size_t shown = 40;
  return text.size() > shown ? str_cat("'", text.substr(0, shown), "...'") : str_cat("'", text, "'");
}

}  // namespace dflow::detail
