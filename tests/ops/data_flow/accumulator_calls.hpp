// Calls to a conditional accumulator with dense gradients or with rows, and a sequential model of the accumulator.
#pragma once

#include "modelled_calls.hpp"

#include <dflow/ops/data_flow/accumulator.hpp>
#include <dflow/runtime/cpu_device.hpp>

#include <algorithm>
#include <cmath>
#include <list>
#include <memory>

namespace dflow::testing {

struct AccumulatorSetting {
  bool is_sparse = false, is_mean = false;

  friend auto operator<=>(const AccumulatorSetting&, const AccumulatorSetting&) = default;
  static AccumulatorSetting of(std::uint64_t number) { return {number % 2 == 1, number / 2 % 2 == 1}; }
};

struct AccumulatorCall {
  enum class What : std::uint8_t { give, take, take_ranks, set_step, reset, size };
  /// The number of rows of a gradient; a dense gradient has all rows.
  static constexpr int num_rows = 3;
  What what = What::size;
  std::vector<std::int32_t> ranks = {};  ///< the ranks to take; the one rank to give, or -1 for none
  std::int64_t step = 0;
  std::vector<std::int64_t> rows = {}, values = {};
  std::int32_t count = 1;

  std::string text() const {
    static constexpr std::array<const char*, 6> names{"give",     "take",          "take ranks",
                                                      "set step", "reset to step", "size"};
    std::string text = names[static_cast<std::size_t>(what)];
    if (what == What::take) return text + str_cat(" ", count);
    if (what == What::size) return text;
    for (const std::int32_t rank : ranks) text += str_cat(" ", rank);
    return text + str_cat(" of step ", step);
  }
};

/// A model that collects gradients until the first waiting call has as many as it wants.
class AccumulatorModel {
 public:
  using Call = AccumulatorCall;
  /// A scale that makes the means of up to ten gradients whole numbers.
  static constexpr std::int64_t scale = 2520;

  explicit AccumulatorModel(const AccumulatorSetting& setting) : setting_(setting) {}

