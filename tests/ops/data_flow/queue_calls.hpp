// Calls to queues of all kinds, and a sequential model of a queue.
#pragma once

#include "modelled_calls.hpp"

#include <dflow/ops/data_flow/queue_kinds.hpp>
#include <dflow/runtime/cpu_device.hpp>

#include <algorithm>
#include <list>
#include <memory>
#include <set>

namespace dflow::testing {

enum class QueueOrder : std::uint8_t { fifo, padding, shuffle, priority };

struct QueueSetting {
  QueueOrder kind = QueueOrder::fifo;
  int capacity = 0;  ///< 0: none
  int min_after_dequeue = 0;

  friend auto operator<=>(const QueueSetting&, const QueueSetting&) = default;

  static QueueSetting of(std::uint64_t number) {
    QueueSetting setting{.kind = static_cast<QueueOrder>(number % 4), .capacity = static_cast<int>(number / 4 % 4)};
    const bool keeps = setting.kind == QueueOrder::shuffle && setting.capacity != 1;
    if (keeps) setting.min_after_dequeue = static_cast<int>(number / 16 % 2);
    return setting;
  }
};

/// An element has a number of its own and, in a priority queue, a priority.
struct QueuedElement {
  std::int64_t value = 0;
  std::int64_t priority = 0;
};

struct QueueCall {
  enum class What : std::uint8_t {
    put,
    put_many,
    put_misshapen,
    take,
    take_many,
    take_up_to,
    close,
    close_at_once,
    size
  };
  What what = What::size;
  std::vector<QueuedElement> elements = {};
  std::int32_t count = 1;

  std::string text() const {
    static constexpr std::array<const char*, 9> names{"put",        "put",   "put misshapen", "take", "take",
                                                      "take up to", "close", "close at once", "size"};
    const bool puts = what == What::put || what == What::put_many;
    const bool takes = what == What::take || what == What::take_many || what == What::take_up_to;
    std::string text = names[static_cast<std::size_t>(what)];
    if (puts) text += str_cat(" ", elements.size());
    if (takes) text += str_cat(" ", count);
    return text;
  }
};

/// A queue as plain lists. Calls are served in order of arrival, and after each call all possible work is done.
class QueueModel {
 public:
  using Call = QueueCall;

  explicit QueueModel(const QueueSetting& setting) : setting_(setting) {}

  void arrive(int number, const QueueCall& call) {
    using What = QueueCall::What;
    switch (call.what) {
      case What::put:
      case What::put_many:
        if (is_closed) return end(number, Code::cancelled);
        for (const QueuedElement& element : call.elements) inside_.insert(element.value);
        puts_.push_back({number, call.elements});
        return settle();
      case What::put_misshapen:
        return end(number, Code::invalid_argument);
      case What::take:
      case What::take_many:
      case What::take_up_to:
        takes_.push_back({number, static_cast<std::size_t>(call.count), call.what == What::take_up_to, {}});
        return settle();
      case What::close:
      case What::close_at_once:
        close(call.what == What::close_at_once);
        return end(number, Code::ok);
      case What::size:
        ended[number] = {Code::ok, {size()}, true};
    }
  }
  void stop(int number, Code code) {
    puts_.remove_if([&](const Put& put) { return put.number == number; });
    for (auto take = takes_.begin(); take != takes_.end(); ++take) {
      if (take->number != number) continue;
      put_back(*take);
      takes_.erase(take);
      break;
    }
    end(number, code);
    settle();
  }
  /// A shuffling queue may choose any element that was put in and has not come out.
  bool agree(const CallOutcome& got, const CallOutcome& wanted) {
    if (got.code != wanted.code || got.values.size() != wanted.values.size()) return false;
    if (setting_.kind != QueueOrder::shuffle || wanted.is_count) return got.values == wanted.values;
    for (const std::int64_t value : got.values) {
      if (inside_.erase(value) != 1) return false;
    }
    return true;
  }
  std::int64_t size() const { return static_cast<std::int64_t>(held_.size()); }

  /// All the state on which later results depend.
  std::string key() const {
    std::string key = str_cat(is_closed ? "closed" : "open");
    const bool is_shuffled = setting_.kind == QueueOrder::shuffle;
    for (const auto& [element, when] : held_) key += str_cat(" ", is_shuffled ? 0 : element.value);
    if (is_shuffled) {
      for (const std::int64_t value : inside_) key += str_cat(" in ", value);
    }
    for (const Put& put : puts_) key += str_cat(" put ", put.number, ":", put.left.size());
    for (const Take& take : takes_) {
      key += str_cat(" take ", take.number);
      for (const auto& [element, when] : take.taken) key += str_cat(":", is_shuffled ? 0 : element.value);
    }
    return key;
  }

