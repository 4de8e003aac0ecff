#pragma once

#include <dflow/base/status.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace dflow {

/// The name of a device, or a constraint on one: each part may be left open.
///
/// Read in TensorFlow's forms: "/job:ps/replica:0/task:3/device:CPU:0", "/cpu:0", "/device:GPU:*", "/job:worker", "".
/// Types are case-insensitive and kept in upper case; "*" leaves a part open. "/" is "", and numbers may begin with
/// zeros.
///
/// Thread safety: a value type.
struct DeviceName {
  std::optional<std::string> job;
  std::optional<int> replica;
  std::optional<int> task;
  std::optional<std::string> type;  ///< "CPU", "GPU"
  std::optional<int> id;

  /// Errors: InvalidArgument that quotes the text, for an unknown or repeated part, a malformed number, an empty name.
  static DeviceName parse(std::string_view text);
  static StatusOr<DeviceName> try_parse(std::string_view text);

  /// "/job:ps/replica:0/task:3/device:CPU:0", without the parts that are open; an id is "*" if only it is open.
  std::string to_string() const;
  /// "/cpu:0": the type and id alone.
  std::string to_short_string() const;

  /// True if no part is open.
  bool is_full() const noexcept { return job && replica && task && type && id; }
  bool is_empty() const noexcept { return !job && !replica && !task && !type && !id; }

  /// This constraint, refined by an inner scope's: what `inner` says overrides.
  DeviceName merged_with(const DeviceName& inner) const;
  /// True if `device` has everything that this constraint asks for.
  bool matches(const DeviceName& device) const noexcept;
  /// True if a device could match both.
  bool is_compatible_with(const DeviceName& other) const noexcept;

  friend bool operator==(const DeviceName&, const DeviceName&) = default;
};

}  // namespace dflow
