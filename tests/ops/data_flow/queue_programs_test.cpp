// Random programs of queue operations, step by step beside a sequential model of a queue. DFLOW_QUEUE_PROGRAMS says how
// many programs; DFLOW_QUEUE_PROGRAM runs the one of that number alone.
#include <dflow/ops/data_flow/queue_kinds.hpp>

#include "catch.hpp"

#include <dflow/dflow.hpp>
#include <dflow/runtime/cpu_device.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <stop_token>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

using namespace dflow;

namespace {

enum class Kind : std::uint8_t { fifo, padding, shuffle, priority };

struct Setting {
  Kind kind = Kind::fifo;
  int capacity = 0;  ///< 0: none
  int min_after_dequeue = 0;

  friend auto operator<=>(const Setting&, const Setting&) = default;
};

/// An element is a number of its own and, of a priority queue, what it is ordered by.
struct Element {
  int value = 0;
  int priority = 0;
};

/// How a call ended.
struct Outcome {
  Code code = Code::ok;
  std::vector<Element> taken;
};

/// A queue as plain lists: who comes first is served first, all that can be done is done after each call.
class Model {
 public:
  explicit Model(const Setting& setting) : setting_(setting) {}

  void put(int call, std::vector<Element> elements) {
    if (is_closed) return end(call, Code::cancelled);
    puts_.push_back({call, std::move(elements)});
    settle();
  }
  void take(int call, int count, bool up_to) {
    takes_.push_back({call, static_cast<std::size_t>(count), up_to, {}});
    settle();
  }
  void close(bool cancels_pending) {
    is_closed = true;
    if (cancels_pending) {
      for (const Put& put : puts_) end(put.call, Code::cancelled);
      puts_.clear();
    }
    settle();
  }
  void stop(int call) {
    puts_.remove_if([&](const Put& put) { return put.call == call; });
    for (auto take = takes_.begin(); take != takes_.end(); ++take) {
      if (take->call != call) continue;
      put_back(*take);
      takes_.erase(take);
      break;
    }
    end(call, Code::cancelled);
    settle();
  }
  std::size_t size() const { return held_.size(); }

  bool is_closed = false;
  std::map<int, Outcome> ended;  ///< the calls that have, since this was emptied

 private:
  struct Put {
    int call;
    std::vector<Element> left;
  };
  struct Take {
    int call;
    std::size_t count;
    bool up_to;
    std::vector<std::pair<Element, int>> taken;  ///< and when they came
  };

  void end(int call, Code code, std::vector<Element> taken = {}) { ended[call] = {code, std::move(taken)}; }

  void settle() {
    for (bool has_changed = true; has_changed;) {
      has_changed = false;
      if (!puts_.empty()) has_changed |= serve_put();
      if (!takes_.empty()) has_changed |= serve_take();
    }
  }
  bool serve_put() {
    Put& put = puts_.front();
    bool has_changed = false;
    while (!put.left.empty() && (setting_.capacity == 0 || static_cast<int>(held_.size()) < setting_.capacity)) {
      held_.emplace_back(put.left.front(), ++clock_);
      put.left.erase(put.left.begin());
      has_changed = true;
    }
    if (!put.left.empty()) return has_changed;
    end(put.call, Code::ok);
    puts_.pop_front();
    return true;
  }
  bool serve_take() {
    Take& take = takes_.front();
    const bool is_last = is_closed && puts_.empty();
    const std::size_t kept = is_last ? 0 : static_cast<std::size_t>(setting_.min_after_dequeue);
    const std::size_t before = take.taken.size();
    while (take.taken.size() < take.count && held_.size() > kept) {
      const auto next = std::min_element(held_.begin(), held_.end(), [](const auto& a, const auto& b) {
        return std::pair(a.first.priority, a.second) < std::pair(b.first.priority, b.second);
      });
      take.taken.push_back(*next);
      held_.erase(next);
    }
    const bool is_done = take.taken.size() == take.count || (is_last && take.up_to && !take.taken.empty());
    if (is_done) {
      std::vector<Element> elements;
      for (const auto& [element, when] : take.taken) elements.push_back(element);
      end(take.call, Code::ok, elements);
    } else if (is_last) {
      put_back(take);
      end(take.call, Code::out_of_range);
    } else {
      return take.taken.size() != before;
    }
    takes_.pop_front();
    return true;
  }
  /// By when they came they are where they were.
  void put_back(Take& take) { held_.insert(held_.end(), take.taken.begin(), take.taken.end()); }

