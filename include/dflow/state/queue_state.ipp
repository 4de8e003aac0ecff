#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/state/flat_state.hpp>
#include <dflow/state/queue_state.hpp>
#include <dflow/state/wait_list.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <mutex>
#include <optional>
#include <utility>

namespace dflow {

std::string_view queue_kind_name(QueueKind kind) noexcept {
  switch (kind) {
    case QueueKind::fifo:
      return "FIFOQueue";
    case QueueKind::padding_fifo:
      return "PaddingFIFOQueue";
    case QueueKind::random_shuffle:
      return "RandomShuffleQueue";
    case QueueKind::priority:
      return "PriorityQueue";
    case QueueKind::staging:
      break;
  }
  return "StagingArea";
}

namespace detail {

std::unique_ptr<HeldElements> held_elements(QueueKind kind, const std::shared_ptr<RandomStream>& stream) {
  if (kind == QueueKind::random_shuffle) return held_at_random(stream);
  if (kind == QueueKind::priority) return held_by_priority();
  return held_in_order();
}

/// The size of one element, with the contents of its strings.
std::int64_t bytes_of(const QueuedElements& element) {
  std::size_t bytes = 0;
  for (const AnyTensor& component : element.components) {
    bytes += component.bytes();
    if (component.dtype() != DType::string) continue;
    for (const std::string& text : component.span<std::string>()) bytes += text.size();
  }
  return static_cast<std::int64_t>(bytes);
}

}  // namespace detail

struct QueueState::State {
  struct Enqueuer {
    QueuedElements elements;  ///< the elements that are not in yet
    EnqueueDone done;
  };
  struct Dequeuer {
    std::int64_t num_missing;
    bool up_to;
    std::vector<QueuedElements> taken;
    DequeueDone done;
  };
  /// The calls to complete when the lock is released.
  struct Due {
    std::vector<std::pair<Enqueuer, Status>> enqueuers;
    std::vector<std::pair<Dequeuer, Status>> dequeuers;

    Due() = default;
    Due(const Due&) = delete;
    Due& operator=(const Due&) = delete;
    /// Makes room first, so that nothing fails after a call has been taken out to be told.
    void make_room_for_enqueuer() {
      if (enqueuers.size() == enqueuers.capacity()) enqueuers.reserve(2 * enqueuers.size() + 1);
    }
    ~Due() {
      for (auto& [enqueuer, status] : enqueuers) enqueuer.done(status);
      for (auto& [dequeuer, status] : dequeuers) {
        if (!status.ok()) dequeuer.taken.clear();
        dequeuer.done(status, std::move(dequeuer.taken));
      }
    }
  };

  State(std::string name_of_queue, const Kind& kind_of_queue, const RandomStreamState& random)
      : name(std::move(name_of_queue)),
        kind(kind_of_queue),
        stream(std::make_shared<RandomStream>(name, random.seed, random.seed2)),
        held(detail::held_elements(kind.kind, stream)) {
    stream->set_position(random.position);
  }

  const std::string name;
  const Kind kind;
  const std::shared_ptr<RandomStream> stream;
  mutable std::mutex mutex;
  std::unique_ptr<detail::HeldElements> held;
  std::int64_t num_bytes = 0;  ///< of held elements, if there is a limit
  bool is_closed = false;
  detail::WaitList<Enqueuer> enqueuers;
  detail::WaitList<Dequeuer> dequeuers;

  // Each of the following does all of it or, out of memory, nothing.

