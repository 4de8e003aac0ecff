// Random programs of calls to queues, barriers and accumulators by several clients at once. A simulation decides by a
// seed which client comes when. The check: there is an order of the calls, with each call between its beginning and
// its end, in which a sequential model gives the same results. DFLOW_SCHEDULES says how many programs; DFLOW_SCHEDULE
// runs only the program with that number.
#include <dflow/net/simulation/simulation.hpp>

#include "catch.hpp"
#include "ops/data_flow/accumulator_calls.hpp"
#include "ops/data_flow/barrier_calls.hpp"
#include "ops/data_flow/queue_calls.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

using namespace dflow;
using dflow::testing::AccumulatorCalls;
using dflow::testing::AccumulatorSetting;
using dflow::testing::BarrierCalls;
using dflow::testing::BarrierSetting;
using dflow::testing::CallOutcome;
using dflow::testing::draw_below;
using dflow::testing::QueueCall;
using dflow::testing::QueueCalls;
using dflow::testing::QueueModel;
using dflow::testing::QueueSetting;
using namespace std::chrono_literals;

namespace {

/// An event of a call, in the order of time.
struct CallEvent {
  enum class What : std::uint8_t { begins, may_be_stopped, ends };
  What what;
  int number;
};

/// Decides whether some order of the calls, one after the other, explains the events.
template <class Calls>
class CallOrder {
 public:
  using Call = typename Calls::Call;
  using Model = typename Calls::Model;

  CallOrder(const std::map<int, Call>& calls, const std::map<int, CallOutcome>& outcomes,
            const std::vector<CallEvent>& events)
      : calls_(calls), outcomes_(outcomes), events_(events) {}

  bool exists(const Model& empty) { return follow({empty, 0, {}, {}, {}}); }

 private:
  struct Point {
    Model model;
    std::size_t at;                  ///< the next event
    std::set<int> begun, stoppable;  ///< begun, not in the model yet; may stop, not ended in the model
    std::set<int> ended;             ///< ended in the model
  };

  /// Follows the events from a point on. The model takes up a call only when the end of a call needs it.
  bool follow(Point point) {
    for (; point.at < events_.size(); ++point.at) {
      const CallEvent& event = events_[point.at];
      if (event.what == CallEvent::What::begins) point.begun.insert(event.number);
      if (event.what == CallEvent::What::may_be_stopped && !point.ended.contains(event.number)) {
        point.stoppable.insert(event.number);
      }
      if (event.what == CallEvent::What::ends && !point.ended.contains(event.number)) return go_on(point);
    }
    return true;
  }
  bool go_on(const Point& point) {
    std::string key = str_cat(point.at, "|", point.model.key());
    for (const int number : point.begun) key += str_cat(" b", number);
    for (const int number : point.ended) key += str_cat(" e", number);
    if (!seen_.insert(key).second) return false;
    for (const int number : point.begun) {
      Point next = point;
      next.begun.erase(number);
      next.model.arrive(number, calls_.at(number));
      if (settle(next) && follow(std::move(next))) return true;
    }
    for (const int number : point.stoppable) {
      const Code code = outcomes_.at(number).code;
      if (code != Code::cancelled && code != Code::deadline_exceeded) continue;
      Point next = point;
      next.begun.erase(number);
      next.model.stop(number, code);
      if (settle(next) && follow(std::move(next))) return true;
    }
    return false;
  }
  /// True if the calls that ended in the model ended with the outcomes that were seen.
  bool settle(Point& point) const {
    for (const auto& [number, wanted] : point.model.ended) {
      if (!point.model.agree(outcomes_.at(number), wanted)) return false;
      point.ended.insert(number);
      point.stoppable.erase(number);
    }
    point.model.ended.clear();
    return true;
  }

  const std::map<int, Call>& calls_;
  const std::map<int, CallOutcome>& outcomes_;
  const std::vector<CallEvent>& events_;
  std::set<std::string> seen_;
};

/// One program: clients begin calls at any time, whatever other calls have ended.
template <class Calls, class Setting>
class CallSchedule {
 public:
  using Call = typename Calls::Call;

  explicit CallSchedule(std::uint64_t number)
      : setting_(Setting::of(number)),
        random_(number),
        simulation_(number),
        process_(simulation_.start("clients")),
        calls_(setting_, process_->pool(), process_->clock()) {}

  /// The error; empty if there is none.
  std::string run() {
    const auto num_calls = draw_below(random_, 8) + 3;
    for (int i = 0; i < num_calls; ++i) begin_at(some_time(300), calls_.draw(random_, i + 1), i + 1, true);
    simulation_.run_for(10ms);
    stop_all();
    simulation_.run_for(10ms);
    int number = static_cast<int>(num_calls);
    // The last calls come one after the other; their results must fit an order of all calls.
    for (int i = 0; i < 2; ++i) {
      const std::optional<Call> last = calls_.draw_last(i == 0 ? 0 : 2, calls_.model());
      if (last) begin_at({}, *last, ++number, false);
      simulation_.run_for(10ms);
    }
    if (outcomes_.size() != begun_.size()) return says("a call has not ended");
    CallOrder<Calls> order(begun_, outcomes_, events_);
    return order.exists(calls_.model()) ? "" : says("there is no order of these calls");
  }
  std::uint64_t trace_hash() const { return simulation_.trace_hash(); }

 private:
  Duration some_time(int most) { return std::chrono::microseconds(draw_below(random_, most)); }

