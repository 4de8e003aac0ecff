#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/kernels/state/flat_state.hpp>
#include <dflow/kernels/state/queue_state.hpp>
#include <dflow/kernels/state/wait_list.hpp>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <limits>
#include <mutex>
#include <optional>
#include <utility>

namespace dflow {

DFLOW_INLINE Shape QueuedElements::element_shape(std::size_t component) const {
  const Shape& shape = components[component].shape();
  return is_single ? shape : shape.subshape(1, shape.rank());
}

struct QueueState::State {
  struct Enqueuer {
    QueuedElements elements;  ///< what is not in yet
    EnqueueDone done;
  };
  struct Dequeuer {
    std::int64_t num_missing;
    bool up_to;
    std::vector<QueuedElements> taken;
    DequeueDone done;
  };
  /// What is to be told when the lock is released.
  struct Due {
    std::vector<std::pair<Enqueuer, Status>> enqueuers;
    std::vector<std::pair<Dequeuer, Status>> dequeuers;

    Due() = default;
    Due(const Due&) = delete;
    Due& operator=(const Due&) = delete;
    ~Due() {
      for (auto& [enqueuer, status] : enqueuers) enqueuer.done(status);
      for (auto& [dequeuer, status] : dequeuers) {
        if (!status.ok()) dequeuer.taken.clear();
        dequeuer.done(status, std::move(dequeuer.taken));
      }
    }
  };

  explicit State(std::int64_t room) : capacity(room) {}

  const std::int64_t capacity;
  mutable std::mutex mutex;
  std::deque<QueuedElements> held;
  std::int64_t num_held = 0;
  bool is_closed = false;
  detail::WaitList<Enqueuer> enqueuers;
  detail::WaitList<Dequeuer> dequeuers;

  // Each of these does all of it or, out of memory, nothing.

  /// Moves the first `count` elements, or fewer, to the end of `to`, and says how many.
  static std::int64_t move_first(QueuedElements& from, std::int64_t count, auto& to) {
    to.push_back(from);
    from.begin = to.back().end = std::min(from.begin + count, from.end);
    return to.back().size();
  }

  bool put_in(Due& due) {
    if (enqueuers.is_empty()) return false;
    QueuedElements& next = enqueuers.front().elements;
    const std::int64_t room = capacity < 0 ? next.size() : std::min(next.size(), capacity - num_held);
    if (room > 0) num_held += move_first(next, room, held);
    const bool is_in = next.size() == 0;
    if (is_in) due.enqueuers.emplace_back().first = enqueuers.take_front();
    return room > 0 || is_in;
  }
  bool take_out(Due& due, const std::string& name) {
    if (dequeuers.is_empty()) return false;
    Dequeuer& next = dequeuers.front();
    bool has_moved = false;
    while (next.num_missing > 0 && !held.empty()) {
      const std::int64_t count = move_first(held.front(), next.num_missing, next.taken);
      if (held.front().size() == 0) held.pop_front();
      next.num_missing -= count;
      num_held -= count;
      has_moved = true;
    }
    if (next.num_missing > 0 && !(is_closed && enqueuers.is_empty())) return has_moved;
    if (next.num_missing == 0 || (next.up_to && !next.taken.empty())) {
      due.dequeuers.emplace_back().first = dequeuers.take_front();
      return true;
    }
    put_back(next);
    const std::string left = num_held == 0 ? "is empty" : str_cat("has only ", num_held, " elements left");
    Status failed = out_of_range(str_cat("queue '", name, "' is closed and ", left));
    auto& [dequeuer, status] = due.dequeuers.emplace_back();
    dequeuer = dequeuers.take_front();
    status = std::move(failed);
    return true;
  }
  void put_back(Dequeuer& from) {
    for (; !from.taken.empty(); from.taken.pop_back()) {
      held.push_front(from.taken.back());
      num_held += held.front().size();
      from.num_missing += held.front().size();
    }
  }
  void serve(Due& due) {
    while (put_in(due) | take_out(due, name)) {
    }
  }

  /// Those who are not served because there is no memory are with the next call.
  void serve_if_possible(Due& due) noexcept {
    try {
      serve(due);
    } catch (...) {
    }
  }
  /// Serves all, with waiter `id` of `list`, who has just come and is given up if there is no memory for it.
  template <class Waiter>
  void serve_newest(detail::WaitList<Waiter> State::*list, std::uint64_t id, std::unique_lock<std::mutex>& lock,
                    Due& due) {
    try {
      serve(due);
    } catch (...) {
      std::optional<Waiter> newest = (this->*list).take(id);
      if (!newest) return;
      lock.unlock();
      give_up(*newest, status_of_current_exception());
      lock.lock();
    }
  }

