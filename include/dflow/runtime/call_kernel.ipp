#pragma once

#include <dflow/base/sha256.hpp>
#include <dflow/base/threads/no_waiting.hpp>
#include <dflow/core/cancellation.hpp>
#include <dflow/core/kept_memory.hpp>
#include <dflow/kernels/state/device_files.hpp>
#include <dflow/runtime/call_kernel.hpp>
#include <dflow/runtime/step.hpp>
#include <dflow/state/tensor_list.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>

namespace dflow {

namespace detail {

/// Thread safety: safe, once the plan is set.
class CalledPlan {
 public:
  void set(std::shared_ptr<const Plan> plan) {
    plan_ = std::move(plan);
    const StepGraph& graph = plan_->graph();
    for (std::size_t i = 0; i < graph.feeds.size(); ++i) {
      const StepNode& node = graph.node(graph.feeds[i].node);
      if (node.op->role != OpRole::argument || is_handle(node->outputs[0].dtype)) continue;
      if (node->outputs[0].shape.has_rank()) arguments_.push_back({i, node.node});
    }
  }

  /// Null while the plan is being compiled.
  const Plan* plan() const noexcept { return plan_.get(); }

  /// Checks a shape that the body declares for its arguments, because kernels rely on it; `given(i)` is argument i.
  /// Errors: InvalidArgument naming both shapes.
  template <class Given>
  void check(const Given& given) const {
    for (const auto& [i, argument] : arguments_) {
      const PartialShape& declared = argument->outputs[0].shape;
      const AnyTensor& tensor = given(i);
      if (declared.is_compatible_with(tensor.shape())) continue;
      throw_error(Status::invalid_argument(str_cat("argument '", argument->name, "' has shape ",
                                                   tensor.shape().to_string(), ", not ", declared.to_string())));
    }
  }

  /// Errors: ResourceExhausted inside of too many calls.
  std::shared_ptr<Step> take(const StepContext& outer) {
    if (outer.call_depth >= max_call_depth) {
      throw_error(Status::resource_exhausted(
          str_cat("calls of functions are nested in ", max_call_depth, " others: a function may call itself forever")));
    }
    std::shared_ptr<Step> step;
    if (!is_first_taken_.exchange(true, std::memory_order_acquire)) {
      step = std::move(first_);
      if (step == nullptr) step = make_first();
    } else if (const std::lock_guard lock(mutex_); !idle_.empty()) {
      step = std::move(idle_.back());
      idle_.pop_back();
    }
    if (step == nullptr) step = std::make_shared<Step>(plan_);
    step->set_outer(outer);
    ++step->context().call_depth;
    return step;
  }

  void give_back(std::shared_ptr<Step> step, bool has_failed) noexcept {
    constexpr std::size_t most_idle = 64;
    step->reset(has_failed);
    if (step.get() == which_is_first_.load(std::memory_order_relaxed)) {
      first_ = std::move(step);
      return is_first_taken_.store(false, std::memory_order_release);
    }
    const std::lock_guard lock(mutex_);
    if (idle_.size() == most_idle) return;
    try {
      idle_.push_back(std::move(step));
    } catch (...) {  // the next call makes another one
    }
  }

 private:
  struct Argument {
    std::size_t feed;
    const Node* node;
  };

  /// Precondition: it has been taken by the caller.
  std::shared_ptr<Step> make_first() {
    try {
      std::shared_ptr<Step> step = std::make_shared<Step>(plan_);
      which_is_first_.store(step.get(), std::memory_order_relaxed);
      return step;
    } catch (...) {
      is_first_taken_.store(false, std::memory_order_release);
      throw;
    }
  }

  std::shared_ptr<const Plan> plan_;
  std::vector<Argument> arguments_;  ///< that have a shape
  // A run for calls that come one after the other, which costs them no lock: the call that sets the flag has the run.
  std::atomic<bool> is_first_taken_{false};
  std::shared_ptr<Step> first_;
  std::atomic<const Step*> which_is_first_{nullptr};  ///< also a lost one; another step may come back at its address
  std::mutex mutex_;
  std::vector<std::shared_ptr<Step>> idle_;
};

/// The bodies that a node calls, and the outputs that it takes from them.
struct CalledBodies {
  OpRole role = OpRole::call;
  std::size_t num_leading = 0;
  std::vector<StepCall::Kept> kept;
  std::vector<std::shared_ptr<CalledPlan>> plans;
  std::vector<std::size_t> first_alike;  ///< for each plan the first that is of the same body
  std::string frame;                     ///< of tensors that bodies send and receive
  std::int64_t max_kept_bytes = -1;