  const Setting setting_;
  std::vector<std::pair<Element, int>> held_;
  std::list<Put> puts_;
  std::list<Take> takes_;
  int clock_ = 0;
};

/// The queue itself, in sessions whose threads are the test's: what can end has ended when a call returns.
class Queue {
 public:
  using Ended = std::function<void(int call, Outcome)>;

  explicit Queue(const Setting& setting) : kind_(setting.kind), queue_(build(setting)) {
    const bool is_padding = kind_ == Kind::padding;
    value_ = placeholder<int>(graph_, PartialShape::unknown());
    priority_ = placeholder<std::int64_t>(graph_, PartialShape::unknown());
    count_ = placeholder<int>(graph_, Shape{});
    std::vector<AnyOutput> components;
    if (kind_ == Kind::priority) components.push_back(priority_);
    components.push_back(value_);
    put_ = queue_.enqueue(components, false, {});
    put_many_ = queue_.enqueue(components, true, {});
    take_ = result_of(queue_.dequeue({}, false, {}));
    take_many_ = result_of(queue_.dequeue(count_, false, {}));
    take_rest_ = result_of(queue_.dequeue(count_, true, {}));
    close_ = queue_.close(false, {});
    close_at_once_ = queue_.close(true, {});
    size_ = Output<int>(queue_.size({}));
    is_closed_ = Output<bool>(queue_.is_closed({}));
    element_shape_ = is_padding ? Shape{1} : Shape{};
    const auto pool = std::make_shared<InlinePool>();
    device_ = std::make_shared<CpuDevice>(CpuDeviceOptions{.pool = pool});
    session_ = std::make_unique<Session>(graph_, SessionOptions{.devices = {device_}, .callbacks = pool});
  }

  void empty() { device_->context().resources->reset("programs"); }
  int size() { return session_->run(size_).scalar(); }
  bool is_closed() { return session_->run(is_closed_).scalar(); }
  void close(bool cancels_pending) { session_->run(cancels_pending ? close_at_once_ : close_); }

  void put(int call, const std::vector<Element>& elements, bool many, std::stop_token stop, Ended ended) {
    const auto n = static_cast<std::int64_t>(elements.size());
    const Shape rows = many ? Shape{n} : Shape{};
    Tensor<int> values(rows.concatenated(element_shape_));
    Tensor<std::int64_t> priorities(rows);
    for (std::size_t i = 0; i < elements.size(); ++i) {
      values.data()[i] = elements[i].value;
      priorities.data()[i] = elements[i].priority;
    }
    session_->run_async({.stop = std::move(stop)}, nullptr, {{value_, values}, {priority_, priorities}},
                        many ? put_many_ : put_, [call, ended = std::move(ended)](const Status& status) {
                          ended(call, {status.code(), {}});
                        });
  }
  /// Two components' worth of shape: no element.
  Code put_misshapen() {
    try {
      session_->run({{value_, Tensor<int>({1, 1, 2}, {1, 2})}, {priority_, Tensor<std::int64_t>({1}, {1})}}, put_many_);
    } catch (const Error& error) {
      return error.code();
    }
    return Code::ok;
  }
  void take(int call, std::optional<int> count, bool up_to, std::stop_token stop, Ended ended) {
    const Output<int>& fetched = !count ? take_ : up_to ? take_rest_ : take_many_;
    session_->run_async({.stop = std::move(stop)}, nullptr, {{count_, count.value_or(0)}}, fetched,
                        [call, ended = std::move(ended)](const Status& status, const Tensor<int>& values) {
                          Outcome outcome{status.code(), {}};
                          if (status.ok()) {
                            for (const int value : values) outcome.taken.push_back({value, 0});
                          }
                          ended(call, std::move(outcome));
                        });
  }

