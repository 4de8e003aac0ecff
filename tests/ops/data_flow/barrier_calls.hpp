// Calls to a barrier, and a sequential model of one.
#pragma once

#include "modelled_calls.hpp"

#include <dflow/ops/data_flow/barrier.hpp>
#include <dflow/runtime/cpu_device.hpp>

#include <algorithm>
#include <limits>
#include <list>
#include <memory>

namespace dflow::testing {

struct BarrierSetting {
  friend auto operator<=>(const BarrierSetting&, const BarrierSetting&) = default;
  static BarrierSetting of(std::uint64_t) { return {}; }
};

struct BarrierCall {
  enum class What : std::uint8_t { insert, take, take_small, take_last, close, close_at_once, ready, incomplete };
  What what = What::ready;
  std::size_t component = 0;
  std::vector<int> keys = {};
  std::int64_t first_value = 0;
  std::int32_t count = 1;

  bool takes() const { return what == What::take || what == What::take_small || what == What::take_last; }
  std::string text() const {
    static constexpr std::array<const char*, 8> names{"insert", "take",          "take small", "take last",
                                                      "close",  "close at once", "ready",      "incomplete"};
    std::string text = names[static_cast<std::size_t>(what)];
    if (takes()) text += str_cat(" ", count);
    if (what == What::insert) text += str_cat(" component ", component, " of");
    for (const int key : keys) text += str_cat(" ", key);
    return text;
  }
};

/// Elements of two components, ordered by their begin; takers are served in turn.
class BarrierModel {
 public:
  using Call = BarrierCall;

  void arrive(int number, const BarrierCall& call) {
    using What = BarrierCall::What;
    switch (call.what) {
      case What::insert: {
        const Code code = insert(call);
        ended[number].code = code;
        return serve();
      }
      case What::take:
      case What::take_small:
      case What::take_last:
        if (number_for(call) == -1) return end(number, Code::out_of_range);
        takes_.emplace_back(number, call);
        return serve();
      case What::close:
      case What::close_at_once:
        is_closed_ = true;
        if (call.what == What::close_at_once) {
          takes_nothing_in_ = true;
          incomplete_.clear();
        }
        ended[number] = {};
        return serve();
      case What::ready:
      case What::incomplete:
        ended[number] = {Code::ok, {call.what == What::ready ? num_ready() : num_incomplete()}, true};
    }
  }
  void stop(int number, Code code) {
    takes_.remove_if([&](const auto& take) { return take.first == number; });
    end(number, code);
    serve();
  }
  static bool agree(const CallOutcome& got, const CallOutcome& wanted) {
    return got.code == wanted.code && got.values == wanted.values;
  }
  std::int64_t num_ready() const { return static_cast<std::int64_t>(ready_.size()); }
  std::int64_t num_incomplete() const { return static_cast<std::int64_t>(incomplete_.size()); }

  std::string key() const {
    std::string key = str_cat(is_closed_, takes_nothing_in_, next_index_);
    for (const auto* const held : {&ready_, &incomplete_}) {
      key += "|";
      for (const Element& element : *held) {
        key += str_cat(" ", element.index, ",", element.key, ",", element.values[0], ",", element.values[1]);
      }
    }
    for (const auto& [number, call] : takes_) key += str_cat(" take ", number);
    return key;
  }

  std::map<int, CallOutcome> ended;

 private:
  struct Element {
    std::int64_t index;
    int key;
    std::array<std::int64_t, 2> values{};  ///< 0: not there
  };

  void end(int number, Code code) { ended[number].code = code; }

