#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/state/barrier_state.hpp>
#include <dflow/state/flat_state.hpp>
#include <dflow/state/wait_list.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <limits>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

namespace dflow {

struct BarrierState::State {
  using Elements = std::list<Element>;
  struct Taker {
    Wanted wanted;
    TakeDone done;
  };
  /// The calls to complete when the lock is released.
  struct Due {
    std::vector<std::pair<Taker, Status>> takers;
    std::vector<std::vector<Element>> taken;  ///< by each call

    Due() = default;
    Due(const Due&) = delete;
    Due& operator=(const Due&) = delete;
    ~Due() {
      for (std::size_t i = 0; i < takers.size(); ++i) {
        takers[i].first.done(takers[i].second, i < taken.size() ? std::move(taken[i]) : std::vector<Element>());
      }
    }
  };

  explicit State(std::string name_of_barrier) : name(std::move(name_of_barrier)) {}

  const std::string name;
  mutable std::mutex mutex;
  Elements ready;  ///< by index
  Elements incomplete;
  std::map<std::string_view, Elements::iterator> by_key;  ///< of incomplete elements, which own the keys
  std::int64_t next_index = std::numeric_limits<std::int64_t>::min();
  bool is_closed = false;
  bool takes_nothing_in = false;
  detail::WaitList<Taker> takers;

  void complete(Elements::iterator element) noexcept {
    by_key.erase(element->key);
    auto at = ready.end();
    while (at != ready.begin() && std::prev(at)->index > element->index) --at;
    ready.splice(at, incomplete, element);
  }

