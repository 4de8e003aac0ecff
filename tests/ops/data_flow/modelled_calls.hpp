// Random programs of calls that wait for each other, beside a sequential model of the object that they call.
#pragma once

#include <dflow/dflow.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace dflow::testing {

/// How a call ended.
struct CallOutcome {
  Code code = Code::ok;
  std::vector<std::int64_t> values = {};  ///< the values that the call was given
  bool is_count = false;                  ///< the only value counts the elements that are there
};
using CallEnded = std::function<void(CallOutcome)>;

inline std::int64_t draw_below(std::mt19937_64& random, int n) {
  return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
}

/// One program, by its number. `Calls` is the object that is called, in sessions that use the test's threads. All
/// calls that can end have therefore ended when a call returns:
///
///     using Call, Model;
///     Model model() const;                                         // of an empty object
///     void empty();
///     Call draw(std::mt19937_64& random, int number);              // with a number of its own
///     std::optional<Call> draw_last(int i, const Model&);          // the i-th call that empties it
///     void start(const Call&, const RunOptions&, CallEnded);
///     std::string compare(const Model&);                           // differences in other state
///
/// A Model is a value. It has `arrive(number, call)` and `stop(number, code)`, and `ended` holds the calls that have
/// ended since it was emptied. `agree(got, wanted)` says whether a call may end with that outcome.
template <class Calls>
class CallProgram {
 public:
  using Call = typename Calls::Call;
  using Model = typename Calls::Model;

  CallProgram(Calls& calls, VirtualClock& clock, std::uint64_t number)
      : calls_(calls), clock_(clock), model_(calls.model()), random_(number) {
    calls_.empty();
  }

  /// The first difference from the model; empty if there is none.
  std::string run() {
    const auto num_calls = draw_below(random_, 24) + 4;
    for (int i = 0; i < num_calls && wrong_.empty(); ++i) {
      step();
      compare();
    }
    while (!pending_.empty() && wrong_.empty()) {
      stop_one();
      compare();
    }
    for (int i = 0; wrong_.empty(); ++i) {
      const std::optional<Call> last = calls_.draw_last(i, model_);
      if (!last) break;
      make(*last, {});
      compare();
    }
    if (wrong_.empty() && !pending_.empty()) fail(pending_.begin()->first, "waits in what is empty and closed");
    return wrong_;
  }

 private:
  struct Pending {
    std::stop_source stop;
    std::optional<Clock::time_point> due;
  };

  void step() {
    switch (draw_below(random_, 10)) {
      case 0:
        return stop_one();
      case 1:
        return pass_time();
      default:
        std::optional<Duration> deadline;
        // No two calls have the same deadline.
        if (draw_below(random_, 4) == 0) {
          deadline = std::chrono::milliseconds(draw_below(random_, 20) + 1) + std::chrono::microseconds(last_ + 1);
        }
        make(calls_.draw(random_, last_ + 1), deadline);
    }
  }
  void make(const Call& call, std::optional<Duration> deadline) {
    const int number = ++last_;
    says(str_cat(number, ": ", call.text(), deadline ? " with a deadline" : ""));
    Pending& pending = pending_[number];
    if (deadline) pending.due = clock_.after(*deadline);
    model_.arrive(number, call);
    calls_.start(call, {.deadline = deadline, .stop = pending.stop.get_token()},
                 [this, number](CallOutcome outcome) { outcomes_[number] = std::move(outcome); });
  }
  void stop_one() {
    if (pending_.empty()) return;
    auto one = pending_.begin();
    std::advance(one, draw_below(random_, static_cast<int>(pending_.size())));
    says(str_cat("stop ", one->first));
    std::stop_source source = one->second.stop;
    model_.stop(one->first, Code::cancelled);
    source.request_stop();
  }
  void pass_time() {
    const Duration time = std::chrono::milliseconds(draw_below(random_, 10) + 1);
    std::map<Clock::time_point, int> due;
    for (const auto& [number, pending] : pending_) {
      if (pending.due && *pending.due <= clock_.after(time)) due[*pending.due] = number;
    }
    for (const auto& [when, number] : due) {
      if (!model_.ended.contains(number)) model_.stop(number, Code::deadline_exceeded);
    }
    says("time passes");
    clock_.advance(time);
  }
  void says(const std::string& what) { log_ += what + "; "; }

  /// Checks that the same calls have ended, with the same outcomes.
  void compare() {
    if (!wrong_.empty()) return;
    for (const auto& [number, wanted] : model_.ended) {
      const auto got = outcomes_.find(number);
      if (got == outcomes_.end()) return fail(number, "has not ended");
      if (got->second.code != wanted.code) {
        return fail(number, str_cat("ended with ", code_name(got->second.code), ", wanted ", code_name(wanted.code)));
      }
      if (!model_.agree(got->second, wanted)) return fail(number, "was given something else");
      outcomes_.erase(got);
      pending_.erase(number);
    }
    model_.ended.clear();
    if (!outcomes_.empty()) return fail(outcomes_.begin()->first, "has ended");
    if (const std::string other = calls_.compare(model_); !other.empty()) fail(last_, other);
  }
  void fail(int number, const std::string& what) { wrong_ = str_cat("call ", number, " ", what, ", after ", log_); }

  Calls& calls_;
  VirtualClock& clock_;
  Model model_;
  std::mt19937_64 random_;
  std::map<int, Pending> pending_;
  std::map<int, CallOutcome> outcomes_;
  int last_ = 0;
  std::string log_, wrong_;
};

}  // namespace dflow::testing