  void arrive(int number, const AccumulatorCall& call) {
    using What = AccumulatorCall::What;
    switch (call.what) {
      case What::give:
        ended[number] = {};
        return give(call);
      case What::take:
        if (call.count < 1) return end(number, Code::invalid_argument);
        takes_.emplace_back(number, call.count);
        return serve();
      case What::take_ranks:
        return take_ranks(number, call);
      case What::set_step:
      case What::reset:
        if (call.what == What::reset) held_.clear();
        step_ = call.step;
        return end(number, Code::ok);
      case What::size:
        ended[number] = {Code::ok, {size()}, true};
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
  std::int64_t size() const { return static_cast<std::int64_t>(held_.size()); }

  std::string key() const {
    std::string key = str_cat(step_);
    for (const AccumulatorCall& each : held_) {
      key += str_cat(" ", each.ranks[0], ",", each.step, ",", each.values.empty() ? 0 : each.values[0]);
    }
    for (const auto& [number, count] : takes_) key += str_cat(" take ", number);
    return key;
  }

  std::map<int, CallOutcome> ended;

 private:
  void end(int number, Code code) { ended[number].code = code; }
  void give(const AccumulatorCall& call) {
    if (call.step < step_) return;
    if (call.ranks[0] >= 0) std::erase_if(held_, [&](const auto& each) { return each.ranks == call.ranks; });
    held_.push_back(call);
    serve();
  }
  void serve() {
    while (!takes_.empty() && size() >= takes_.front().second) {
      ended[takes_.front().first].values = reduced(held_);
      takes_.pop_front();
      held_.clear();
      ++step_;
    }
  }
  /// Waiting calls are not served: there are never more gradients than before.
  void take_ranks(int number, const AccumulatorCall& call) {
    std::vector<AccumulatorCall> taken;
    for (const std::int32_t rank : call.ranks) {
      const auto found = std::find_if(held_.begin(), held_.end(), [&](const AccumulatorCall& each) {
        return each.ranks[0] == rank && each.step == call.step;
      });
      if (found == held_.end()) return end(number, Code::aborted);
      taken.push_back(*found);
    }
    ended[number].values = reduced(taken);
    std::erase_if(held_, [&](const auto& each) { return each.ranks[0] < 0 || each.step <= call.step; });
    step_ = call.step + 1;
  }
  std::vector<std::int64_t> reduced(const std::vector<AccumulatorCall>& gradients) const {
    std::vector<std::int64_t> sums(AccumulatorCall::num_rows);
    for (const AccumulatorCall& each : gradients) {
      for (std::size_t i = 0; i < each.rows.size(); ++i) sums[static_cast<std::size_t>(each.rows[i])] += each.values[i];
    }
    const auto count = static_cast<std::int64_t>(setting_.is_mean ? gradients.size() : 1);
    for (std::int64_t& sum : sums) sum = sum * scale / count;
    return sums;
  }

  AccumulatorSetting setting_;
  std::vector<AccumulatorCall> held_;
  std::list<std::pair<int, std::int32_t>> takes_;
  std::int64_t step_ = 0;
};

/// The accumulator itself.
class AccumulatorCalls {
 public:
  using Call = AccumulatorCall;
  using Model = AccumulatorModel;
  static constexpr std::int32_t num_ranks = 3;

 private:
  static auto taken_by(CallEnded ended) {
    return [ended = std::move(ended)](const Status& status, const Tensor<std::int32_t>& rows,
                                      const Tensor<double>& values) {
      CallOutcome outcome{status.code()};
      if (!status.ok()) return ended(std::move(outcome));
      std::vector<double> sums(Call::num_rows);
      for (std::int64_t i = 0; i < values.num_elements(); ++i) {
        sums[static_cast<std::size_t>(rows.data()[i])] += values.data()[i];
      }
      for (const double sum : sums) {
        outcome.values.push_back(std::llround(sum * static_cast<double>(Model::scale)));
      }
      ended(std::move(outcome));
    };
  }

 public:
  AccumulatorCalls(const AccumulatorSetting& setting, const std::shared_ptr<ThreadPool>& pool,
                   std::shared_ptr<Clock> clock)
      : setting_(setting), device_(std::make_shared<CpuDevice>(CpuDeviceOptions{.pool = pool})) {
    const AccumulatorAttrs attrs{.shape = {Call::num_rows},
                                 .container = "programs",
                                 .shared_name = {},
                                 .reduction_type = setting.is_mean ? "MEAN" : "SUM"};
    const TypeArgs one = type_args<double>(), two = type_args<double, std::int32_t>();
    GraphStore& graph = *graph_.store();
    if (setting.is_sparse) {
      const AnyOutput handle = build<SparseConditionalAccumulator>(graph, {}, attrs, {}, one);
      for (std::int32_t rank = -1; rank < num_ranks; ++rank) {
        give_.push_back(
            Operation(build<SparseAccumulatorApplyGradient>({handle, step_, rows_, values_}, {.rank = rank})));
      }
      take_ = taken(build<SparseAccumulatorTakeGradient>({handle, count_}, {}, {}, two));
      take_ranks_ = taken(build<SparseAccumulatorTakeRanks>({handle, ranks_, step_}, {}, {}, two));
      handle_ = handle;
    } else {
      const AnyOutput handle = build<ConditionalAccumulator>(graph, {}, attrs, {}, one);
      for (std::int32_t rank = -1; rank < num_ranks; ++rank) {
        give_.push_back(Operation(build<AccumulatorApplyGradient>({handle, step_, values_}, {.rank = rank})));
      }
      const auto all = constant(graph_, Tensor<std::int32_t>({3}, {0, 1, 2}));
      take_ = {all, Output<double>(AnyOutput(build<AccumulatorTakeGradient>({handle, count_}, {}, {}, one)))};
      take_ranks_ = {all, Output<double>(AnyOutput(build<AccumulatorTakeRanks>({handle, ranks_, step_}, {}, {}, one)))};
      handle_ = handle;
    }
    set_step_ = Operation(build<AccumulatorSetGlobalStep>({handle_, step_}));
    reset_ = Operation(build<AccumulatorSetGlobalStep>({handle_, step_}, {.drops_waiting = true}));
    size_ = Output<std::int32_t>(AnyOutput(build<AccumulatorNumAccumulated>({handle_})));
    session_ = std::make_unique<Session>(
        graph_, SessionOptions{.devices = {device_}, .clock = std::move(clock), .callbacks = pool});
  }

  Model model() const { return Model(setting_); }
  void empty() { device_->context().resources->reset("programs"); }

  Call draw(std::mt19937_64& random, int number) const {
    using What = Call::What;
    static constexpr std::array<What, 16> some{What::give,       What::give,     What::give,  What::give,
                                               What::give,       What::give,     What::give,  What::take,
                                               What::take,       What::take,     What::take,  What::take_ranks,
                                               What::take_ranks, What::set_step, What::reset, What::size};
    Call call{.what = some[static_cast<std::size_t>(draw_below(random, 16))], .step = draw_below(random, 4)};
    call.count = static_cast<std::int32_t>(draw_below(random, 4));
    if (call.what == What::take_ranks) {
      for (std::int32_t rank = 0; rank < num_ranks; ++rank) {
        if (draw_below(random, 3) != 0) call.ranks.push_back(rank);
      }
      if (call.ranks.empty()) call.ranks.push_back(0);
    }
    if (call.what != What::give) return call;
    call.ranks = {static_cast<std::int32_t>(draw_below(random, num_ranks + 1)) - 1};
    for (std::int64_t row = 0; row < Call::num_rows; ++row) {
      if (setting_.is_sparse && draw_below(random, 2) == 0) continue;
      call.rows.push_back(row);
      call.values.push_back(10 * number + row + 1);
      if (!setting_.is_sparse || draw_below(random, 4) != 0) continue;
      call.rows.push_back(row);  // twice
      call.values.push_back(3);
    }
    return call;
  }
  static std::optional<Call> draw_last(int i, const Model& model) {
    if (i > 0 || model.size() == 0) return {};
    return Call{.what = Call::What::take, .count = static_cast<std::int32_t>(model.size())};
  }

  void start(const Call& call, const RunOptions& options, CallEnded ended) {
    using What = Call::What;
    const auto done = [ended](const Status& status) { ended({status.code()}); };
    const Tensor<std::int64_t> step(call.step);
    switch (call.what) {
      case What::give: {
        const auto n = static_cast<std::int64_t>(call.rows.size());
        const Shape shape{n};
        Tensor<std::int32_t> rows(shape);
        Tensor<double> values(shape);
        std::copy(call.rows.begin(), call.rows.end(), rows.data());
        std::copy(call.values.begin(), call.values.end(), values.data());
        return session_->run_async(options, nullptr, {{step_, step}, {rows_, rows}, {values_, values}},
                                   give_[static_cast<std::size_t>(call.ranks[0] + 1)], done);
      }
      case What::take:
        return session_->run_async(options, nullptr, {{count_, call.count}}, take_.first, take_.second,
                                   taken_by(std::move(ended)));
      case What::take_ranks:
        return session_->run_async(
            options, nullptr,
            {{step_, step}, {ranks_, Tensor<std::int32_t>({static_cast<std::int64_t>(call.ranks.size())}, call.ranks)}},
            take_ranks_.first, take_ranks_.second, taken_by(std::move(ended)));
      case What::set_step:
      case What::reset:
        return session_->run_async(options, nullptr, {{step_, step}}, call.what == What::reset ? reset_ : set_step_,
                                   done);
      case What::size:
        return session_->run_async(options, nullptr, {}, size_,
                                   [ended](const Status& status, const Tensor<std::int32_t>& size) {
                                     CallOutcome outcome{status.code()};
                                     if (status.ok()) outcome.values.push_back(size.scalar());
                                     ended(std::move(outcome));
                                   });
    }
  }
  std::string compare(const Model& model) {
    return session_->run(size_).scalar() == model.size() ? "" : "leaves another number of gradients";
  }

 private:
  using Rows = std::pair<Output<std::int32_t>, Output<double>>;

  static Rows taken(const BuiltNode& node) {
    return {Output<std::int32_t>(node.output(0)), Output<double>(node.output(1))};
  }
  const AccumulatorSetting setting_;
  Graph graph_;
  AnyOutput handle_;
  Output<double> values_ = placeholder<double>(graph_, {dynamic});
  Output<std::int64_t> step_ = placeholder<std::int64_t>(graph_, Shape{});
  Output<std::int32_t> rows_ = placeholder<std::int32_t>(graph_, {dynamic}),
                       count_ = placeholder<std::int32_t>(graph_, Shape{}),
                       ranks_ = placeholder<std::int32_t>(graph_, {dynamic});
  std::vector<Operation> give_;
  Rows take_, take_ranks_;
  Operation set_step_, reset_;
  Output<std::int32_t> size_;
  std::shared_ptr<CpuDevice> device_;
  std::unique_ptr<Session> session_;
};

}  // namespace dflow::testing