  KernelTraits traits() const {
    KernelTraits traits;
    for (const std::shared_ptr<CalledPlan>& each : plans) {
      // A body without a plan yet may give dead results.
      traits.makes_dead_outputs |= each->plan() == nullptr || each->plan()->carries_dead();
      traits.nests |= each->plan() == nullptr || each->plan()->nests();
    }
    return traits;
  }
};

/// The remaining work after a run of a body: a call, or one of the many iterations of a loop.
///
/// Thread safety: one thread at a time.
class Calls {
 public:
  Calls(const CalledBodies& called, KernelContext& context)
      : called_(called), bodies_(called.plans), role_(called.role), context_(context), lists_(called.kept.size()) {
    if (role_ == OpRole::loop) {
      const auto num_inputs = static_cast<std::size_t>(context.num_inputs());
      given_.reserve(num_inputs - called.num_leading);
      for (std::size_t i = called.num_leading; i < num_inputs; ++i) {
        given_.push_back(context.take_input(static_cast<int>(i)));
      }
    }
    if (!called.frame.empty()) frame_ = frame_inside(context.step(), called.frame);
    kept_memory_ = context.step().kept_memory;
    if (kept_memory_ == nullptr && called.max_kept_bytes >= 0 && !called.kept.empty()) {
      const auto max_bytes = static_cast<std::size_t>(called.max_kept_bytes);
      own_memory_ = std::make_shared<KeptMemory>(max_bytes, device_files(context.device()));
      kept_memory_ = own_memory_.get();
    }
  }
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;
  ~Calls() { end(); }

  /// A run of the body that comes next, fed.
  std::shared_ptr<Step> next() {
    chosen_ = choose();
    body_ = bodies_[chosen_].get();
    if (role_ != OpRole::loop) return next_call();
    body_->check([this](std::size_t i) -> const AnyTensor& { return given_[i]; });
    std::shared_ptr<Step> step = std::move(held_[chosen_]);
    const bool is_fresh = step == nullptr;
    if (is_fresh) step = take_run();
    if (!frame_.empty()) step->context().iteration = num_iterations_;
    // Variables of a loop go to its condition, come back, and go to its body, which may write into them.
    const std::size_t held_from = step->plan().holds_feeds_from();
    for (std::size_t i = 0; i < given_.size(); ++i) {
      const bool is_variable = i < num_results(), is_held = i >= held_from;
      if (is_variable && (asks_ || is_held)) {
        step->feed(i, std::move(given_[i]));
      } else if (is_fresh || is_variable || !is_held) {
        step->feed(i, std::as_const(given_[i]));
      }
    }
    return step;
  }

  /// Takes the results of the run; true if there is another run to do.
  bool take(std::shared_ptr<Step> step, const Status& status) {
    if (!status.ok()) {
      body_->give_back(std::move(step), true);
      throw_error(status);
    }
    // Results that are fetched again are taken last.
    if (role_ != OpRole::loop) {
      for (std::size_t i = 0; i < num_results(); ++i) give_result(*step, i);
      give_kept(*step);
    } else if (asks_) {
      for (std::size_t i = 0; i < num_results(); ++i) {
        require_alive(*step, i);
        given_[i] = step->take_fetch(i);
      }
      for (std::size_t k = 0; k < lists_.size(); ++k) {
        const std::ptrdiff_t result = called_.kept[k].result;
        if (result < 0) continue;
        lists_[k].push_back(step->take_fetch(num_results() + static_cast<std::size_t>(result)));
        if (kept_memory_ == nullptr) continue;
        if (auto kept = kept_memory_->keep(lists_[k].back())) lists_[k].back() = make_resource_handle(std::move(kept));
      }
      ++num_iterations_;
      asks_ = false;
    } else {
      require_alive(*step, 0);
      const Tensor<bool>& is_true = Tensor<bool>::of(step->fetch(0));
      if (is_true.rank() != 0) {
        throw_error(Status::invalid_argument(str_cat("the condition gives a bool ", is_true.shape().to_string())));
      }
      asks_ = *is_true.data();
      goes_on_ = asks_;
      for (std::size_t i = step->plan().holds_feeds_from(); i < num_results(); ++i) given_[i] = step->take_feed(i);
    }
    if (role_ != OpRole::loop) {
      body_->give_back(std::move(step), false);
      return false;
    }
    if (step->plan().is_sequential()) {
      step->reset_run();
      held_[chosen_] = std::move(step);
    } else {
      body_->give_back(std::move(step), false);
    }
    if (goes_on_) return true;
    end();
    for (std::size_t i = 0; i < num_results(); ++i) context_.set_output(static_cast<int>(i), std::move(given_[i]));
    give_lists();
    return false;
  }

