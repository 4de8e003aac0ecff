// What dflow-launch --namespaces decides, without a network: where the tasks are, and the commands that join them.
#pragma once

#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dflow::launch {

/// What a link between two tasks is like. 0: as it is.
struct Link {
  std::int64_t delay_us = 0;         ///< of what a task sends
  std::int64_t bits_per_second = 0;  ///< that a task sends at most
};

/// A command, in the network of a task or, with -1, in the one that holds the bridge.
struct NetworkCommand {
  int where = -1;
  std::vector<std::string> argv;
  std::string needs;  ///< what the system lacks where it fails

  std::string text() const {
    std::string line;
    for (const std::string& argument : argv) line += str_cat(line.empty() ? "" : " ", argument);
    return line;
  }
};

/// Of a task's end of its wire. The network is nobody else's, so these are free.
inline std::string network_host(std::size_t task) { return str_cat("10.77.", task / 250, '.', task % 250 + 1); }

inline std::vector<std::string> network_addresses(std::size_t count) {
  std::vector<std::string> addresses;
  for (std::size_t i = 0; i < count; ++i) addresses.push_back(str_cat(network_host(i), ":2222"));
  return addresses;
}

/// A number with one of these units, as so many of the smallest. Errors: InvalidArgument.
inline std::int64_t number_with_unit(std::string_view text,
                                     const std::vector<std::pair<std::string_view, std::int64_t>>& units) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  const auto found = std::find_if(units.begin(), units.end(), [&](const auto& entry) { return entry.first == unit; });
  std::int64_t result = 0;
  if (error == std::errc() && found != units.end() && number > 0 &&
      !__builtin_mul_overflow(number, found->second, &result)) {
    return result;
  }
  std::string known;
  for (const auto& [name, factor] : units) known += str_cat(known.empty() ? "" : ", ", name);
  throw_error(invalid_argument(str_cat("'", text, "' is no number with one of the units ", known)));
}

/// "5ms"
inline std::int64_t delay_us(std::string_view text) {
  return number_with_unit(text, {{"us", 1}, {"ms", 1000}, {"s", 1'000'000}});
}
/// "10mbit"
inline std::int64_t bits_per_second(std::string_view text) {
  return number_with_unit(text, {{"bit", 1}, {"kbit", 1000}, {"mbit", 1'000'000}, {"gbit", 1'000'000'000}});
}

/// Joins the networks of `count` tasks, which exist and are empty, by a bridge. `network_of(task)` is a name of a
/// task's for ip. What a task sends is delayed and slowed down where it leaves the task.
template <class NetworkOf>
std::vector<NetworkCommand> plan_network(std::size_t count, const Link& link, NetworkOf network_of) {
  const std::string rights = "the right to make bridges and pairs of virtual devices (veth)";
  std::vector<NetworkCommand> commands;
  const auto add = [&](int where, std::vector<std::string> argv, const std::string& needs) {
    commands.push_back({where, std::move(argv), needs});
  };
  add(-1, {"ip", "link", "add", "dflow", "type", "bridge"}, rights);
  add(-1, {"ip", "link", "set", "dflow", "up"}, rights);
  for (std::size_t i = 0; i < count; ++i) {
    const auto task = static_cast<int>(i);
    const std::string port = str_cat("task", i);
    add(-1, {"ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", network_of(i)}, rights);
    add(-1, {"ip", "link", "set", port, "master", "dflow", "up"}, rights);
    add(task, {"ip", "link", "set", "lo", "up"}, rights);
    add(task, {"ip", "address", "add", network_host(i) + "/16", "dev", "eth0"}, rights);
    add(task, {"ip", "link", "set", "eth0", "up"}, rights);
    const std::string rate = str_cat(link.bits_per_second, "bit");
    if (link.delay_us > 0) {
      std::vector<std::string> argv{
          "tc",    "qdisc", "add", "dev", "eth0", "root", "netem", "delay", str_cat(link.delay_us, "us"),
          "limit", "100000"};
      if (link.bits_per_second > 0) argv.insert(argv.end(), {"rate", rate});
      add(task, std::move(argv), "a kernel with network emulation (sch_netem), and tc");
    } else if (link.bits_per_second > 0) {
      // What may go at once: 10 ms of the rate, and never less than one large segment.
      const std::int64_t burst = std::max<std::int64_t>(link.bits_per_second / 800, 65536);
      add(task,
          {"tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", rate, "burst", str_cat(burst), "latency",
           "400ms"},
          "a kernel with a token bucket filter (sch_tbf), and tc");
    }
  }
  return commands;
}

}  // namespace dflow::launch
