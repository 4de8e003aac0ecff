#pragma once

#include <dflow/net/protocol/clock_offset.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace dflow::net {

namespace detail {

/// The bounds that a trip puts on the offset.
struct OffsetBounds {
  std::int64_t least;
  std::int64_t most;

  std::int64_t middle() const noexcept { return std::midpoint(least, most); }
  double width() const noexcept { return static_cast<double>(most) - static_cast<double>(least); }
};

/// Clocks that drift by more than the trip took on its way have the bounds change places.
OffsetBounds bounds_of(const RoundTrip& trip) noexcept {
  const auto [least, most] =
      std::minmax({wrapped_difference(trip.answered, trip.returned), wrapped_difference(trip.came, trip.asked)});
  return {least, most};
}

}  // namespace detail

void ClockOffset::add(const RoundTrip& trip) {
  const std::lock_guard lock(mutex_);
  trips_[num_added_++ % num_kept] = trip;
}

std::int64_t ClockOffset::during(const RoundTrip& trip) const {
  const detail::OffsetBounds bounds = detail::bounds_of(trip);
  std::int64_t best = bounds.middle();
  double least_error = bounds.width() / 2;
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < std::min(num_added_, num_kept); ++i) {
    const detail::OffsetBounds kept = detail::bounds_of(trips_[i]);
    const double age = static_cast<double>(trip.returned) - static_cast<double>(trips_[i].returned);
    const double error = kept.width() / 2 + drift * std::abs(age);
    if (error >= least_error) continue;
    least_error = error;
    best = kept.middle();
  }
  return std::clamp(best, bounds.least, bounds.most);
}

}  // namespace dflow::net
