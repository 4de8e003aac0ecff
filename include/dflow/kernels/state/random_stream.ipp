#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/kernels/state/random_stream.hpp>

namespace dflow {

DFLOW_INLINE std::string RandomStream::key(std::string_view node_name, std::uint64_t seed, std::uint64_t seed2) {
  // Graphs of several sessions may share a device and name their nodes alike: other seeds are another stream.
  return str_cat(node_name, ":", seed, ":", seed2);
}

DFLOW_INLINE std::string RandomStream::debug_string() const {
  const RandomStreamState now = state();
  return str_cat("RandomStream '", name_, "' (seeds ", now.seed, " and ", now.seed2, ", position ", now.position, ")");
}

DFLOW_INLINE RandomStreamState RandomStream::state() const noexcept {
  const detail::SpinGuard guard(lock_);
  return state_;
}

DFLOW_INLINE void RandomStream::set_state(const RandomStreamState& state) noexcept {
  const detail::SpinGuard guard(lock_);
  state_ = state;
}

DFLOW_INLINE void RandomStream::set_position(std::uint64_t position) noexcept {
  const detail::SpinGuard guard(lock_);
  state_.position = position;
}

DFLOW_INLINE PhiloxStream RandomStream::reserve(std::int64_t num_values) noexcept {
  RandomStreamState taken;
  {
    const detail::SpinGuard guard(lock_);
    taken = state_;
    state_.position += static_cast<std::uint64_t>(num_values) * 256;
  }
  PhiloxStream stream = PhiloxStream::from_seeds(taken.seed, taken.seed2);
  stream.skip(taken.position);
  return stream;
}

DFLOW_INLINE detail::NodeStream::NodeStream(const KernelInit& init, std::int64_t seed, std::int64_t seed2)
    : node_name_(init.node.name),
      seed_(static_cast<std::uint64_t>(seed)),
      seed2_(static_cast<std::uint64_t>(seed2)),
      device_(init.device),
      stream_(container_of(init, RandomStream::container_name)) {}

DFLOW_INLINE std::shared_ptr<RandomStream> detail::NodeStream::find(ResourceContainer& container) const {
  return container.lookup_or_create<RandomStream>(RandomStream::key(node_name_, seed_, seed2_), [this] {
    const bool is_seeded = seed_ != 0 || seed2_ != 0;
    const std::uint64_t seed = is_seeded ? seed_ : device_.draw_seed(),
                        seed2 = is_seeded ? seed2_ : device_.draw_seed();
    return std::make_shared<RandomStream>(node_name_, seed, seed2);
  });
}

DFLOW_INLINE PhiloxStream detail::NodeStream::reserve(std::int64_t num_values) const {
  return stream_.get([this](ResourceContainer& container) { return find(container); })->reserve(num_values);
}

}  // namespace dflow
