#pragma once

#include <dflow/base/threads/thread_pool.hpp>
#include <dflow/core/dtype.hpp>
#include <dflow/kernels/cpu/routines/options.hpp>
#include <dflow/kernels/shared/update_rules.hpp>

#include <cstdint>

namespace dflow::cpu {

/// A variable, its slots and its gradient, and the factors of a rule in the order of its op's inputs.
struct UpdateArguments {
  static constexpr int max_variables = 4, max_factors = 6;

  DType dtype = DType::invalid;  ///< of all tensors: float, double, Half or BFloat16 (both computed in float)
  void* variables[max_variables] = {};
  const void* gradient = nullptr;
  double factors[max_factors] = {};
  bool use_nesterov = false;
  double element_ns = 1;  ///< that an element takes, roughly
};

/// One pass over the `n` elements of the variable, its slots and its gradient.
template <template <class, class> class Rule>
void apply_update(ThreadPool& pool, std::int64_t n, const UpdateArguments& arguments, const CpuOptions& options = {});

/// The same of the rows indices[i] of variables [limit, row_size], gradient [count, row_size]; other rows and their
/// slots keep their values. The indices are distinct (sum_duplicate_rows) and in [0, limit) (find_bad_index). Index:
/// int32, int64.
template <template <class, class> class Rule, class Index>
void apply_update_rows(ThreadPool& pool, std::int64_t count, std::int64_t row_size, const UpdateArguments& arguments,
                       const Index* indices, const CpuOptions& options = {});

}  // namespace dflow::cpu
