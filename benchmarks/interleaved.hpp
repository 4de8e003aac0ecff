#pragma once

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

/// Two programs measured in turn, since other work on the machine changes its speed within seconds.
namespace dflow::bench {

struct Comparison {
  double ours_ns;
  double peer_ns;
  double ratio;  ///< median over the pairs of peer / ours; above 1 ours is faster
};

/// The clock of a measurement. Work in one thread may use the time that the thread itself ran, which leaves out waits
/// for a core. Work of several threads uses the clock on the wall.
enum class Clock { wall, thread };

inline double now_ns(Clock clock) {
  timespec now{};
  clock_gettime(clock == Clock::thread ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

template <class F>
double time_ns(F&& f, int repeats, Clock clock) {
  const double start = now_ns(clock);
  for (int i = 0; i < repeats; ++i) f();
  return (now_ns(clock) - start) / repeats;
}

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Peer, ours, peer, ours, ...; each turn lasts about `turn_ms`.
template <class Ours, class Peer>
Comparison compare(Ours&& ours, Peer&& peer, Clock clock, int pairs = 9, double turn_ms = 8) {
  peer();
  ours();
  const auto repeats = [&](double ns) { return std::max(1, static_cast<int>(turn_ms * 1e6 / ns)); };
  const int peer_repeats = repeats(time_ns(peer, 1, clock));
  const int our_repeats = repeats(time_ns(ours, 1, clock));
  std::vector<double> ours_ns, peer_ns, ratios;
  for (int i = 0; i < pairs; ++i) {
    peer_ns.push_back(time_ns(peer, peer_repeats, clock));
    ours_ns.push_back(time_ns(ours, our_repeats, clock));
    ratios.push_back(peer_ns.back() / ours_ns.back());
  }
  return {median(ours_ns), median(peer_ns), median(ratios)};
}

inline void print(const std::string& name, const char* peer, const Comparison& c) {
  std::printf("%-44s %12.2f us   %-14s %12.2f us   ratio %6.2f\n", name.c_str(), c.ours_ns / 1e3, peer, c.peer_ns / 1e3,
              c.ratio);
  std::fflush(stdout);
}

}  // namespace dflow::bench
