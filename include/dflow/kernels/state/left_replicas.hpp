#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/core/tensor.hpp>

#include <cstdint>
#include <span>
#include <string>

namespace dflow::detail {

/// Who has left, of a saved state that is one tensor, bool [replicas]. Errors: InvalidArgument if it is none; `of` says
/// what it is the state of.
inline std::span<const bool> left_in(std::span<const AnyTensor> state, std::int64_t replicas, const std::string& of) {
  if (state.size() != 1 || state[0].dtype() != DType::boolean || state[0].shape() != Shape{replicas}) {
    throw_error(invalid_argument(
        str_cat("what ", of, " is to be restored from is no state of it: bool [", replicas, "] is wanted")));
  }
  return state[0].span<bool>();
}

}  // namespace dflow::detail
