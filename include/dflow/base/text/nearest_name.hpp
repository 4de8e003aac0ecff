#pragma once

#include <dflow/base/config.hpp>

#include <cstddef>
#include <string_view>

namespace dflow {

/// Finds the name that somebody has probably meant: the first of the nearest names to `wanted`, with at most two edits
/// (a character put in, taken out or changed) and fewer edits than `wanted` has characters.
///
/// Thread safety: one thread at a time. The names must outlive it.
class NearestName {
 public:
  explicit NearestName(std::string_view wanted) noexcept;
  void consider(std::string_view name);
  /// Empty if no name was near.
  std::string_view nearest() const noexcept { return nearest_; }

 private:
  std::string_view wanted_, nearest_;
  std::size_t within_;  ///< edits of the nearest name, or the first number that is too large
};

}  // namespace dflow
