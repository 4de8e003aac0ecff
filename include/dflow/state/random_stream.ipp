#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/core/tensor.hpp>
#include <dflow/state/random_stream.hpp>

namespace dflow {

std::string RandomStream::key(std::string_view node_name, std::uint64_t seed, std::uint64_t seed2) {
  // Graphs of several sessions may share a device and name their nodes alike: other seeds are another stream.
  return str_cat(node_name, ":", seed, ":", seed2);
}

std::string RandomStream::debug_string() const {
  const RandomStreamState now = state();
  return str_cat("RandomStream '", name_, "' (seeds ", now.seed, " and ", now.seed2, ", position ", now.position, ")");
}

RandomStreamState RandomStream::state() const noexcept {
  const detail::SpinGuard guard(lock_);
  return state_;
}

void RandomStream::set_state(const RandomStreamState& state) noexcept {
  const detail::SpinGuard guard(lock_);
  state_ = state;
}

std::vector<AnyTensor> RandomStream::saved_state() const {
  const RandomStreamState now = state();
  return {Tensor<std::uint64_t>({3}, {now.seed, now.seed2, now.position})};
}

void RandomStream::restore_state(std::span<const AnyTensor> state) {
  if (state.size() != 1 || state[0].dtype() != DType::uint64 || state[0].shape() != Shape{3}) {
    throw_error(
        Status::invalid_argument(str_cat("what ", debug_string(), " is to be restored from is no state of a stream")));
  }
  const std::span<const std::uint64_t> numbers = state[0].span<std::uint64_t>();
  set_state({numbers[0], numbers[1], numbers[2]});
}

void RandomStream::set_position(std::uint64_t position) noexcept {
  const detail::SpinGuard guard(lock_);
  state_.position = position;
}

PhiloxStream RandomStream::reserve(std::int64_t num_values) noexcept {
  return reserve_groups(static_cast<std::uint64_t>(num_values) * 256);
}

PhiloxStream RandomStream::reserve_groups(std::uint64_t num_groups) noexcept {
  RandomStreamState taken;
  {
    const detail::SpinGuard guard(lock_);
    taken = state_;
    state_.position += num_groups;
  }
  PhiloxStream stream = PhiloxStream::from_seeds(taken.seed, taken.seed2);
  stream.skip(taken.position);
  return stream;
}

}  // namespace dflow
