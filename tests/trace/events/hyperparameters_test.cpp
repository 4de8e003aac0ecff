#include <dflow/trace/events/hyperparameters.hpp>

#include "catch.hpp"

#include <string_view>

using namespace dflow;
using namespace std::string_view_literals;

TEST_CASE("a run's hyperparameters are the bytes of TensorBoard's own messages", "[hyperparameters]") {
  const HyperparameterRun run{.values = {{"lr", 0.5}, {"b", true}, {"opt", std::string("adam")}},
                              .metrics = {"acc"},
                              .group = "t1",
                              .start_time_secs = 7};
  const Summary summary = hyperparameters_summary(run);
  REQUIRE(summary.values.size() == 2);
  // tensorboard.plugins.hparams.plugin_data_pb2 of TensorBoard 2.21, SerializeToString(deterministic=True).
  CHECK(summary.values[0].tag == "_hparams_/experiment");
  CHECK(summary.values[0].plugin == "hparams");
  CHECK(
      summary.values[0].plugin_content ==
      "\x12\x2a\x19\x00\x00\x00\x00\x00\x00\x1c\x40\x22\x05\x0a\x01\x62\x20\x02\x22\x06\x0a\x02\x6c\x72\x20\x03\x22\x07"
      "\x0a\x03\x6f\x70\x74\x20\x01\x2a\x07\x0a\x05\x12\x03\x61\x63\x63"sv);
  CHECK(summary.values[1].tag == "_hparams_/session_start_info");
  CHECK(
      summary.values[1].plugin_content ==
      "\x1a\x36\x0a\x07\x0a\x01\x62\x12\x02\x20\x01\x0a\x0f\x0a\x02\x6c\x72\x12\x09\x11\x00\x00\x00\x00\x00\x00\xe0\x3f"
      "\x0a\x0d\x0a\x03\x6f\x70\x74\x12\x06\x1a\x04\x61\x64\x61\x6d\x22\x02\x74\x31\x29\x00\x00\x00\x00\x00\x00\x1c"
      "\x40"sv);
  const Summary end = hyperparameters_end_summary(true, 9);
  REQUIRE(end.values.size() == 1);
  CHECK(end.values[0].tag == "_hparams_/session_end_info");
  CHECK(end.values[0].plugin_content == "\x22\x0b\x08\x01\x11\x00\x00\x00\x00\x00\x00\x22\x40"sv);
  CHECK(hyperparameters_end_summary(false, 9).values[0].plugin_content[3] == 2);
}