  /// How many elements the first call gets, or none if it is to wait; -1 if there will never be enough.
  std::optional<std::int64_t> num_for(const Wanted& wanted) const {
    const auto num_ready = static_cast<std::int64_t>(ready.size());
    const auto num_incomplete = static_cast<std::int64_t>(incomplete.size());
    if (num_ready >= wanted.count) return wanted.count;
    if (!is_closed) return std::nullopt;
    if (!wanted.allow_small_batch) return num_ready + num_incomplete < wanted.count ? std::optional(-1) : std::nullopt;
    if (wanted.wait_for_incomplete && num_incomplete > 0) return std::nullopt;
    return num_ready == 0 ? -1 : num_ready;
  }
  Status too_few(const Wanted& wanted) const {
    return Status::out_of_range(
        str_cat("barrier '", name, "' is closed and has only ", ready.size(), " of ", wanted.count, " elements"));
  }
  /// InvalidArgument if the first `count` ready elements differ in a component's shape.
  Status unlike(std::int64_t count) const {
    auto element = ready.begin();
    for (std::int64_t i = 0; i < count; ++i, ++element) {
      for (std::size_t c = 0; c < element->components.size(); ++c) {
        const Shape &first = ready.front().components[c].shape(), &shape = element->components[c].shape();
        if (shape == first) continue;
        return Status::invalid_argument(str_cat("elements '", ready.front().key, "' and '", element->key,
                                                "' of shapes ", first.to_string(), " and ", shape.to_string(),
                                                " of barrier '", name, "' cannot be taken together"));
      }
    }
    return {};
  }
  /// Does all of it or, out of memory, nothing.
  bool take_out(Due& due) {
    if (takers.is_empty()) return false;
    const Wanted wanted = takers.front().wanted;
    const std::optional<std::int64_t> count = num_for(wanted);
    if (!count) return false;
    Status status = *count < 0 ? too_few(wanted) : unlike(*count);
    std::vector<Element> taken(static_cast<std::size_t>(status.ok() ? *count : 0));
    due.taken.reserve(due.taken.size() + 1);
    due.takers.reserve(due.takers.size() + 1);
    for (Element& element : taken) {
      element = std::move(ready.front());
      ready.pop_front();
    }
    due.taken.push_back(std::move(taken));
    due.takers.emplace_back(takers.take_front(), std::move(status));
    return true;
  }
  void serve(Due& due) {
    while (take_out(due)) {
    }
  }
  /// If memory runs out, the remaining calls are served with the next call.
  void serve_if_possible(Due& due) noexcept {
    try {
      serve(due);
    } catch (...) {
    }
  }
  void give_up(Taker& taker, const Status& status) {
    {
      Due due;
      const std::lock_guard lock(mutex);
      serve_if_possible(due);
    }
    taker.done(status, {});
  }
};

BarrierState::BarrierState(std::string name, Kind kind)
    : name_(std::move(name)), kind_(std::move(kind)), state_(std::make_shared<State>(name_)) {}
BarrierState::~BarrierState() = default;

void BarrierState::abandon(const Status& why) {
  const std::shared_ptr<State> kept = state_;  // the receiver of a call may let go of this
  detail::end_waiting(kept, &State::takers, why);
}

std::string BarrierState::debug_string() const {
  std::string text = str_cat("Barrier '", name_, "' (");
  for (std::size_t i = 0; i < kind_.dtypes.size(); ++i) {
    text += str_cat(i == 0 ? "" : ", ", dtype_name(kind_.dtypes[i]),
                    kind_.shapes.empty() ? "" : kind_.shapes[i].to_string());
  }
  return text + ")";
}

void BarrierState::check(std::int64_t component, std::int64_t num_keys, const AnyTensor& values) const {
  if (component < 0 || component >= static_cast<std::int64_t>(kind_.dtypes.size())) {
    throw_error(Status::invalid_argument(str_cat(debug_string(), " has no component ", component)));
  }
  const auto c = static_cast<std::size_t>(component);
  const bool has_rows = values.rank() > 0 && values.dim(0) == num_keys;
  const bool fits =
      has_rows && values.dtype() == kind_.dtypes[c] &&
      (kind_.shapes.empty() || kind_.shapes[c].is_compatible_with(values.shape().subshape(1, values.shape().rank())));
  if (fits) return;
  throw_error(Status::invalid_argument(str_cat("values of component ", component, " for ", num_keys, " keys are ",
                                               dtype_name(values.dtype()), values.shape().to_string(),
                                               ", which does not fit ", debug_string())));
}

void BarrierState::insert_many(std::int64_t component, std::span<const std::string> keys, const AnyTensor& values) {
  check(component, static_cast<std::int64_t>(keys.size()), values);
  const auto c = static_cast<std::size_t>(component);
  const Shape row = values.shape().subshape(1, values.shape().rank());
  std::vector<AnyTensor> rows;
  rows.reserve(keys.size());
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(keys.size()); ++i) {
    rows.push_back(values.slice(i, i + 1).reshaped(row).deep_copy());
  }
  State::Elements fresh;
  std::map<std::string_view, State::Elements::iterator> fresh_by_key;
  std::vector<State::Elements::iterator> targets;
  targets.reserve(keys.size());
  const std::shared_ptr<State> kept = state_;  // the receiver of a call may let go of this
  State::Due due;
  const std::lock_guard lock(state_->mutex);
  State& state = *state_;
  if (state.takes_nothing_in) throw_error(Status::cancelled(str_cat("barrier '", name_, "' is closed")));
  const auto refuse_second = [&](const std::string& key) {
    throw_error(
        Status::invalid_argument(str_cat("key '", key, "' has component ", component, " already in ", debug_string())));
  };
  for (const std::string& key : keys) {
    if (const auto found = state.by_key.find(key); found != state.by_key.end()) {
      if (found->second->components[c].is_initialized()) refuse_second(key);
      if (std::find(targets.begin(), targets.end(), found->second) != targets.end()) refuse_second(key);
      targets.push_back(found->second);
      continue;
    }
    if (state.is_closed) {
      throw_error(Status::cancelled(str_cat("barrier '", name_, "' is closed, and '", key, "' is a new key")));
    }
    if (fresh_by_key.contains(key) && kind_.dtypes.size() > 1) refuse_second(key);
    fresh.push_back({state.next_index, key, std::vector<AnyTensor>(kind_.dtypes.size()), kind_.dtypes.size()});
    fresh_by_key.emplace(fresh.back().key, std::prev(fresh.end()));
    targets.push_back(std::prev(fresh.end()));
  }
  // From here on nothing fails.
  if (!fresh.empty()) ++state.next_index;
  state.incomplete.splice(state.incomplete.end(), fresh);
  state.by_key.merge(fresh_by_key);
  for (std::size_t i = 0; i < targets.size(); ++i) {
    targets[i]->components[c] = std::move(rows[i]);
    if (--targets[i]->num_missing == 0) state.complete(targets[i]);
  }
  state.serve_if_possible(due);
}

void BarrierState::take_async(const Wanted& wanted, const CancellationToken& cancellation, TakeDone done) {
  if (wanted.count < 0) {
    return done(Status::invalid_argument(str_cat(debug_string(), ": cannot take ", wanted.count, " elements")), {});
  }
  const std::shared_ptr<State> kept = state_;  // the receiver of a call may let go of this
  State::Due due;
  std::unique_lock lock(state_->mutex);
  if (cancellation.is_cancelled()) {
    lock.unlock();
    return done(cancellation.status(), {});
  }
  if (kept->num_for(wanted) == -1) {  // waiting for earlier calls does not change that
    const Status too_few = kept->too_few(wanted);
    lock.unlock();
    return done(too_few, {});
  }
  const std::uint64_t id = kept->takers.add({wanted, std::move(done)});
  try {
    kept->serve(due);
  } catch (...) {
    std::optional<State::Taker> newest = kept->takers.take(id);
    lock.unlock();
    if (newest) newest->done(status_of_current_exception(), {});
    return;
  }
  detail::wait_for(kept, &State::takers, lock, id, cancellation);
}

void BarrierState::give_back(std::vector<Element> taken) noexcept {
  const std::shared_ptr<State> kept = state_;  // the receiver of a call may let go of this
  State::Due due;
  const std::lock_guard lock(kept->mutex);
  try {
    for (; !taken.empty(); taken.pop_back()) {
      auto at = kept->ready.begin();
      while (at != kept->ready.end() && at->index < taken.back().index) ++at;
      kept->ready.insert(at, std::move(taken.back()));
    }
  } catch (...) {
  }
  kept->serve_if_possible(due);
}