  void begin_at(Duration pause, Call call, int number, bool may_be_stopped) {
    std::optional<Duration> deadline, stops;
    if (may_be_stopped && draw_below(random_, 4) == 0) deadline = some_time(400) + 1us;
    if (may_be_stopped && draw_below(random_, 6) == 0) stops = some_time(400);
    process_->schedule_after(pause, [this, call = std::move(call), number, deadline, stops] {
      begun_.emplace(number, call);
      events_.push_back({CallEvent::What::begins, number});
      if (stops) process_->schedule_after(*stops, [this, number] { stop(number); });
      if (deadline) {
        process_->schedule_after(*deadline - 1ns, [this, number] {
          events_.push_back({CallEvent::What::may_be_stopped, number});
        });
      }
      calls_.start(call, {.deadline = deadline, .stop = stops_[number].get_token()},
                   [this, number](CallOutcome outcome) {
                     outcomes_.emplace(number, std::move(outcome));
                     events_.push_back({CallEvent::What::ends, number});
                   });
    });
  }
  void stop(int number) {
    events_.push_back({CallEvent::What::may_be_stopped, number});
    stops_[number].request_stop();
  }
  void stop_all() {
    for (const auto& [number, call] : begun_) {
      if (!outcomes_.contains(number)) stop(number);
    }
  }
  std::string says(const std::string& what) const {
    std::string text = what + ":";
    for (const auto& [which, number] : events_) {
      text += str_cat("\n  ", number, " ");
      if (which == CallEvent::What::begins) text += begun_.at(number).text();
      if (which == CallEvent::What::may_be_stopped) text += "may be stopped";
      if (which != CallEvent::What::ends) continue;
      const CallOutcome& outcome = outcomes_.at(number);
      text += str_cat("ends: ", code_name(outcome.code));
      for (const std::int64_t value : outcome.values) text += str_cat(" ", value);
    }
    return text;
  }

  const Setting setting_;
  std::mt19937_64 random_;
  net::Simulation simulation_;
  std::shared_ptr<net::SimulatedProcess> process_;
  Calls calls_;
  std::map<int, Call> begun_;
  std::map<int, CallOutcome> outcomes_;
  std::map<int, std::stop_source> stops_;
  std::vector<CallEvent> events_;
};

template <class Calls, class Setting>
void run_schedules() {
  const auto number_in = [](const char* variable) -> std::optional<std::uint64_t> {
    const char* const text = std::getenv(variable);
    return text == nullptr ? std::nullopt : std::optional<std::uint64_t>(std::strtoull(text, nullptr, 10));
  };
  const auto only = number_in("DFLOW_SCHEDULE");
  const std::uint64_t count = number_in("DFLOW_SCHEDULES").value_or(300);
  for (std::uint64_t number = only.value_or(0); number < (only ? *only + 1 : count); ++number) {
    CallSchedule<Calls, Setting> schedule(number);
    const std::string wrong = schedule.run();
    INFO("DFLOW_SCHEDULE=" << number);
    REQUIRE(wrong == "");
  }
}

}  // namespace

TEST_CASE("Calls of several clients to a queue have an order in which a sequential queue gives the same",
          "[simulation][one_thread]") {
  run_schedules<QueueCalls, QueueSetting>();
}

TEST_CASE("Calls of several clients to a barrier have an order in which a sequential barrier gives the same",
          "[simulation][one_thread]") {
  run_schedules<BarrierCalls, BarrierSetting>();
}

TEST_CASE("Calls of several clients to an accumulator have an order in which a sequential one gives the same",
          "[simulation][one_thread]") {
  run_schedules<AccumulatorCalls, AccumulatorSetting>();
}

TEST_CASE("An order of calls that cannot have been is refused", "[simulation][one_thread]") {
  using What = QueueCall::What;
  using Event = CallEvent::What;
  const QueueModel empty{QueueSetting{}};
  const std::map<int, QueueCall> calls{{1, {.what = What::put, .elements = {{.value = 10}}}},
                                       {2, {.what = What::put, .elements = {{.value = 20}}}},
                                       {3, {.what = What::take}},
                                       {4, {.what = What::take}}};
  const auto is_possible = [&](std::int64_t third, std::int64_t fourth, const std::vector<CallEvent>& events) {
    const std::map<int, CallOutcome> outcomes{{1, {}}, {2, {}}, {3, {Code::ok, {third}}}, {4, {Code::ok, {fourth}}}};
    return CallOrder<QueueCalls>(calls, outcomes, events).exists(empty);
  };
  const auto one_by_one = [](std::vector<int> numbers) {
    std::vector<CallEvent> events;
    for (const int number : numbers) events.insert(events.end(), {{Event::begins, number}, {Event::ends, number}});
    return events;
  };
  CHECK(is_possible(10, 20, one_by_one({1, 2, 3, 4})));
  CHECK_FALSE(is_possible(20, 10, one_by_one({1, 2, 3, 4})));
  CHECK(is_possible(20, 10, one_by_one({2, 1, 3, 4})));
  CHECK_FALSE(is_possible(10, 10, one_by_one({1, 2, 3, 4})));
  CHECK_FALSE(is_possible(10, 20, one_by_one({3, 1, 2, 4})));  // an empty queue gave an element
  // If both calls are under way at once, either may be first.
  const std::vector<CallEvent> together{{Event::begins, 1}, {Event::begins, 2}, {Event::ends, 1},   {Event::ends, 2},
                                        {Event::begins, 3}, {Event::ends, 3},   {Event::begins, 4}, {Event::ends, 4}};
  CHECK(is_possible(10, 20, together));
  CHECK(is_possible(20, 10, together));
  CHECK_FALSE(is_possible(20, 20, together));
}

TEST_CASE("A schedule is the same for the same number", "[simulation][one_thread]") {
  const auto trace = [](std::uint64_t number) {
    CallSchedule<QueueCalls, QueueSetting> schedule(number);
    static_cast<void>(schedule.run());
    return schedule.trace_hash();
  };
  CHECK(trace(5) == trace(5));
  CHECK(trace(5) != trace(6));
}
