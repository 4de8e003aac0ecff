#pragma once

#include <dflow/core/any_tensor.hpp>
#include <dflow/core/resource.hpp>

#include <string>
#include <utility>
#include <vector>

namespace dflow {

/// What an edge in the body of a loop has had in each iteration, as long as a step needs it.
///
/// Thread safety: immutable as soon as the loop has ended.
struct TensorList final : Resource {
  explicit TensorList(std::vector<AnyTensor> all) : tensors(std::move(all)) {}
  std::string debug_string() const override { return str_cat("TensorList(", tensors.size(), ")"); }

  std::vector<AnyTensor> tensors;
};

}  // namespace dflow