void BarrierState::close(bool cancels_pending) {
  const std::shared_ptr<State> kept = state_;  // the receiver of a call may let go of this
  State::Elements dropped;
  State::Due due;
  const std::lock_guard lock(state_->mutex);
  state_->is_closed = true;
  if (cancels_pending) {
    state_->takes_nothing_in = true;
    state_->by_key.clear();
    dropped.swap(state_->incomplete);
  }
  state_->serve(due);
}

std::vector<AnyTensor> BarrierState::saved_state() const {
  std::vector<Element> elements;
  std::vector<std::int64_t> numbers;
  {
    const std::lock_guard lock(state_->mutex);
    elements.assign(state_->ready.begin(), state_->ready.end());
    elements.insert(elements.end(), state_->incomplete.begin(), state_->incomplete.end());
    const int openness = state_->takes_nothing_in ? 2 : state_->is_closed ? 1 : 0;
    numbers = {openness, state_->next_index, static_cast<std::int64_t>(state_->ready.size()),
               static_cast<std::int64_t>(state_->incomplete.size())};
  }
  Tensor<std::string> keys(Shape{static_cast<std::int64_t>(elements.size())});
  std::vector<std::vector<AnyTensor>> values(kind_.dtypes.size());
  for (std::size_t i = 0; i < elements.size(); ++i) {
    keys.data()[i] = elements[i].key;
    numbers.push_back(elements[i].index);
    for (std::size_t c = 0; c < kind_.dtypes.size(); ++c) {
      const AnyTensor& component = elements[i].components[c];
      numbers.push_back(component.is_initialized() ? 1 : 0);
      if (!component.is_initialized()) continue;
      detail::put_shape(numbers, component.shape());
      values[c].push_back(component);
    }
  }
  std::vector<AnyTensor> state{detail::numbers_tensor(numbers), keys};
  for (std::size_t c = 0; c < kind_.dtypes.size(); ++c) state.push_back(detail::flattened(kind_.dtypes[c], values[c]));
  return state;
}

void BarrierState::restore_state(std::span<const AnyTensor> state) {
  std::vector<DType> dtypes{DType::string};
  dtypes.insert(dtypes.end(), kind_.dtypes.begin(), kind_.dtypes.end());
  detail::FlatState saved(debug_string(), state, dtypes);
  constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min(), most = -(least + 1);
  const std::int64_t openness = saved.number(0, 2), next_index = saved.number(least, most);
  const std::int64_t num_ready = saved.number(0, most), num_incomplete = saved.number(0, most);
  State::Elements ready, incomplete;
  std::map<std::string_view, State::Elements::iterator> by_key;
  std::int64_t last_index = least;
  for (const bool is_ready : {true, false}) {
    State::Elements& elements = is_ready ? ready : incomplete;
    for (std::int64_t i = 0; i < (is_ready ? num_ready : num_incomplete); ++i) {
      Element element{saved.number(is_ready ? last_index : least, most), "", {}, 0};
      if (is_ready) last_index = element.index;
      element.key = *Tensor<std::string>::of(saved.tensor(0, Shape{})).data();
      for (std::size_t c = 0; c < kind_.dtypes.size(); ++c) {
        AnyTensor& component = element.components.emplace_back();
        if (saved.number(0, 1) == 0) {
          ++element.num_missing;
          continue;
        }
        const Shape shape = saved.shape();
        component = saved.tensor(c + 1, shape);
        if (kind_.shapes.empty() || kind_.shapes[c].is_compatible_with(shape)) continue;
        saved.fail(str_cat("component ", c, " has shape ", shape.to_string()));
      }
      const bool fits =
          is_ready ? element.num_missing == 0 : element.num_missing > 0 && element.num_missing < kind_.dtypes.size();
      if (!fits) saved.fail(str_cat("element '", element.key, "' lacks ", element.num_missing, " components"));
      elements.push_back(std::move(element));
      if (is_ready) continue;
      if (!by_key.emplace(elements.back().key, std::prev(elements.end())).second)
        saved.fail("a key stands there twice");
    }
  }
  saved.end();
  const std::shared_ptr<State> kept = state_;  // the receiver of a call may let go of this
  State::Due due;
  const std::lock_guard lock(state_->mutex);
  state_->by_key.swap(by_key);
  state_->ready.swap(ready);
  state_->incomplete.swap(incomplete);
  state_->next_index = next_index;
  state_->is_closed = openness > 0;
  state_->takes_nothing_in = openness > 1;
  state_->serve(due);
}

std::int64_t BarrierState::ready_size() const {
  const std::lock_guard lock(state_->mutex);
  return static_cast<std::int64_t>(state_->ready.size());
}
std::int64_t BarrierState::incomplete_size() const {
  const std::lock_guard lock(state_->mutex);
  return static_cast<std::int64_t>(state_->incomplete.size());
}

}  // namespace dflow