  /// Nothing comes after it. The plans may go then.
  void end() noexcept {
    for (std::size_t b = 0; b < held_.size(); ++b) {
      if (held_[b] != nullptr) bodies_[b]->give_back(std::move(held_[b]), false);
    }
  }

 private:
  std::shared_ptr<Step> take_run() {
    std::shared_ptr<Step> step = body_->take(context_.step());
    step->context().kept_memory = kept_memory_;
    if (!frame_.empty()) {
      step->context().frame = frame_;
      step->context().iteration = num_iterations_;
    }
    return step;
  }

  std::shared_ptr<Step> next_call() {
    const auto num_leading = static_cast<int>(called_.num_leading);
    body_->check([&](std::size_t i) -> const AnyTensor& { return context_.input(num_leading + static_cast<int>(i)); });
    std::shared_ptr<Step> step = take_run();
    for (int i = num_leading; i < context_.num_inputs(); ++i) {
      step->feed(static_cast<std::size_t>(i - num_leading), context_.take_input(i));
    }
    return step;
  }

  /// The text that tells the run's messages from messages of other runs. It is a hash of all calls and iterations
  /// around the run, of fixed length, because calls may be nested deep.
  static std::string frame_inside(const StepContext& around, const std::string& call) {
    constexpr std::string_view digits = "0123456789abcdef";
    const Sha256Digest digest = sha256(str_cat(around.frame, ":", around.iteration, "/", call));
    std::string frame;
    for (std::size_t i = 0; i < digest.size() / 2; ++i) {
      frame += digits[static_cast<std::size_t>(digest[i] >> 4)];
      frame += digits[static_cast<std::size_t>(digest[i] & std::byte{15})];
    }
    return frame;
  }

  /// The number of the node's own results: for a loop, its variables.
  std::size_t num_results() const { return static_cast<std::size_t>(context_.num_outputs()) - called_.kept.size(); }

  /// The result is dead if the body's result is dead.
  void give_result(Step& step, std::size_t i) {
    if (step.is_fetch_dead(i)) return context_.set_output_dead(static_cast<int>(i));
    context_.set_output(static_cast<int>(i), step.take_fetch(i));
  }
  void require_alive(const Step& step, std::size_t i) const {
    if (!step.is_fetch_dead(i)) return;
    throw_error(Status::invalid_argument(str_cat("result ", i, " of the ", asks_ ? "body" : "condition", " is dead")));
  }

  void give_kept(Step& step) {
    for (std::size_t k = 0; k < called_.kept.size(); ++k) {
      const int output = static_cast<int>(num_results() + k);
      const auto [body, result] = called_.kept[k];
      if (called_.first_alike[body] == called_.first_alike[chosen_]) {
        context_.set_output(output, step.take_fetch(num_results() + static_cast<std::size_t>(result)));
      } else {
        const DType dtype = context_.output_dtype(output);
        context_.set_output(output, dtype == DType::variant    ? make_list({})
                                    : dtype == DType::resource ? make_resource_handle(nullptr)
                                                               : AnyTensor(dtype, Shape{0}));
      }
    }
  }

  void give_lists() {
    for (std::size_t k = 0; k < called_.kept.size(); ++k) {
      const int output = static_cast<int>(num_results() + k);
      if (called_.kept[k].result >= 0) {
        context_.set_output(output, make_list(TensorList(std::move(lists_[k]))));
      } else {
        context_.set_output(output, Tensor<std::int64_t>(num_iterations_));
      }
    }
  }

