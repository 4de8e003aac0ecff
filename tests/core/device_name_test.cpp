#include <dflow/core/device_name.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

using dflow::Code;
using dflow::DeviceName;
using dflow::Status;

TEST_CASE("a full device name prints as it was read", "[device_name]") {
  const DeviceName name = DeviceName::parse("/job:ps/replica:0/task:3/device:CPU:0");
  CHECK(name.job == "ps");
  CHECK(name.replica == 0);
  CHECK(name.task == 3);
  CHECK(name.type == "CPU");
  CHECK(name.id == 0);
  CHECK(name.is_full());
  CHECK(name.to_string() == "/job:ps/replica:0/task:3/device:CPU:0");
  CHECK(name.to_short_string() == "/cpu:0");
}

TEST_CASE("short forms, open parts and letter case", "[device_name]") {
  CHECK(DeviceName::parse("/cpu:0").to_string() == "/device:CPU:0");
  CHECK(DeviceName::parse("/GPU:1").to_string() == "/device:GPU:1");
  CHECK(DeviceName::parse("/device:gpu:1") == DeviceName::parse("/gpu:1"));
  CHECK(DeviceName::parse("/gpu").to_string() == "/device:GPU:*");
  CHECK(DeviceName::parse("/device:GPU:*") == DeviceName::parse("/gpu"));
  CHECK(DeviceName::parse("/job:worker/cpu:0").to_string() == "/job:worker/device:CPU:0");
  CHECK(DeviceName::parse("/task:7/job:w-2_b").to_string() == "/job:w-2_b/task:7");
  CHECK(DeviceName::parse("/job:*/replica:*/task:*/device:*:*").is_empty());
  CHECK(DeviceName::parse("").is_empty());
  CHECK(DeviceName::parse("/").is_empty());
  CHECK(DeviceName::parse("/task:01/cpu:00") == DeviceName::parse("/task:1/cpu:0"));
  CHECK(DeviceName::parse("").to_string().empty());
  CHECK(DeviceName::parse("/device:tpu_v2:4").type == "TPU_V2");
}

TEST_CASE("malformed device names are refused and quoted", "[device_name]") {
  for (const char* text :
       {"cpu:0",        "///",         "//cpu:0", "/cpu:0/",           "/job:",        "/job:1a",      "/job:a b",
        "/task:-1",     "/task:",      "/task:x", "/task:99999999999", "/cpu:1x",      "/cpu:+1",      "/device:",
        "/device:CPU:", "/device:9:0", "/foo:1",  "/job:a/job:b",      "/job:*/job:b", "/cpu:0/gpu:1", "/task:1/task:2",
        "/cpu:0:0"}) {
    INFO(text);
    const Status status = status_of([&] { return DeviceName::parse(text); });
    CHECK(status.code() == Code::invalid_argument);
    CHECK(status.message().find("'" + std::string(text) + "'") != std::string::npos);
    CHECK(DeviceName::try_parse(text).status() == status);
  }
}

TEST_CASE("an inner scope overrides what it names", "[device_name]") {
  const DeviceName outer = DeviceName::parse("/job:ps/task:1/cpu:0");
  CHECK(outer.merged_with(DeviceName::parse("/task:2")).to_string() == "/job:ps/task:2/device:CPU:0");
  CHECK(outer.merged_with(DeviceName::parse("/gpu:3")).to_string() == "/job:ps/task:1/device:GPU:3");
  CHECK(outer.merged_with({}) == outer);
}

TEST_CASE("a constraint matches devices that have all of it", "[device_name]") {
  const DeviceName device = DeviceName::parse("/job:ps/replica:0/task:1/device:CPU:0");
  CHECK(DeviceName().matches(device));
  CHECK(device.matches(device));
  CHECK(DeviceName::parse("/job:ps/cpu:0").matches(device));
  CHECK_FALSE(DeviceName::parse("/cpu:1").matches(device));
  CHECK_FALSE(DeviceName::parse("/gpu").matches(device));
  CHECK_FALSE(device.matches(DeviceName::parse("/cpu:0")));
  CHECK(device.is_compatible_with(DeviceName::parse("/cpu:0")));
  CHECK_FALSE(DeviceName::parse("/job:a").is_compatible_with(DeviceName::parse("/job:b/cpu:0")));
}