  std::int64_t bytes_of(const QueuedElements& element) const {
    return kind.memory_limit < 0 ? 0 : detail::bytes_of(element);
  }
  /// How many of the elements fit in now.
  std::int64_t room_for(const QueuedElements& elements) const {
    if (kind.memory_limit >= 0 && bytes_of(elements) > kind.memory_limit - num_bytes) return 0;
    return kind.capacity < 0 ? elements.size() : std::min(elements.size(), kind.capacity - held->size());
  }
  bool put_in(Due& due) {
    if (enqueuers.is_empty()) return false;
    QueuedElements& next = enqueuers.front().elements;
    const std::int64_t room = next.size() == 0 ? 0 : room_for(next);
    due.make_room_for_enqueuer();  // before anything is in
    if (room > 0) {
      const std::int64_t bytes = bytes_of(next);
      held->put(next, room);
      num_bytes += bytes;
    }
    const bool is_in = next.size() == 0;
    if (is_in) due.enqueuers.emplace_back(enqueuers.take_front(), Status());
    return room > 0 || is_in;
  }
  /// No more elements will come.
  bool is_at_end() const { return is_closed && enqueuers.is_empty(); }
  std::int64_t num_free() const {
    return is_at_end() ? held->size() : std::max<std::int64_t>(0, held->size() - kind.min_after_dequeue);
  }
  bool take_out(Due& due) {
    if (dequeuers.is_empty()) return false;
    Dequeuer& next = dequeuers.front();
    const bool is_short = is_at_end() && next.num_missing > num_free();
    if (is_short && (!next.up_to || (next.taken.empty() && num_free() == 0))) {
      put_back(next);
      const std::string left = held->size() == 0 ? "is empty" : str_cat("has only ", held->size(), " elements left");
      Status failed = Status::out_of_range(str_cat("queue '", name, "' is closed and ", left));
      auto& [dequeuer, status] = due.dequeuers.emplace_back();
      dequeuer = dequeuers.take_front();
      status = std::move(failed);
      return true;
    }
    const std::int64_t held_before = held->size();
    while (next.num_missing > 0 && num_free() > 0) {
      held->take(std::min(next.num_missing, num_free()), next.taken);
      num_bytes -= bytes_of(next.taken.back());
      next.num_missing -= next.taken.back().size();
    }
    if (next.num_missing > 0 && !is_short) return held->size() != held_before;
    Status failed = unlike(next.taken);
    if (!failed.ok()) put_back(next);
    auto& [dequeuer, status] = due.dequeuers.emplace_back();
    dequeuer = dequeuers.take_front();
    status = std::move(failed);
    return true;
  }
  /// InvalidArgument for elements of different shapes, if they are not padded.
  Status unlike(const std::vector<QueuedElements>& taken) const {
    const std::size_t num_components =
        kind.kind == QueueKind::padding_fifo || taken.size() < 2 ? 0 : kind.dtypes.size();
    for (std::size_t c = 0; c < num_components; ++c) {
      if (!kind.shapes.empty() && kind.shapes[c].is_fully_defined()) continue;
      const Shape first = taken[0].element_shape(c);
      for (const QueuedElements& part : taken) {
        const Shape shape = part.element_shape(c);
        if (shape == first) continue;
        return Status::invalid_argument(str_cat("elements of shapes ", first.to_string(), " and ", shape.to_string(),
                                                " of queue '", name, "' cannot be taken together"));
      }
    }
    return {};
  }
  void put_back(Dequeuer& from) {
    for (; !from.taken.empty(); from.taken.pop_back()) {
      const std::int64_t bytes = bytes_of(from.taken.back());
      held->put_back(from.taken.back());
      from.num_missing += from.taken.back().size();
      num_bytes += bytes;
    }
  }
  void serve(Due& due) {
    for (bool moves = true; moves;) {
      moves = put_in(due);
      moves = take_out(due) || moves;
    }
  }

  /// If memory runs out, the remaining calls are served with the next call.
  void serve_if_possible(Due& due) noexcept {
    try {
      serve(due);
    } catch (...) {
    }
  }
  /// Serves all calls. Waiter `id` of `list`, which has just come, is given up if there is no memory for it.
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
      } catch (...) {  // elements for which there is no memory are lost
      }
      serve_if_possible(due);
    }
    dequeuer.done(status, {});
  }
};

