#pragma once

#include <dflow/base/clock.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace dflow::net {

/// When a request and its reply went and came, each by the steady clock of who saw it, in nanoseconds.
struct RoundTrip {
  std::int64_t asked = 0;     ///< by the own clock
  std::int64_t came = 0;      ///< by the peer's
  std::int64_t answered = 0;  ///< by the peer's
  std::int64_t returned = 0;  ///< by the own clock
};

/// How far the steady clock of another task is ahead of the own, from the round trips between them: NTP's way (Mills et
/// al., RFC 5905, sections 8 and 10). A request cannot come before it was sent, nor its reply: so each trip bounds the
/// offset from both sides, and its middle is wrong by at most half of what the trip took on its way. Of the last trips
/// the one with the narrowest bounds counts, where an older one is trusted less, for clocks drift.
///
/// Thread safety: safe.
class ClockOffset {
 public:
  static constexpr std::size_t num_kept = 8;  ///< trips: the stages of RFC 5905's clock filter
  static constexpr double drift = 15e-6;      ///< seconds a second that two clocks may part: RFC 5905's PHI

  void add(const RoundTrip& trip);
  /// In nanoseconds, for what the peer did in the course of `trip`: as the best of the kept trips has it, but within
  /// the bounds of this one, so that nothing begins before it was asked for or ends after its reply.
  std::int64_t during(const RoundTrip& trip) const;

 private:
  mutable std::mutex mutex_;
  std::array<RoundTrip, num_kept> trips_;
  std::size_t num_added_ = 0;
};

namespace detail {
/// A clock's reading as it travels.
inline std::int64_t clock_ns(Clock::time_point time) noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}
/// a - b; a peer may say any number, and one that is wrong is wrapped around.
inline std::int64_t wrapped_difference(std::int64_t a, std::int64_t b) noexcept {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}
}  // namespace detail

}  // namespace dflow::net
