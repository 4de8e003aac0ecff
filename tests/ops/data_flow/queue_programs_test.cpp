// Random programs of calls to queues, barriers and accumulators, step by step beside a sequential model of each.
// DFLOW_QUEUE_PROGRAMS says how many programs; DFLOW_QUEUE_PROGRAM runs only the program with that number.
#include <dflow/ops/data_flow/queue_kinds.hpp>

#include "accumulator_calls.hpp"
#include "barrier_calls.hpp"
#include "catch.hpp"
#include "queue_calls.hpp"
#include "support/sanitized.hpp"

#include <dflow/dflow.hpp>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string>

using namespace dflow;
using dflow::testing::AccumulatorCalls;
using dflow::testing::AccumulatorSetting;
using dflow::testing::BarrierCalls;
using dflow::testing::BarrierSetting;
using dflow::testing::CallProgram;
using dflow::testing::QueueCalls;
using dflow::testing::QueueSetting;

namespace {

std::optional<std::uint64_t> number_in(const char* variable) {
  const char* const text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  return std::strtoull(text, nullptr, 10);
}

/// `Setting::of(number)` says which object a program calls.
template <class Calls, class Setting>
void run_programs() {
  struct Made {
    std::shared_ptr<VirtualClock> clock = std::make_shared<VirtualClock>();
    std::unique_ptr<Calls> calls;
  };
  std::map<Setting, Made> all;
  const auto only = number_in("DFLOW_QUEUE_PROGRAM");
  const std::uint64_t count = number_in("DFLOW_QUEUE_PROGRAMS").value_or(dflow::testing::is_sanitized ? 2'000 : 10'000);
  for (std::uint64_t number = only.value_or(0); number < (only ? *only + 1 : count); ++number) {
    const Setting setting = Setting::of(number);
    Made& made = all[setting];
    if (made.calls == nullptr)
      made.calls = std::make_unique<Calls>(setting, std::make_shared<InlinePool>(), made.clock);
    const std::string wrong = CallProgram<Calls>(*made.calls, *made.clock, number).run();
    INFO("DFLOW_QUEUE_PROGRAM=" << number);
    REQUIRE(wrong == "");
  }
}

}  // namespace

TEST_CASE("Random programs of queue operations do what a sequential queue does", "[one_thread]") {
  run_programs<QueueCalls, QueueSetting>();
}

TEST_CASE("Random programs of calls to a barrier do what a sequential barrier does", "[one_thread]") {
  run_programs<BarrierCalls, BarrierSetting>();
}

TEST_CASE("Random programs of calls to accumulators do what sequential accumulators do", "[one_thread]") {
  run_programs<AccumulatorCalls, AccumulatorSetting>();
}