QueueState::QueueState(std::string name, Kind kind, const RandomStreamState& random)
    : name_(std::move(name)), kind_(std::move(kind)), state_(std::make_shared<State>(name_, kind_, random)) {}
QueueState::~QueueState() = default;

void QueueState::abandon(const Status& why) {
  const std::shared_ptr<State> kept = state_;  // the receiver of a call may let go of this
  detail::end_waiting(kept, &State::enqueuers, why);
  detail::end_waiting(kept, &State::dequeuers, why);
}

std::string QueueState::debug_string() const {
  std::string text = str_cat(queue_kind_name(kind_.kind), " '", name_, "' (");
  for (std::size_t i = 0; i < kind_.dtypes.size(); ++i) {
    text += str_cat(i == 0 ? "" : ", ", dtype_name(kind_.dtypes[i]),
                    kind_.shapes.empty() ? "" : kind_.shapes[i].to_string());
  }
  if (kind_.capacity >= 0) text += str_cat(", capacity ", kind_.capacity);
  if (kind_.min_after_dequeue > 0) text += str_cat(", min_after_dequeue ", kind_.min_after_dequeue);
  if (kind_.memory_limit >= 0) text += str_cat(", memory limit ", kind_.memory_limit);
  if (kind_.seed != 0 || kind_.seed2 != 0) text += str_cat(", seeds ", kind_.seed, " and ", kind_.seed2);
  return text + ")";
}

void QueueState::check(const QueuedElements& elements) const {
  if (elements.components.size() != kind_.dtypes.size()) {
    throw_error(Status::invalid_argument(
        str_cat(debug_string(), " has ", kind_.dtypes.size(), " components, not ", elements.components.size())));
  }
  for (std::size_t i = 0; i < kind_.dtypes.size(); ++i) {
    const AnyTensor& component = elements.components[i];
    const bool has_rows = elements.is_single || (component.rank() > 0 && component.dim(0) == elements.end);
    const bool fits = has_rows && component.dtype() == kind_.dtypes[i] &&
                      (kind_.shapes.empty() || kind_.shapes[i].is_compatible_with(elements.element_shape(i)));
    if (!fits) {
      throw_error(Status::invalid_argument(str_cat("component ", i, " is ", dtype_name(component.dtype()),
                                                   component.shape().to_string(), elements.is_single ? "" : " in rows",
                                                   ", which does not fit ", debug_string())));
    }
  }
  if (kind_.memory_limit >= 0 && detail::bytes_of(elements) > kind_.memory_limit) {
    throw_error(Status::resource_exhausted(
        str_cat("an element of ", detail::bytes_of(elements), " bytes never fits into ", debug_string())));
  }
}

void QueueState::enqueue_async(QueuedElements elements, const CancellationToken& cancellation, EnqueueDone done) {
  check(elements);
  const std::shared_ptr<State> kept = state_;  // the receiver of a call may let go of this
  State::Due due;
  std::unique_lock lock(state_->mutex);
  if (state_->is_closed) {
    lock.unlock();
    return done(Status::cancelled(str_cat("queue '", name_, "' is closed")));
  }
  if (cancellation.is_cancelled()) {
    lock.unlock();
    return done(cancellation.status());
  }
  // A call that finds room does not wait: it is served by the same rules, in its turn.
  const std::uint64_t id = state_->enqueuers.add({std::move(elements), std::move(done)});
  kept->serve_newest(&State::enqueuers, id, lock, due);
  detail::wait_for(kept, &State::enqueuers, lock, id, cancellation);
}