  std::size_t choose() const {
    if (role_ == OpRole::loop) return asks_ ? 1 : 0;
    if (role_ == OpRole::call) return 0;
    if (context_.input(0).dtype() == DType::boolean) return context_.scalar_input<bool>(0) ? 0 : 1;
    const std::int32_t branch = context_.scalar_input<std::int32_t>(0);
    const auto last = static_cast<std::int32_t>(bodies_.size()) - 1;
    return static_cast<std::size_t>(branch < 0 || branch > last ? last : branch);
  }

  const CalledBodies& called_;
  const std::vector<std::shared_ptr<CalledPlan>>& bodies_;
  const OpRole role_;
  KernelContext& context_;
  std::vector<std::vector<AnyTensor>> lists_;  ///< of a loop: values kept of its iterations
  std::shared_ptr<KeptMemory> own_memory_;     ///< null but in the outermost loop that has a bound
  KeptMemory* kept_memory_ = nullptr;
  std::string frame_;
  std::int64_t num_iterations_ = 0;
  std::size_t chosen_ = 0;
  std::vector<AnyTensor> given_;               ///< of a loop: its variables, then captures
  CalledPlan* body_ = nullptr;                 ///< that runs
  std::array<std::shared_ptr<Step>, 2> held_;  ///< of a loop: condition and body between two runs, in one thread
  bool asks_ = false;                          ///< of a loop: its condition has been true, its body is next
  bool goes_on_ = true;
};

/// All bodies run in the caller's thread.
class CallKernel final : public AnyKernel {
 public:
  CallKernel(CalledBodies called, double cost_ns)
      : AnyKernel(called.traits()), called_(std::move(called)), cost_ns_(cost_ns) {}

  void run(KernelContext& context) const override {
    NoWaiting::check();
    Calls calls(called_, context);
    for (;;) {
      const CancellationToken& cancellation = context.step().cancellation;
      if (cancellation.is_cancelled()) throw_error(cancellation.status());
      std::shared_ptr<Step> step = calls.next();
      const Status status = step->run_sequential();
      if (!calls.take(std::move(step), status)) return;
    }
  }
  double cost_ns() const noexcept override { return cost_ns_; }

 private:
  CalledBodies called_;
  const double cost_ns_;
};

class CallRun;

/// Runs that end in one thread, each because the one before it ended. Beyond some depth they take turns, so that
/// deeply nested calls do not make a deep stack.
class Endings {
 public:
  explicit Endings(const UnitQueue* queue) noexcept : queue_(queue), outer_(std::exchange(innermost(), this)) {}
  Endings(const Endings&) = delete;
  Endings& operator=(const Endings&) = delete;
  ~Endings() { innermost() = outer_; }

  /// The endings of this thread, if they belong to this step; a call begun in a kernel of another step is not waited
  /// for.
  static Endings* of(const UnitQueue* queue) noexcept {
    Endings* const here = innermost();
    return here != nullptr && here->queue_ == queue ? here : nullptr;
  }

  std::shared_ptr<CallRun> first, last;  ///< that wait for their turn
  int depth = 0;

 private:
  static Endings*& innermost() noexcept {
    static constinit thread_local Endings* here = nullptr;
    return here;
  }

  const UnitQueue* queue_;
  Endings* outer_;
};

/// A run of an asynchronous call. Units of its bodies go to the step's queue; a body without them runs at once.
class CallRun : public std::enable_shared_from_this<CallRun> {
 public:
  CallRun(const CalledBodies& called, KernelContext& context, Completion done)
      : calls_(called, context),
        context_(context),
        done_(std::move(done)),
        cancellation_(context.step().cancellation) {}

  /// Goes on until the call has ended or another thread goes on.
  void run() noexcept {
    try {
      for (;;) {
        const CancellationToken& cancellation = context_.step().cancellation;
        if (cancellation.is_cancelled()) return finish(cancellation.status());
        std::shared_ptr<Step> step = calls_.next();
        if (step->plan().is_sequential()) {
          const Status status = step->run_sequential();
          if (!calls_.take(std::move(step), status)) return finish(Status());
          continue;
        }
        has_one_arrived_.store(false, std::memory_order_relaxed);
        attend(*step);
        step->start(context_.step().queue->shared_from_this(),
                    [self = shared_from_this(), step](const Status& status) { self->end(step, status); });
        // The second to arrive goes on: this thread, or the one that ended the run.
        if (!has_one_arrived_.exchange(true, std::memory_order_acq_rel)) return;
        if (has_ended_) return;
      }
    } catch (...) {
      finish(status_of_current_exception());
    }
  }