  Code insert(const BarrierCall& call) {
    if (takes_nothing_in_) return Code::cancelled;
    std::vector<int> seen;
    bool has_new = false;
    for (const int key : call.keys) {
      const auto found = find(key);
      const bool is_new = found == incomplete_.end();
      if (is_new && is_closed_) return Code::cancelled;
      const bool is_second = std::find(seen.begin(), seen.end(), key) != seen.end();
      if (is_second || (!is_new && found->values[call.component] != 0)) return Code::invalid_argument;
      has_new |= is_new;
      seen.push_back(key);
    }
    std::int64_t value = call.first_value;
    for (const int key : call.keys) {
      auto found = find(key);
      if (found == incomplete_.end()) found = incomplete_.insert(found, {next_index_, key});
      found->values[call.component] = value++;
      if (found->values[0] == 0 || found->values[1] == 0) continue;
      const auto behind =
          std::find_if(ready_.begin(), ready_.end(), [&](const Element& other) { return other.index > found->index; });
      ready_.insert(behind, *found);
      incomplete_.erase(found);
    }
    if (has_new) ++next_index_;
    return Code::ok;
  }
  std::list<Element>::iterator find(int key) {
    return std::find_if(incomplete_.begin(), incomplete_.end(), [&](const Element& each) { return each.key == key; });
  }

  /// How many it gets now; -1: never as many as it needs; none: it is to wait.
  std::optional<std::int64_t> number_for(const BarrierCall& call) const {
    if (num_ready() >= call.count) return call.count;
    if (!is_closed_) return {};
    if (call.what == BarrierCall::What::take) {
      return num_ready() + num_incomplete() < call.count ? std::optional<std::int64_t>(-1) : std::nullopt;
    }
    if (call.what == BarrierCall::What::take_last && num_incomplete() > 0) return {};
    return num_ready() == 0 ? -1 : num_ready();
  }
  void serve() {
    while (!takes_.empty()) {
      const auto [number, call] = takes_.front();
      const std::optional<std::int64_t> count = number_for(call);
      if (!count) return;
      takes_.pop_front();
      CallOutcome& outcome = ended[number];
      if (*count < 0) outcome.code = Code::out_of_range;
      for (std::int64_t i = 0; i < *count; ++i) {
        const Element& first = ready_.front();
        outcome.values.insert(outcome.values.end(), {first.index, first.key, first.values[0], first.values[1]});
        ready_.pop_front();
      }
    }
  }

  std::list<Element> ready_, incomplete_;
  std::list<std::pair<int, BarrierCall>> takes_;
  bool is_closed_ = false, takes_nothing_in_ = false;
  std::int64_t next_index_ = std::numeric_limits<std::int64_t>::min();
};

/// The barrier itself.
class BarrierCalls {
 public:
  using Call = BarrierCall;
  using Model = BarrierModel;

  BarrierCalls(const BarrierSetting&, const std::shared_ptr<ThreadPool>& pool, std::shared_ptr<Clock> clock)
      : device_(std::make_shared<CpuDevice>(CpuDeviceOptions{.pool = pool})),
        session_(graph_, SessionOptions{.devices = {device_}, .clock = std::move(clock), .callbacks = pool}) {}

  static Model model() { return {}; }
  void empty() { device_->context().resources->reset("programs"); }

  static Call draw(std::mt19937_64& random, int number) {
    using What = Call::What;
    static constexpr std::array<What, 16> some{What::insert,     What::insert,    What::insert, What::insert,
                                               What::insert,     What::insert,    What::insert, What::insert,
                                               What::take,       What::take,      What::take,   What::take_small,
                                               What::take_small, What::take_last, What::ready,  What::close};
    Call call{.what = some[static_cast<std::size_t>(draw_below(random, 16))]};
    if (call.what == What::close && draw_below(random, 2) == 0) call.what = What::incomplete;
    if (call.what == What::close && draw_below(random, 2) == 0) call.what = What::close_at_once;
    if (call.takes()) call.count = static_cast<std::int32_t>(draw_below(random, 4));
    if (call.what != What::insert) return call;
    call.component = static_cast<std::size_t>(draw_below(random, 2));
    call.first_value = 100 * number;
    for (std::int64_t i = draw_below(random, 4); i > 0; --i)
      call.keys.push_back(static_cast<int>(draw_below(random, 6)));
    return call;
  }
  static std::optional<Call> draw_last(int i, const Model& model) {
    if (i == 0) return Call{.what = Call::What::close_at_once};
    if (i == 1) return Call{.what = Call::What::take, .count = static_cast<std::int32_t>(model.num_ready())};
    if (i == 2) return Call{.what = Call::What::take_small};
    return {};
  }

