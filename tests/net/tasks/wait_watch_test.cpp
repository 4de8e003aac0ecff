#include <dflow/net/tasks/wait_watch.hpp>

#include "catch.hpp"

#include <dflow/net/tasks/step_table.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

using namespace dflow;
using namespace dflow::net;

namespace {

struct Nobody final : TensorSource {
  void receive(const std::string&, std::uint64_t, const RendezvousKey&, const RecvArgs&, CancellationToken,
               Rendezvous::RecvDone) override {}
  void push(const std::string&, std::uint64_t, const RendezvousKey&, const AnyTensor&, bool, UniqueFunction<bool()>,
            UniqueFunction<void(Status)>) override {}
};

}  // namespace

TEST_CASE("each long wait is a line, once, and none is begun after the watch was stopped", "[net]") {
  const bool stops_in_log = GENERATE(false, true);
  const auto clock = std::make_shared<VirtualClock>();
  const auto steps = std::make_shared<StepTable>(
      StepTable::Options{.task = "/job:ps/replica:0/task:0", .source = std::make_shared<Nobody>()});
  const auto step = steps->begin(7, "client");
  for (int i = 0; i < 3; ++i) {
    const RendezvousKey key("/job:worker/replica:0/task:0/device:CPU:0", 1, "/job:ps/replica:0/task:0/device:CPU:0",
                            "edge" + std::to_string(i));
    step->recv_async(key, {.pushed = true}, [](const Status&, const AnyTensor&, bool) {});
  }
  std::vector<std::string> lines;
  std::shared_ptr<WaitWatch> watch;
  watch = std::make_shared<WaitWatch>(steps, clock, std::chrono::seconds(10), [&](std::string_view line) {
    lines.emplace_back(line);
    if (stops_in_log) watch->stop();
  });
  watch->start();
  clock->advance(std::chrono::seconds(40));
  CHECK(lines.size() == (stops_in_log ? 1 : 3));
  for (const std::string& line : lines) CHECK(line.starts_with("for over 10 s, step 7: "));
  watch->stop();
  steps->cancel_all(Status::cancelled("the test is over"));
}