 private:
  void finish(Status status) noexcept {
    calls_.end();
    done_(std::move(status));
  }

  /// When part of a body fails, waits in the body end too: the step outside hears of the failure only when the body
  /// ends.
  void attend(Step& step) {
    step.context().cancellation = cancellation_.token();
    step.context().receive_cancellation = cancellation_.token();
    step.set_on_error([self = shared_from_this()](const Status& status) { self->cancellation_.cancel(status); });
  }

  void end(std::shared_ptr<Step> step, const Status& status) noexcept {
    constexpr int max_depth = 8;
    const UnitQueue* const queue = context_.step().queue;
    if (Endings* const around = Endings::of(queue); around == nullptr) {
      Endings here(queue);
      take_end(std::move(step), status);
      while (here.first != nullptr) {
        const std::shared_ptr<CallRun> next = std::exchange(here.first, std::move(here.first->next_));
        const Status with = std::exchange(next->ended_with_, Status());
        next->take_end(std::move(next->ended_), with);
      }
    } else if (around->depth < max_depth) {
      ++around->depth;
      take_end(std::move(step), status);
      --around->depth;
    } else {
      ended_ = std::move(step);
      ended_with_ = status;
      const std::shared_ptr<CallRun> self = shared_from_this();
      (around->first == nullptr ? around->first : around->last->next_) = self;
      around->last = self;
    }
  }

  void take_end(std::shared_ptr<Step> step, const Status& status) noexcept {
    try {
      has_ended_ = !calls_.take(std::move(step), status);
    } catch (...) {
      has_ended_ = true;
      ended_with_ = status_of_current_exception();
    }
    const bool has_ended = has_ended_;
    const bool goes_on = has_one_arrived_.exchange(true, std::memory_order_acq_rel);
    if (has_ended) return finish(std::move(ended_with_));
    if (goes_on) run();
  }

  Calls calls_;
  KernelContext& context_;
  Completion done_;
  CancellationSource cancellation_;
  std::atomic<bool> has_one_arrived_{false};
  bool has_ended_ = false;
  Status ended_with_;
  std::shared_ptr<Step> ended_;    ///< its end waits for its turn
  std::shared_ptr<CallRun> next_;  ///< after it
};

class AsyncCallKernel final : public AsyncKernel {
 public:
  explicit AsyncCallKernel(CalledBodies called) : AsyncKernel(called.traits()), called_(std::move(called)) {}

  void run_async(KernelContext& context, Done done) const override {
    const auto run = std::make_shared<CallRun>(called_, context, std::move(done));
    run->run();
  }

 private:
  CalledBodies called_;
};

}  // namespace detail

std::shared_ptr<detail::CalledPlan> detail::make_called_plan() { return std::make_shared<CalledPlan>(); }

void detail::set_plan(CalledPlan& of, std::shared_ptr<const Plan> plan) { of.set(std::move(plan)); }

std::unique_ptr<AnyKernel> make_call_kernel(OpRole role, const StepCall& call,
                                            std::vector<std::shared_ptr<detail::CalledPlan>> bodies) {
  constexpr double assumed_iterations = 16;
  bool is_sequential = true;
  double cost_ns = 0;
  detail::CalledBodies called{role, call.num_leading, call.kept, {}, {}, call.frame, call.max_kept_bytes};
  for (const std::shared_ptr<detail::CalledPlan>& body : bodies) {
    const auto first = std::find(bodies.begin(), bodies.end(), body);
    called.first_alike.push_back(static_cast<std::size_t>(first - bodies.begin()));
    const Plan* const plan = body->plan();
    is_sequential &= plan != nullptr && plan->is_sequential();
    if (plan == nullptr) continue;
    double of_plan = 0;
    for (const Plan::PlanNode& each : plan->nodes()) of_plan += each.cost_ns;
    cost_ns = role == OpRole::branch ? std::max(cost_ns, of_plan) : cost_ns + of_plan;
  }
  called.plans = std::move(bodies);
  if (role == OpRole::loop) cost_ns *= assumed_iterations;
  if (!is_sequential) return std::make_unique<detail::AsyncCallKernel>(std::move(called));
  return std::make_unique<detail::CallKernel>(std::move(called), cost_ns);
}

}  // namespace dflow