void QueueState::dequeue_async(std::int64_t count, bool up_to, const CancellationToken& cancellation,
                               DequeueDone done) {
  if (count < 0) {
    return done(Status::invalid_argument(str_cat(debug_string(), ": cannot take ", count, " elements")), {});
  }
  const std::shared_ptr<State> kept = state_;  // the receiver of a call may let go of this
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

void QueueState::give_back(std::vector<QueuedElements> taken) noexcept {
  const std::shared_ptr<State> kept = state_;  // the receiver of a call may let go of this
  State::Due due;
  const std::lock_guard lock(kept->mutex);
  State::Dequeuer from{0, false, std::move(taken), {}};
  try {
    kept->put_back(from);
  } catch (...) {
  }
  kept->serve_if_possible(due);
}

void QueueState::clear() {
  std::unique_ptr<detail::HeldElements> dropped = detail::held_elements(kind_.kind, state_->stream);
  const std::shared_ptr<State> kept = state_;  // the receiver of a call may let go of this
  State::Due due;
  const std::lock_guard lock(state_->mutex);
  state_->held.swap(dropped);
  state_->num_bytes = 0;
  state_->serve_if_possible(due);
}

void QueueState::close(bool cancels_pending) {
  State::Due due;
  const std::lock_guard lock(state_->mutex);
  state_->is_closed = true;
  if (cancels_pending) {
    const Status closed = Status::cancelled(str_cat("queue '", name_, "' is closed"));
    due.enqueuers.reserve(state_->enqueuers.size());
    for (State::Enqueuer& enqueuer : state_->enqueuers.take_all()) {
      due.enqueuers.emplace_back(std::move(enqueuer), closed);
    }
  }
  state_->serve(due);
}

std::vector<AnyTensor> QueueState::saved_state() const {
  std::vector<QueuedElements> held;
  RandomStreamState random;
  bool is_closed = false;
  {
    const std::lock_guard lock(state_->mutex);
    // Only the first call that takes out has any elements yet.
    std::span<const QueuedElements> taken;
    if (!state_->dequeuers.is_empty()) taken = state_->dequeuers.front().taken;
    held = state_->held->with(taken);
    random = state_->stream->state();
    is_closed = state_->is_closed;
  }
  std::int64_t size = 0;
  for (const QueuedElements& part : held) size += part.size();
  std::vector<std::int64_t> numbers{is_closed ? 1 : 0, size};
  if (kind_.kind == QueueKind::random_shuffle) {
    for (const std::uint64_t part : {random.seed, random.seed2, random.position}) {
      numbers.push_back(static_cast<std::int64_t>(part));
    }
  }
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

void QueueState::restore_state(std::span<const AnyTensor> state) {
  detail::FlatState saved(debug_string(), state, kind_.dtypes);
  const bool is_closed = saved.number(0, 1) != 0;
  constexpr std::int64_t any = std::numeric_limits<std::int64_t>::max();
  const std::int64_t size = saved.number(0, kind_.capacity < 0 ? any : kind_.capacity);
  RandomStreamState random;
  if (kind_.kind == QueueKind::random_shuffle) {
    for (std::uint64_t* part : {&random.seed, &random.seed2, &random.position}) {
      *part = static_cast<std::uint64_t>(saved.number(std::numeric_limits<std::int64_t>::min(), any));
    }
  }
  std::unique_ptr<detail::HeldElements> held = detail::held_elements(kind_.kind, state_->stream);
  std::int64_t num_bytes = 0;
  for (std::int64_t i = 0; i < size; ++i) {
    QueuedElements element;
    element.is_single = true;
    for (std::size_t c = 0; c < kind_.dtypes.size(); ++c) element.components.push_back(saved.tensor(c, saved.shape()));
    check(element);
    num_bytes += state_->bytes_of(element);
    held->put(element, 1);
  }
  saved.end();
  const std::shared_ptr<State> kept = state_;  // the receiver of a call may let go of this
  State::Due due;
  const std::lock_guard lock(state_->mutex);
  if (!state_->dequeuers.is_empty()) {
    State::Dequeuer& first = state_->dequeuers.front();
    for (const QueuedElements& part : first.taken) first.num_missing += part.size();
    first.taken.clear();
  }
  state_->held.swap(held);
  state_->num_bytes = num_bytes;
  if (kind_.kind == QueueKind::random_shuffle) state_->stream->set_state(random);
  state_->is_closed = is_closed;
  state_->serve(due);
}

std::int64_t QueueState::size() const {
  const std::lock_guard lock(state_->mutex);
  return state_->held->size();
}
bool QueueState::is_closed() const {
  const std::lock_guard lock(state_->mutex);
  return state_->is_closed;
}

namespace detail {

/// The largest extents of the elements' component if they are padded, else the extents of all.
Shape joined_shape(const std::vector<QueuedElements>& parts, std::size_t component, const QueueState::Kind& kind) {
  const PartialShape shape = kind.shapes.empty() ? PartialShape::unknown() : kind.shapes[component];
  const bool pads = kind.kind == QueueKind::padding_fifo;
  if (parts.empty() && !pads && !shape.is_fully_defined()) {
    throw_error(Status::invalid_argument("no elements of a queue whose shapes are not known have no shape"));
  }
  if (!pads) {
    const Shape all = parts.empty() ? shape.to_shape() : parts[0].element_shape(component);
    for (const QueuedElements& part : parts) {
      if (part.element_shape(component) == all) continue;
      throw_error(Status::invalid_argument(str_cat("elements of shapes ", all.to_string(), " and ",
                                                   part.element_shape(component).to_string(),
                                                   " of one queue cannot be taken together")));
    }
    return all;
  }
  std::vector<std::int64_t> largest;
  largest.reserve(static_cast<std::size_t>(shape.rank()));
  for (int i = 0; i < shape.rank(); ++i) largest.push_back(std::max<std::int64_t>(shape.dim(i), 0));
  for (const QueuedElements& part : parts) {
    const Shape element = part.element_shape(component);
    for (std::size_t i = 0; i < largest.size(); ++i) {
      largest[i] = std::max(largest[i], element.dim(static_cast<int>(i)));
    }
  }
  return Shape(std::span<const std::int64_t>(largest));
}

/// Copies from[begin, ...), elements of a shape, to the corner of a larger one at `to[at, ...)`.
void copy_into_corner(const AnyTensor& from, std::int64_t begin, const Shape& shape, AnyTensor& to, std::int64_t at,
                      const Shape& larger) {
  if (shape == larger || shape.rank() < 2) return copy_elements(from, begin, shape.num_elements(), to, at);
  const Shape inner = shape.subshape(1, shape.rank()), inner_larger = larger.subshape(1, larger.rank());
  for (std::int64_t i = 0; i < shape.dim(0); ++i) {
    copy_into_corner(from, begin + i * inner.num_elements(), inner, to, at + i * inner_larger.num_elements(),
                     inner_larger);
  }
}

}  // namespace detail

AnyTensor detail::join_elements(const std::vector<QueuedElements>& parts, std::size_t component,
                                const QueueState::Kind& kind, bool is_single, Allocator& allocator) {
  if (is_single && parts[0].is_single) return parts[0].components[component];
  std::int64_t rows = 0;
  for (const QueuedElements& part : parts) rows += part.size();
  const Shape row = joined_shape(parts, component, kind);
  const Shape shape = is_single ? row : Shape({rows}).concatenated(row);
  const bool is_padded = kind.kind == QueueKind::padding_fifo && !is_single;
  AnyTensor joined = is_padded ? AnyTensor::zeros(kind.dtypes[component], shape, allocator)
                               : AnyTensor(kind.dtypes[component], shape, allocator);
  std::int64_t next = 0;
  for (const QueuedElements& part : parts) {
    const Shape element = part.element_shape(component);
    if (element == row) {
      copy_elements(part.components[component], part.begin * row.num_elements(), part.size() * row.num_elements(),
                    joined, next * row.num_elements());
    } else {
      for (std::int64_t i = 0; i < part.size(); ++i) {
        copy_into_corner(part.components[component], (part.begin + i) * element.num_elements(), element, joined,
                         (next + i) * row.num_elements(), row);
      }
    }
    next += part.size();
  }
  return joined;
}

}  // namespace dflow