  void give_up(Enqueuer& enqueuer, const Status& status) {
    {
      Due due;
      const std::lock_guard lock(mutex);
      serve_if_possible(due);
    }
    enqueuer.done(status);
  }
  void give_up(Dequeuer& dequeuer, const Status& status) {
    {
      Due due;
      const std::lock_guard lock(mutex);
      try {
        put_back(dequeuer);
      } catch (...) {  // what there is no memory for is lost
      }
      serve_if_possible(due);
    }
    dequeuer.done(status, {});
  }

  std::string name;
};

DFLOW_INLINE QueueState::QueueState(std::string name, Kind kind)
    : name_(std::move(name)), kind_(std::move(kind)), state_(std::make_shared<State>(kind_.capacity)) {
  state_->name = name_;
}
DFLOW_INLINE QueueState::~QueueState() = default;

DFLOW_INLINE void QueueState::abandon(const Status& why) {
  const std::shared_ptr<State> kept = state_;  // who is told may let go of this
  detail::end_waiting(kept, &State::enqueuers, why);
  detail::end_waiting(kept, &State::dequeuers, why);
}

DFLOW_INLINE std::string QueueState::debug_string() const {
  std::string text = str_cat("FIFOQueue '", name_, "' (");
  for (std::size_t i = 0; i < kind_.dtypes.size(); ++i) {
    text += str_cat(i == 0 ? "" : ", ", dflow::name(kind_.dtypes[i]),
                    kind_.shapes.empty() ? "" : kind_.shapes[i].to_string());
  }
  if (kind_.capacity >= 0) text += str_cat(", capacity ", kind_.capacity);
  return text + ")";
}

DFLOW_INLINE void QueueState::check(const QueuedElements& elements) const {
  if (elements.components.size() != kind_.dtypes.size()) {
    throw_error(invalid_argument(
        str_cat(debug_string(), " has ", kind_.dtypes.size(), " components, not ", elements.components.size())));
  }
  for (std::size_t i = 0; i < kind_.dtypes.size(); ++i) {
    const AnyTensor& component = elements.components[i];
    const bool has_rows = elements.is_single || (component.rank() > 0 && component.dim(0) == elements.end);
    const bool fits = has_rows && component.dtype() == kind_.dtypes[i] &&
                      (kind_.shapes.empty() || kind_.shapes[i].is_compatible_with(elements.element_shape(i)));
    if (!fits) {
      throw_error(invalid_argument(str_cat("component ", i, " is ", dflow::name(component.dtype()),
                                           component.shape().to_string(), elements.is_single ? "" : " in rows",
                                           ", which does not fit ", debug_string())));
    }
  }
}

DFLOW_INLINE void QueueState::enqueue_async(QueuedElements elements, const CancellationToken& cancellation,
                                            EnqueueDone done) {
  check(elements);
  const std::shared_ptr<State> kept = state_;  // who is told may let go of this
  State::Due due;
  std::unique_lock lock(state_->mutex);
  if (state_->is_closed) {
    lock.unlock();
    return done(cancelled(str_cat("queue '", name_, "' is closed")));
  }
  if (cancellation.is_cancelled()) {
    lock.unlock();
    return done(cancellation.status());
  }
  // Who finds room does not wait: it is served by the same rules, in its turn.
  const std::uint64_t id = state_->enqueuers.add({std::move(elements), std::move(done)});
  kept->serve_newest(&State::enqueuers, id, lock, due);
  detail::wait_for(kept, &State::enqueuers, lock, id, cancellation);
}

DFLOW_INLINE void QueueState::dequeue_async(std::int64_t count, bool up_to, const CancellationToken& cancellation,
                                            DequeueDone done) {
  if (count < 0) {
    return done(invalid_argument(str_cat(debug_string(), ": cannot take ", count, " elements")), {});
  }
  const std::shared_ptr<State> kept = state_;  // who is told may let go of this
  State::Due due;
  std::unique_lock lock(state_->mutex);
  if (cancellation.is_cancelled()) {
    lock.unlock();
    return done(cancellation.status(), {});
  }
  const std::uint64_t id = state_->dequeuers.add({count, up_to, {}, std::move(done)});
  kept->serve_newest(&State::dequeuers, id, lock, due);
  detail::wait_for(kept, &State::dequeuers, lock, id, cancellation);
}

DFLOW_INLINE void QueueState::close(bool cancels_pending) {
  State::Due due;
  const std::lock_guard lock(state_->mutex);
  state_->is_closed = true;
  if (cancels_pending) {
    const Status closed = cancelled(str_cat("queue '", name_, "' is closed"));
    due.enqueuers.reserve(state_->enqueuers.size());
    for (State::Enqueuer& enqueuer : state_->enqueuers.take_all()) {
      due.enqueuers.emplace_back(std::move(enqueuer), closed);
    }
  }
  state_->serve(due);
}

DFLOW_INLINE std::vector<AnyTensor> QueueState::saved_state() const {
  std::vector<QueuedElements> held;
  bool is_closed = false;
  {
    const std::lock_guard lock(state_->mutex);
    // Only the first of those who take out has anything yet, which comes before what is held.
    if (!state_->dequeuers.is_empty()) held = state_->dequeuers.front().taken;
    held.insert(held.end(), state_->held.begin(), state_->held.end());
    is_closed = state_->is_closed;
  }
  std::int64_t size = 0;
  for (const QueuedElements& part : held) size += part.size();
  std::vector<std::int64_t> numbers{is_closed ? 1 : 0, size};
  for (const QueuedElements& part : held) {
    for (std::int64_t i = 0; i < part.size(); ++i) {
      for (std::size_t c = 0; c < kind_.dtypes.size(); ++c) detail::put_shape(numbers, part.element_shape(c));
    }
  }
  std::vector<AnyTensor> state{detail::numbers_tensor(numbers)};
  for (std::size_t c = 0; c < kind_.dtypes.size(); ++c) {
    std::int64_t num_values = 0;
    for (const QueuedElements& part : held) num_values += part.size() * part.element_shape(c).num_elements();
    AnyTensor& flat = state.emplace_back(kind_.dtypes[c], Shape{num_values});
    std::int64_t next = 0;
    for (const QueuedElements& part : held) {
      const std::int64_t each = part.element_shape(c).num_elements();
      detail::copy_elements(part.components[c], part.begin * each, part.size() * each, flat, next);
      next += part.size() * each;
    }
  }
  return state;
}

DFLOW_INLINE void QueueState::restore_state(std::span<const AnyTensor> state) {
  detail::FlatState saved(debug_string(), state, kind_.dtypes);
  const bool is_closed = saved.number(0, 1) != 0;
  constexpr std::int64_t any = std::numeric_limits<std::int64_t>::max();
  const std::int64_t size = saved.number(0, kind_.capacity < 0 ? any : kind_.capacity);
  std::deque<QueuedElements> held;
  for (std::int64_t i = 0; i < size; ++i) {
    QueuedElements& element = held.emplace_back();
    element.is_single = true;
    for (std::size_t c = 0; c < kind_.dtypes.size(); ++c) element.components.push_back(saved.tensor(c, saved.shape()));
    check(element);
  }
  saved.end();
  State::Due due;
  const std::lock_guard lock(state_->mutex);
  if (!state_->dequeuers.is_empty()) {
    State::Dequeuer& first = state_->dequeuers.front();
    for (const QueuedElements& part : first.taken) first.num_missing += part.size();
    first.taken.clear();
  }
  state_->held.swap(held);
  state_->num_held = size;
  state_->is_closed = is_closed;
  state_->serve(due);
}

DFLOW_INLINE std::int64_t QueueState::size() const {
  const std::lock_guard lock(state_->mutex);
  return state_->num_held;
}
DFLOW_INLINE bool QueueState::is_closed() const {
  const std::lock_guard lock(state_->mutex);
  return state_->is_closed;
}

namespace detail {

DFLOW_INLINE void copy_rows(const AnyTensor& from, std::int64_t begin, std::int64_t end, std::int64_t row_size,
                            AnyTensor& to, std::int64_t row) {
  copy_elements(from, begin * row_size, (end - begin) * row_size, to, row * row_size);
}

}  // namespace detail

DFLOW_INLINE AnyTensor detail::join_elements(const std::vector<QueuedElements>& parts, std::size_t component,
                                             DType dtype, const PartialShape& shape, bool is_single,
                                             Allocator& allocator) {
  if (is_single && parts[0].is_single) return parts[0].components[component];
  std::int64_t rows = 0;
  for (const QueuedElements& part : parts) rows += part.size();
  if (parts.empty() && !shape.is_fully_defined()) {
    throw_error(invalid_argument("no elements of a queue whose shapes are not known have no shape"));
  }
  const Shape row = parts.empty() ? shape.to_shape() : parts[0].element_shape(component);
  AnyTensor joined(dtype, is_single ? row : Shape({rows}).concatenated(row), allocator);
  std::int64_t next = 0;
  for (const QueuedElements& part : parts) {
    if (part.element_shape(component) != row) {
      throw_error(invalid_argument(str_cat("elements of shapes ", row.to_string(), " and ",
                                           part.element_shape(component).to_string(),
                                           " of one queue cannot be taken together")));
    }
    copy_rows(part.components[component], part.begin, part.end, row.num_elements(), joined, next);
    next += part.size();
  }
  return joined;
}

}  // namespace dflow
