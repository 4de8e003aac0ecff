#pragma once

/// Public: the position of a node in its stream of random numbers.

#include <dflow/base/philox.hpp>
#include <dflow/base/threads/spin_lock.hpp>
#include <dflow/core/savable_resource.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace dflow {

/// The whole state of a random stream: streams with the same state draw the same numbers.
struct RandomStreamState {
  std::uint64_t seed = 0;
  std::uint64_t seed2 = 0;
  std::uint64_t position = 0;  ///< groups of four words passed over

  friend bool operator==(const RandomStreamState&, const RandomStreamState&) = default;
};

/// The numbers of a random op over all its runs, in all sessions that share the device. They are Philox 4x32-10, keyed
/// by `seed`, with `seed2` as the upper half of its counter. If a checkpoint keeps the state, the restored stream goes
/// on with the very numbers that would have come.
///
/// Thread safety: all functions may be called from any thread. Runs may reserve at once; chance then decides which run
/// gets which part.
class RandomStream final : public SavableResource {
 public:
  /// The name of the container for the streams of a device. Containers of variables have other names.
  static constexpr std::string_view container_name = "_random_streams";
  /// The key of a node's stream in that container.
  static std::string key(std::string_view node_name, std::uint64_t seed, std::uint64_t seed2);

  RandomStream(std::string name, std::uint64_t seed, std::uint64_t seed2)
      : name_(std::move(name)), state_{seed, seed2, 0} {}

  const std::string& name() const noexcept { return name_; }
  std::string debug_string() const override;
  /// One tensor, uint64[3]: both seeds and the position.
  std::vector<AnyTensor> saved_state() const override;
  void restore_state(std::span<const AnyTensor> state) override;

  RandomStreamState state() const noexcept;
  void set_state(const RandomStreamState& state) noexcept;
  std::uint64_t position() const noexcept { return state().position; }
  void set_position(std::uint64_t position) noexcept;

  /// The part of the stream for a run that makes `num_values` values: 256 groups for each of them, as in TensorFlow.
  PhiloxStream reserve(std::int64_t num_values) noexcept;
  /// The part for a run that takes exactly `num_groups` groups of four words.
  PhiloxStream reserve_groups(std::uint64_t num_groups) noexcept;

 private:
  const std::string name_;
  mutable detail::SpinLock lock_;
  RandomStreamState state_;
};

}  // namespace dflow
