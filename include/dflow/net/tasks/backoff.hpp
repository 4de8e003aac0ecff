#pragma once

#include <dflow/base/duration.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace dflow::net {

/// The pauses between attempts. Each is twice as long as the one before, up to a limit, and shortened by up to half at
/// random.
class Backoff {
 public:
  Backoff(Duration first, Duration longest) noexcept : pause_(first), longest_(longest) {}

  /// The next pause; `random` has 64 random bits.
  Duration next(std::uint64_t random) noexcept {
    const Duration pause = std::exchange(pause_, std::min(2 * pause_, longest_));
    const double share = static_cast<double>(random >> 11) * 0x1p-53;  // in [0, 1)
    return Duration(static_cast<Duration::rep>(static_cast<double>(pause.count()) * (1.0 - 0.5 * share)));
  }

 private:
  Duration pause_, longest_;
};

}  // namespace dflow::net
