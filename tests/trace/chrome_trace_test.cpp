#include <dflow/trace/chrome_trace.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <cstdint>
#include <limits>
#include <string>

#if defined(DFLOW_TEST_HAS_JSON)
#include <nlohmann/json.hpp>

TEST_CASE("A step's statistics become one slice per node and one process per device") {
  dflow::StepStats stats;
  stats.step_id = 7;
  stats.total_ns = 5'500;
  stats.nodes.push_back({"layer/\"x\"\n", "MatMul", "/cpu:0", 1'000, 3'250, 1, 64, "[4,4]"});
  stats.nodes.push_back({"y", "Relu", "/cpu:1", 3'250, 5'500, 0, 64, "[4,4]"});
  stats.nodes.push_back({"z", "Relu", "/cpu:0", 0, 1, 0, 0, ""});
  const auto json = nlohmann::json::parse(dflow::chrome_trace(stats));
  const auto& events = json["traceEvents"];
  REQUIRE(events.size() == 5);
  CHECK(events[0]["ph"] == "M");
  CHECK(events[1]["args"]["name"] == "/cpu:1");
  const auto& first = events[2];
  CHECK(first["ph"] == "X");
  CHECK(first["name"] == "MatMul");
  CHECK(first["args"]["node"] == "layer/\"x\"\n");
  CHECK(first["pid"] == 0);
  CHECK(first["tid"] == 1);
  CHECK(first["ts"] == 1.0);
  CHECK(first["dur"] == 2.25);
  CHECK(events[3]["pid"] == 1);
  CHECK(json["otherData"]["step_id"] == 7);
}

TEST_CASE("A step without nodes is valid JSON too") {
  const auto json = nlohmann::json::parse(dflow::chrome_trace({}));
  CHECK(json["traceEvents"].is_array());
  CHECK(json["traceEvents"].empty());
}

TEST_CASE("Names of any bytes make a valid trace") {
  dflow::StepStats stats;
  stats.nodes.push_back({"\xff\xfe", "\x80", "\xc3", 0, 1, 0, 0, "\xed\xa0\x80"});
  const auto json = nlohmann::json::parse(dflow::chrome_trace(stats));
  CHECK(json["traceEvents"][1]["args"]["node"] == "\xef\xbf\xbd\xef\xbf\xbd");
}

TEST_CASE("Statistics of another task are a trace whatever they say") {
  constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
  dflow::StepStats stats;
  for (int i = 0; i < 20'000; ++i)
    stats.nodes.push_back({"n", "Op", "device " + std::to_string(i), 1, least, 0, 0, {}});
  const auto json = nlohmann::json::parse(dflow::chrome_trace(stats));
  CHECK(json["traceEvents"].size() == 40'000);
}
#endif