 private:
  detail::AnyQueue build(const Setting& setting) {
    GraphStore& graph = *graph_.store();
    const QueueOptions options{.capacity = setting.capacity, .shapes = {{}}, .container = "programs"};
    switch (setting.kind) {
      case Kind::fifo:
        break;
      case Kind::padding: {
        QueueOptions padding = options;
        padding.shapes = {{dynamic}};
        return detail::padding_fifo_queue(graph, {DType::int32}, padding, {});
      }
      case Kind::shuffle:
        return detail::random_shuffle_queue(graph, {DType::int32},
                                            {.capacity = setting.capacity,
                                             .min_after_dequeue = setting.min_after_dequeue,
                                             .shapes = {{}},
                                             .seed = 9,
                                             .container = "programs"},
                                            {});
      case Kind::priority:
        return detail::priority_queue(graph, {DType::int32}, options, {});
    }
    return {graph, {DType::int32}, options, {}};
  }
  Output<int> result_of(const BuiltNode& node) const {
    return Output<int>(node.output(kind_ == Kind::priority ? 1 : 0));
  }

  Graph graph_;
  const Kind kind_;
  detail::AnyQueue queue_;
  Output<int> value_, count_, take_, take_many_, take_rest_, size_;
  Output<std::int64_t> priority_;
  Output<bool> is_closed_;
  Operation put_, put_many_, close_, close_at_once_;
  Shape element_shape_;
  std::shared_ptr<CpuDevice> device_;
  std::unique_ptr<Session> session_;
};

/// One program, by its number.
class Program {
 public:
  Program(Queue& queue, const Setting& setting, std::uint64_t number)
      : queue_(queue), setting_(setting), model_(setting), random_(number) {
    queue_.empty();
  }

