#pragma once

#include <dflow/kernels/cpu/loops/dispatch.hpp>
#include <dflow/kernels/cpu/routines/loop_types.hpp>
#include <dflow/kernels/cpu/routines/state/optimizers.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace dflow::cpu {

/// The loop of a rule for the arguments' element type.
template <template <class, class> class Rule>
UpdateElements update_loop(DType dtype, const CpuOptions& options) {
  return visit_dtype<FloatTypes>(
      dtype, [&]<class T>() -> UpdateElements { return loops<UpdateLoop<Rule, loop_t<T>>>(options.max_level).run; });
}

/// Runs the loop on `size` elements: of the variables from element `to` on, of the gradient from `from` on.
inline void update_part(UpdateElements loop, const UpdateArguments& arguments, std::int64_t to, std::int64_t from,
                        std::int64_t size) {
  const auto bytes = static_cast<std::int64_t>(size_of(arguments.dtype));
  void* variables[UpdateArguments::max_variables];
  for (int i = 0; i < UpdateArguments::max_variables; ++i) {
    auto* const first = static_cast<std::byte*>(arguments.variables[i]);
    variables[i] = first == nullptr ? nullptr : first + to * bytes;
  }
  loop(size, variables, static_cast<const std::byte*>(arguments.gradient) + from * bytes, arguments.factors,
       arguments.use_nesterov);
}

template <template <class, class> class Rule>
void apply_update(ThreadPool& pool, std::int64_t n, const UpdateArguments& arguments, const CpuOptions& options) {
  const UpdateElements loop = update_loop<Rule>(arguments.dtype, options);
  constexpr std::int64_t align = 64;  // whole cache lines
  pool.parallel_for(
      n, arguments.element_ns,
      [&](std::int64_t begin, std::int64_t end) { update_part(loop, arguments, begin, begin, end - begin); }, align);
}

template <template <class, class> class Rule, class Index>
void apply_update_rows(ThreadPool& pool, std::int64_t count, std::int64_t row_size, const UpdateArguments& arguments,
                       const Index* indices, const CpuOptions& options) {
  const UpdateElements loop = update_loop<Rule>(arguments.dtype, options);
  const double row_ns = 20 + std::max(0.5, arguments.element_ns) * static_cast<double>(row_size);
  pool.parallel_for(count, row_ns, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      update_part(loop, arguments, static_cast<std::int64_t>(indices[i]) * row_size, i * row_size, row_size);
    }
  });
}

}  // namespace dflow::cpu
