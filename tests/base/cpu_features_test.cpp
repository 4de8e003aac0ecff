#include <dflow/base/cpu_features.hpp>

#include "catch.hpp"

using namespace dflow;

TEST_CASE("the level is one of the scale and stays the same", "[cpu_features]") {
  const CpuLevel level = detect_cpu_level();
  CHECK(level >= CpuLevel::baseline);
  CHECK(level <= CpuLevel::x86_64_v4);
  CHECK(level == detect_cpu_level());
  CHECK(cpu_level_name(CpuLevel::baseline) == "baseline");
  CHECK(cpu_level_name(CpuLevel::x86_64_v3) == "x86-64-v3");
  CHECK(cpu_level_name(CpuLevel::x86_64_v4) == "x86-64-v4");
}
