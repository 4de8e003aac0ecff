#pragma once

#include <dflow/base/clock.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace dflow::net {

/// The times at which a request and its reply were sent and received, in nanoseconds. Each time is by the steady
/// clock of the task that saw the event.
struct RoundTrip {
  std::int64_t asked = 0;     ///< by the own clock
  std::int64_t came = 0;      ///< by the peer's
  std::int64_t answered = 0;  ///< by the peer's
  std::int64_t returned = 0;  ///< by the own clock
};

/// How far the steady clock of another task is ahead of the own, from the round trips between them: NTP's way (Mills
/// et al., RFC 5905, sections 8 and 10). Neither a request nor a reply can arrive before it was sent, so each trip
/// bounds the offset from both sides. The middle is wrong by at most half of the time that the trip was on its way.
/// Among the last trips, the trip with the narrowest bounds counts. An older trip is trusted less, because clocks
/// drift.
///
/// Thread safety: safe.
class ClockOffset {
 public:
  static constexpr std::size_t num_kept = 8;  ///< trips: the stages of RFC 5905's clock filter
  static constexpr double drift = 15e-6;      ///< seconds a second that two clocks may part: RFC 5905's PHI

  void add(const RoundTrip& trip);
  /// The offset in nanoseconds for the peer's work in the course of `trip`. It is the offset of the best kept trip,
  /// kept within the bounds of this trip. Then nothing begins before it was asked for or ends after its reply.
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
/// a - b; a peer may send any number, and a wrong number is wrapped around.
inline std::int64_t wrapped_difference(std::int64_t a, std::int64_t b) noexcept {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}
}  // namespace detail

}  // namespace dflow::net