  /// What was not as the model has it; empty if all was.
  std::string run() {
    const int num_calls = below(24) + 4;
    for (int i = 0; i < num_calls && wrong_.empty(); ++i) {
      step();
      compare();
    }
    while (!pending_.empty() && wrong_.empty()) {
      stop_one();
      compare();
    }
    // What is left comes out as it should.
    const int left = static_cast<int>(model_.size());
    queue_.close(false);
    model_.close(false);
    if (left > 0 && wrong_.empty()) take(left, false);
    compare();
    return wrong_;
  }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<std::uint64_t>(n)); }

  void step() {
    switch (below(16)) {
      case 0:
      case 1:
      case 2:
        return put(1, false);
      case 3:
      case 4:
      case 5:
        return put(below(5), true);
      case 6:
      case 7:
        return take(std::nullopt, false);
      case 8:
      case 9:
      case 10:
        return take(below(6), false);
      case 11:
        return take(below(6), true);
      case 12:
      case 13:
        return stop_one();
      case 14:
        if (queue_.put_misshapen() != Code::invalid_argument) wrong_ = says("an element of another shape went in");
        return;
      default:
        if (below(4) != 0) return;
        const bool cancels_pending = below(2) == 0;
        model_.close(cancels_pending);
        queue_.close(cancels_pending);
        says(cancels_pending ? "close at once" : "close");
    }
  }
  void put(int count, bool many) {
    std::vector<Element> elements;
    for (int i = 0; i < count; ++i) {
      elements.push_back({++last_value_, setting_.kind == Kind::priority ? below(3) : 0});
      inside_[last_value_] = true;
    }
    const int call = begin("put " + std::to_string(count));
    model_.put(call, elements);
    queue_.put(call, elements, many, pending_[call].get_token(), ended_);
  }
  void take(std::optional<int> count, bool up_to) {
    const int call = begin("take " + std::to_string(count.value_or(1)) + (up_to ? " at most" : ""));
    model_.take(call, count.value_or(1), up_to);
    queue_.take(call, count, up_to, pending_[call].get_token(), ended_);
  }
  void stop_one() {
    if (pending_.empty()) return;
    auto one = pending_.begin();
    std::advance(one, below(static_cast<int>(pending_.size())));
    const int call = one->first;
    says("stop " + std::to_string(call));
    std::stop_source source = one->second;
    model_.stop(call);
    source.request_stop();
  }
  int begin(const std::string& what) {
    says(std::to_string(++last_call_) + ": " + what);
    pending_[last_call_] = std::stop_source();
    return last_call_;
  }
  std::string says(const std::string& what) { return log_ += what + "; "; }

  /// The same calls have ended, in the same way, and the queue has as many elements.
  void compare() {
    if (!wrong_.empty()) return;
    for (const auto& [call, wanted] : model_.ended) {
      const auto got = outcomes_.find(call);
      if (got == outcomes_.end()) return fail(call, "has not ended");
      if (got->second.code != wanted.code) {
        return fail(call, str_cat("ended with code ", static_cast<int>(got->second.code), ", wanted ",
                                  static_cast<int>(wanted.code)));
      }
      if (!are_equal(got->second.taken, wanted.taken)) return fail(call, "took other elements");
      outcomes_.erase(got);
      pending_.erase(call);
    }
    model_.ended.clear();
    if (!outcomes_.empty()) return fail(outcomes_.begin()->first, "has ended");
    if (queue_.size() != static_cast<int>(model_.size())) return fail(0, "the queue has another size");
    if (queue_.is_closed() != model_.is_closed) return fail(0, "the queue is closed, or is not");
  }
  bool are_equal(const std::vector<Element>& got, const std::vector<Element>& wanted) {
    if (got.size() != wanted.size()) return false;
    for (std::size_t i = 0; i < got.size(); ++i) {
      // Whichever a shuffling queue chooses, it chooses it once.
      if (setting_.kind != Kind::shuffle && got[i].value != wanted[i].value) return false;
      if (inside_.erase(got[i].value) != 1) return false;
    }
    return true;
  }
  void fail(int call, const std::string& what) { wrong_ = str_cat("call ", call, " ", what, ", after ", log_); }

  Queue& queue_;
  const Setting setting_;
  Model model_;
  std::mt19937_64 random_;
  std::map<int, std::stop_source> pending_;
  std::map<int, Outcome> outcomes_;
  std::map<int, bool> inside_;
  Queue::Ended ended_ = [this](int call, Outcome outcome) { outcomes_[call] = std::move(outcome); };
  int last_call_ = 0, last_value_ = 0;
  std::string log_, wrong_;
};

std::optional<std::uint64_t> number_in(const char* variable) {
  const char* const text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  return std::strtoull(text, nullptr, 10);
}

}  // namespace

TEST_CASE("Random programs of queue operations do what a sequential queue does") {
  std::map<Setting, std::unique_ptr<Queue>> queues;
  const auto only = number_in("DFLOW_QUEUE_PROGRAM");
  const std::uint64_t count = number_in("DFLOW_QUEUE_PROGRAMS").value_or(10'000);
  for (std::uint64_t number = only.value_or(0); number < (only ? *only + 1 : count); ++number) {
    Setting setting{.kind = static_cast<Kind>(number % 4), .capacity = static_cast<int>(number / 4 % 4)};
    if (setting.kind == Kind::shuffle && setting.capacity != 1)
      setting.min_after_dequeue = static_cast<int>(number / 16 % 2);
    std::unique_ptr<Queue>& queue = queues[setting];
    if (queue == nullptr) queue = std::make_unique<Queue>(setting);
    const std::string wrong = Program(*queue, setting, number).run();
    INFO("program " << number);
    REQUIRE(wrong == "");
  }
}