  void start(const Call& call, const RunOptions& options, CallEnded ended) {
    using What = Call::What;
    const auto done = [ended](const Status& status) { ended({status.code()}); };
    const auto counted = [ended](const Status& status, const Tensor<std::int32_t>& size) {
      CallOutcome outcome{status.code()};
      if (status.ok()) outcome.values.push_back(size.scalar());
      ended(std::move(outcome));
    };
    switch (call.what) {
      case What::insert: {
        const auto n = static_cast<std::int64_t>(call.keys.size());
        const Shape rows{n};
        Tensor<std::string> keys(rows);
        Tensor<std::int64_t> values(rows);
        for (std::int64_t i = 0; i < n; ++i) {
          keys.data()[i] = std::to_string(call.keys[static_cast<std::size_t>(i)]);
          values.data()[i] = call.first_value + i;
        }
        return session_.run_async(options, nullptr, {{keys_, keys}, {values_, values}}, insert_[call.component], done);
      }
      case What::close:
      case What::close_at_once:
        return session_.run_async(options, nullptr, {}, call.what == What::close ? close_ : close_at_once_, done);
      case What::ready:
      case What::incomplete:
        return session_.run_async(options, nullptr, {}, call.what == What::ready ? ready_ : incomplete_, counted);
      default: {
        const auto& [indices, keys, first, second] = call.what == What::take         ? take_
                                                     : call.what == What::take_small ? take_small_
                                                                                     : take_last_;
        return session_.run_async(
            options, nullptr, {{count_, call.count}}, indices, keys, first, second,
            [ended](const Status& status, const Tensor<std::int64_t>& at, const Tensor<std::string>& names,
                    const Tensor<std::int64_t>& a, const Tensor<std::int64_t>& b) {
              CallOutcome outcome{status.code()};
              for (std::int64_t i = 0; status.ok() && i < at.dim(0); ++i) {
                outcome.values.insert(outcome.values.end(), {at(i), std::stoi(names(i)), a(i), b(i)});
              }
              ended(std::move(outcome));
            });
      }
    }
  }
  std::string compare(const Model& model) {
    const auto [ready, incomplete] = session_.run(ready_, incomplete_);
    return ready.scalar() == model.num_ready() && incomplete.scalar() == model.num_incomplete() ? ""
                                                                                                : "leaves another size";
  }

 private:
  Graph graph_;
  Barrier<std::int64_t, std::int64_t> barrier_{graph_, {.shapes = {{}, {}}, .container = "programs"}};
  Output<std::string> keys_ = placeholder<std::string>(graph_, {dynamic});
  Output<std::int64_t> values_ = placeholder<std::int64_t>(graph_, {dynamic});
  Output<std::int32_t> count_ = placeholder<std::int32_t>(graph_, Shape{});
  std::array<Operation, 2> insert_{barrier_.insert_many<0>(keys_, values_), barrier_.insert_many<1>(keys_, values_)};
  using Taken = std::tuple<Output<std::int64_t>, Output<std::string>, Output<std::int64_t>, Output<std::int64_t>>;
  Taken take_ = barrier_.take_many(count_), take_small_ = barrier_.take_many(count_, {.allow_small_batch = true}),
        take_last_ = barrier_.take_many(count_, {.allow_small_batch = true, .wait_for_incomplete = true});
  Operation close_ = barrier_.close(), close_at_once_ = barrier_.close(true);
  Output<std::int32_t> ready_ = barrier_.ready_size(), incomplete_ = barrier_.incomplete_size();
  std::shared_ptr<CpuDevice> device_;
  Session session_;
};

}  // namespace dflow::testing
