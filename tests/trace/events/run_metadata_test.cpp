#include <dflow/trace/events/run_metadata.hpp>

#include "catch.hpp"

#include <dflow/base/str_cat.hpp>
#include <dflow/io/proto/proto_reader.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

using namespace dflow;

namespace {

/// One line a device and one a node: the name and the numbers of the fields 2, 4, 5, 9, 10, 15, 16.
std::string stats_listing(std::string_view metadata) {
  std::string lines;
  for (ProtoReader in(metadata); in.next();) {
    if (in.number() != 1) continue;
    for (ProtoReader stats = in.message(); stats.next();) {
      for (ProtoReader device = stats.message(); device.next();) {
        if (device.number() == 1) lines += str_cat(device.bytes(), "\n");
        if (device.number() != 2) continue;
        for (ProtoReader node = device.message(); node.next();) {
          if (node.number() == 1) lines += str_cat("  ", node.bytes());
          if (node.wire_type() == ProtoWireType::varint) lines += str_cat(" ", node.number(), "=", node.int64());
        }
        lines += "\n";
      }
    }
  }
  return lines;
}

}  // namespace

TEST_CASE("a step's statistics stand by device, in the order of their starts", "[run_metadata]") {
  StepStats stats;
  stats.wall_start_us = 1'000'000;
  stats.nodes = {{"b", "Mul", "/cpu:1", 3000, 5500, 1, 0, ""},
                 {"c", "Add", "/cpu:0", 9000, 10000, 0, 64, "float[16]"},
                 {"a", "Add", "/cpu:0", 2000, 4000, 0, 8, "float[2]"}};
  CHECK(stats_listing(tensorflow_run_metadata(stats)) ==
        "/cpu:0\n"
        "  a 2=1000002 4=2 5=2 9=1000002 10=0 15=2000 16=2000\n"
        "  c 2=1000009 4=1 5=1 9=1000009 10=0 15=1000 16=1000\n"
        "/cpu:1\n"
        "  b 2=1000003 4=2 5=2 9=1000003 10=1 15=2500 16=2500\n");
  CHECK(tensorflow_run_metadata(stats).find("a = Add() float[2]") != std::string::npos);
}

TEST_CASE("statistics of a peer that make no sense are written all the same", "[run_metadata]") {
  StepStats stats;
  stats.wall_start_us = std::numeric_limits<std::int64_t>::max();
  stats.nodes = {
      {"a", "Add", "", std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min(), -1, -5, ""}};
  CHECK_FALSE(stats_listing(tensorflow_run_metadata(stats)).empty());
  CHECK(tensorflow_run_metadata(StepStats()) == std::string("\x0a\x00", 2));
}