  bool is_closed = false;
  std::map<int, CallOutcome> ended;

 private:
  struct Put {
    int number;
    std::vector<QueuedElement> left;
  };
  struct Take {
    int number;
    std::size_t count;
    bool up_to;
    std::vector<std::pair<QueuedElement, int>> taken;  ///< with the time at which each came
  };

  void end(int number, Code code, const std::vector<QueuedElement>& given = {}) {
    CallOutcome& outcome = ended[number];
    outcome.code = code;
    for (const QueuedElement& element : given) outcome.values.push_back(element.value);
  }
  void close(bool cancels_pending) {
    is_closed = true;
    if (cancels_pending) {
      for (const Put& put : puts_) end(put.number, Code::cancelled);
      puts_.clear();
    }
    settle();
  }
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
    end(put.number, Code::ok);
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
      std::vector<QueuedElement> elements;
      for (const auto& [element, when] : take.taken) elements.push_back(element);
      end(take.number, Code::ok, elements);
    } else if (is_last) {
      put_back(take);
      end(take.number, Code::out_of_range);
    } else {
      return take.taken.size() != before;
    }
    takes_.pop_front();
    return true;
  }
  /// The elements go back to their places by their time of arrival.
  void put_back(Take& take) { held_.insert(held_.end(), take.taken.begin(), take.taken.end()); }

  QueueSetting setting_;
  std::vector<std::pair<QueuedElement, int>> held_;
  std::list<Put> puts_;
  std::list<Take> takes_;
  std::set<std::int64_t> inside_;
  int clock_ = 0;
};

/// The queue itself.
class QueueCalls {
 public:
  using Call = QueueCall;
  using Model = QueueModel;

  QueueCalls(const QueueSetting& setting, const std::shared_ptr<ThreadPool>& pool, std::shared_ptr<Clock> clock)
      : setting_(setting), queue_(build(setting)) {
    value_ = placeholder<std::int64_t>(graph_, PartialShape::unknown());
    priority_ = placeholder<std::int64_t>(graph_, PartialShape::unknown());
    count_ = placeholder<std::int32_t>(graph_, Shape{});
    std::vector<AnyOutput> components;
    if (setting.kind == QueueOrder::priority) components.emplace_back(priority_);
    components.emplace_back(value_);
    put_ = queue_.enqueue(components, false, {});
    put_many_ = queue_.enqueue(components, true, {});
    take_ = result_of(queue_.dequeue({}, false, {}));
    take_many_ = result_of(queue_.dequeue(count_, false, {}));
    take_up_to_ = result_of(queue_.dequeue(count_, true, {}));
    close_ = queue_.close(false, {});
    close_at_once_ = queue_.close(true, {});
    size_ = Output<std::int32_t>(queue_.size({}));
    is_closed_ = Output<bool>(queue_.is_closed({}));
    device_ = std::make_shared<CpuDevice>(CpuDeviceOptions{.pool = pool});
    session_ = std::make_unique<Session>(
        graph_, SessionOptions{.devices = {device_}, .clock = std::move(clock), .callbacks = pool});
  }

  Model model() const { return Model(setting_); }
  void empty() { device_->context().resources->reset("programs"); }

  Call draw(std::mt19937_64& random, int number) {
    using What = Call::What;
    static constexpr std::array<What, 16> some{What::put,       What::put,       What::put,        What::put_many,
                                               What::put_many,  What::put_many,  What::take,       What::take,
                                               What::take_many, What::take_many, What::take_up_to, What::take_up_to,
                                               What::size,      What::size,      What::close,      What::put_misshapen};
    Call call{.what = some[static_cast<std::size_t>(draw_below(random, 16))]};
    if (call.what == What::close && draw_below(random, 3) != 0) call.what = What::size;
    if (call.what == What::close && draw_below(random, 2) == 0) call.what = What::close_at_once;
    const bool has_many = call.what == What::take_many || call.what == What::take_up_to;
    if (has_many) call.count = static_cast<std::int32_t>(draw_below(random, 6));
    const std::int64_t num_put = call.what == What::put ? 1 : call.what == What::put_many ? draw_below(random, 5) : 0;
    for (std::int64_t i = 0; i < num_put; ++i) {
      const std::int64_t priority = setting_.kind == QueueOrder::priority ? draw_below(random, 3) : 0;
      call.elements.push_back({100 * number + i, priority});
    }
    return call;
  }
  /// The remaining elements come out as they should.
  static std::optional<Call> draw_last(int i, const Model& model) {
    if (i == 0) return Call{.what = Call::What::close};
    if (i == 1) return Call{.what = Call::What::take_many, .count = static_cast<std::int32_t>(model.size())};
    if (i == 2) return Call{.what = Call::What::take};
    return {};
  }

