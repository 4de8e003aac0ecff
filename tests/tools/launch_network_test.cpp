#include "../../tools/launch_network.hpp"

#include "catch.hpp"
#include "errors.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

using namespace dflow;

namespace {

std::vector<std::string> planned_lines(std::size_t count, const launch::Link& link) {
  std::vector<std::string> lines;
  for (const auto& command :
       launch::plan_network(count, link, [](std::size_t i) { return "net" + std::to_string(i); })) {
    CHECK_FALSE(command.needs.empty());
    lines.push_back(std::to_string(command.where) + ": " + command.text());
  }
  return lines;
}

}  // namespace

TEST_CASE("each task is joined to one bridge, in a network of its own", "[tools]") {
  CHECK(planned_lines(1, {}) == std::vector<std::string>{
                                    "-1: ip link add dflow type bridge",
                                    "-1: ip link set dflow up",
                                    "-1: ip link add task0 type veth peer name eth0 netns net0",
                                    "-1: ip link set task0 master dflow up",
                                    "0: ip link set lo up",
                                    "0: ip address add 10.77.0.1/16 dev eth0",
                                    "0: ip link set eth0 up",
                                });
  const std::vector<std::string> lines = planned_lines(300, {});
  CHECK(lines.size() == 2 + 5 * 300);
  CHECK(std::set<std::string>(lines.begin(), lines.end()).size() == lines.size());
}

TEST_CASE("addresses of tasks are all different, and hosts of one network", "[tools]") {
  const std::vector<std::string> addresses = launch::network_addresses(3003);
  CHECK(addresses[0] == "10.77.0.1:2222");
  CHECK(addresses[249] == "10.77.0.250:2222");
  CHECK(addresses[250] == "10.77.1.1:2222");
  CHECK(std::set<std::string>(addresses.begin(), addresses.end()).size() == addresses.size());
}

TEST_CASE("what a task sends is delayed, slowed down or both", "[tools]") {
  const auto shaped = [](const launch::Link& link) { return planned_lines(1, link).back(); };
  CHECK(shaped({.delay_us = 5000}) == "0: tc qdisc add dev eth0 root netem delay 5000us limit 100000");
  CHECK(shaped({.delay_us = 5000, .bits_per_second = 1000}) ==
        "0: tc qdisc add dev eth0 root netem delay 5000us limit 100000 rate 1000bit");
  CHECK(shaped({.bits_per_second = 10'000'000}) ==
        "0: tc qdisc add dev eth0 root tbf rate 10000000bit burst 65536 latency 400ms");
  CHECK(contains(shaped({.bits_per_second = 8'000'000'000}), "burst 10000000 "));
}

TEST_CASE("delays and rates are numbers with units", "[tools]") {
  CHECK(launch::delay_us("5ms") == 5000);
  CHECK(launch::delay_us("250us") == 250);
  CHECK(launch::delay_us("2s") == 2'000'000);
  CHECK(launch::bits_per_second("10mbit") == 10'000'000);
  CHECK(launch::bits_per_second("1gbit") == 1'000'000'000);
  CHECK(launch::bits_per_second("8bit") == 8);
  for (const char* text :
       {"", "5", "ms", "-5ms", "0ms", "5 ms", "5minutes", "9223372036854775807s", "99999999999999999999s"}) {
    INFO(text);
    CHECK_THROWS_AS(launch::delay_us(text), Error);
  }
}
