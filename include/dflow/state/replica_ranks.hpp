#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/core/resource.hpp>
#include <dflow/core/tensor.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace dflow::detail {

// Shared by the resources where replicas meet.

/// Errors: InvalidArgument unless it is in [0, replicas).
inline void require_rank(std::int64_t rank, std::int64_t replicas, const Resource& of) {
  if (rank >= 0 && rank < replicas) return;
  throw_error(Status::invalid_argument(str_cat(of.debug_string(), ": rank ", rank, " is outside [0, ", replicas, ")")));
}

/// The ranks of the replicas with a true `is(replica)`, ascending.
template <class Replica, class Is>
std::vector<std::int32_t> ranks_where(const std::vector<Replica>& replicas, const Is& is) {
  std::vector<std::int32_t> ranks;
  ranks.reserve(replicas.size());
  for (std::size_t rank = 0; rank < replicas.size(); ++rank) {
    if (is(replicas[rank])) ranks.push_back(static_cast<std::int32_t>(rank));
  }
  return ranks;
}

/// "0, 2".
inline std::string ranks_text(const std::vector<std::int32_t>& ranks) {
  std::string text;
  for (const std::int32_t rank : ranks) text += str_cat(text.empty() ? "" : ", ", rank);
  return text;
}

/// A state to save: the replicas that have left, bool [replicas]; all false if all have left.
template <class Replica, class HasLeft>
std::vector<AnyTensor> left_state(const std::vector<Replica>& replicas, const HasLeft& has_left) {
  Tensor<bool> left = Tensor<bool>::full({static_cast<std::int64_t>(replicas.size())}, false);
  if (!std::all_of(replicas.begin(), replicas.end(), has_left)) {
    std::transform(replicas.begin(), replicas.end(), left.begin(), has_left);
  }
  return {left};
}

/// The replicas that have left, from a saved state. Errors: InvalidArgument if `state` is not one.
inline std::span<const bool> left_in(std::span<const AnyTensor> state, std::int64_t replicas, const Resource& of) {
  if (state.size() != 1 || state[0].dtype() != DType::boolean || state[0].shape() != Shape{replicas}) {
    throw_error(Status::invalid_argument(str_cat(
        "what ", of.debug_string(), " is to be restored from is no state of it: bool [", replicas, "] is wanted")));
  }
  return state[0].span<bool>();
}

}  // namespace dflow::detail