  void start(const Call& call, const RunOptions& options, CallEnded ended) {
    using What = Call::What;
    const auto n = static_cast<std::int64_t>(call.elements.size());
    const auto done = [ended](const Status& status) { ended({status.code()}); };
    switch (call.what) {
      case What::put:
      case What::put_many: {
        const Shape rows = call.what == What::put_many ? Shape{n} : Shape{};
        const Shape element = setting_.kind == QueueOrder::padding ? Shape{1} : Shape{};
        Tensor<std::int64_t> values(rows.concatenated(element)), priorities(rows);
        for (std::int64_t i = 0; i < n; ++i) {
          values.data()[i] = call.elements[static_cast<std::size_t>(i)].value;
          priorities.data()[i] = call.elements[static_cast<std::size_t>(i)].priority;
        }
        return session_->run_async(options, nullptr, {{value_, values}, {priority_, priorities}},
                                   call.what == What::put_many ? put_many_ : put_, done);
      }
      case What::put_misshapen: {
        // The shape is enough for two components, and is not an element's shape.
        const Tensor<std::int64_t> values({1, 1, 2}, {1, 2}), priorities({1}, {1});
        return session_->run_async(options, nullptr, {{value_, values}, {priority_, priorities}}, put_many_, done);
      }
      case What::take:
      case What::take_many:
      case What::take_up_to: {
        const auto& taken = call.what == What::take ? take_ : call.what == What::take_many ? take_many_ : take_up_to_;
        return session_->run_async(options, nullptr, {{count_, call.count}}, taken,
                                   [ended](const Status& status, const Tensor<std::int64_t>& values) {
                                     CallOutcome outcome{status.code()};
                                     if (status.ok()) outcome.values.assign(values.begin(), values.end());
                                     ended(std::move(outcome));
                                   });
      }
      case What::close:
      case What::close_at_once:
        return session_->run_async(options, nullptr, {}, call.what == What::close ? close_ : close_at_once_, done);
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
    if (session_->run(size_).scalar() != model.size()) return "leaves another size";
    return session_->run(is_closed_).scalar() == model.is_closed ? "" : "leaves it closed, or not";
  }

 private:
  detail::AnyQueue build(const QueueSetting& setting) {
    GraphStore& graph = *graph_.store();
    const QueueOptions options{.capacity = setting.capacity, .shapes = {{}}, .container = "programs"};
    switch (setting.kind) {
      case QueueOrder::fifo:
        break;
      case QueueOrder::padding: {
        QueueOptions padding = options;
        padding.shapes = {{dynamic}};
        return detail::padding_fifo_queue(graph, {DType::int64}, padding, {});
      }
      case QueueOrder::shuffle:
        return detail::random_shuffle_queue(graph, {DType::int64},
                                            {.capacity = setting.capacity,
                                             .min_after_dequeue = setting.min_after_dequeue,
                                             .shapes = {{}},
                                             .seed = 9,
                                             .container = "programs"},
                                            {});
      case QueueOrder::priority:
        return detail::priority_queue(graph, {DType::int64}, options, {});
    }
    return {graph, {DType::int64}, options, {}};
  }
  Output<std::int64_t> result_of(const BuiltNode& node) const {
    return Output<std::int64_t>(node.output(setting_.kind == QueueOrder::priority ? 1 : 0));
  }

  const QueueSetting setting_;
  Graph graph_;
  detail::AnyQueue queue_;
  Output<std::int64_t> value_, priority_, take_, take_many_, take_up_to_;
  Output<std::int32_t> count_, size_;
  Output<bool> is_closed_;
  Operation put_, put_many_, close_, close_at_once_;
  std::shared_ptr<CpuDevice> device_;
  std::unique_ptr<Session> session_;
};

}  // namespace dflow::testing
