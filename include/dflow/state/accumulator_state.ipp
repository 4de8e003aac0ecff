#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/core/sum_type.hpp>
#include <dflow/core/tensor.hpp>
#include <dflow/state/accumulator_state.hpp>
#include <dflow/state/flat_state.hpp>
#include <dflow/state/wait_list.hpp>

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <mutex>
#include <utility>

namespace dflow {

struct AccumulatorState::State {
  struct Taker {
    std::int64_t num_required;
    TakeDone done;
  };

  mutable std::mutex mutex;
  std::int64_t global_step = 0;
  std::vector<AccumulatedGradient> ranked;    // ascending
  std::vector<AccumulatedGradient> unranked;  // summed as far as it paid
  std::int64_t num_unranked = 0, new_rows = 0;
  detail::WaitList<Taker> takers;

  std::int64_t count() const { return static_cast<std::int64_t>(ranked.size()) + num_unranked; }
  void add_unranked(AccumulatedGradient gradient, Combine combine) {
    std::int64_t rows = new_rows;
    if (gradient.indices.is_initialized() && !unranked.empty()) rows += gradient.indices.num_elements();
    unranked.push_back(std::move(gradient));
    try {
      combine(unranked, rows);
    } catch (...) {
      unranked.pop_back();
      throw;
    }
    ++num_unranked;
    new_rows = rows;
  }
  /// Takes the waiting gradients, if there are as many as the first taker wants.
  bool serve(Taker& served, TakenGradients& taken) {
    if (takers.is_empty() || count() < takers.front().num_required) return false;
    taken = take_all();
    served = takers.take_front();
    ++global_step;
    return true;
  }
  TakenGradients take_all() {
    TakenGradients taken{{}, count()};
    taken.gradients.reserve(ranked.size() + unranked.size());
    for (auto* const held : {&ranked, &unranked}) {
      std::move(held->begin(), held->end(), std::back_inserter(taken.gradients));
      held->clear();
    }
    num_unranked = new_rows = 0;
    return taken;
  }
  void give_up(Taker& taker, const Status& status) {
    taker.done(status, {});
    serve_next();
  }
  /// When a taker waits no more, the next taker may want less.
  void serve_next() {
    for (;;) {
      Taker served;
      TakenGradients taken;
      {
        const std::lock_guard lock(mutex);
        if (!serve(served, taken)) return;
      }
      served.done(Status(), std::move(taken));
    }
  }
};

AccumulatorState::AccumulatorState(std::string name, DType dtype, const PartialShape& shape, const Kind& kind)
    : name_(std::move(name)), dtype_(dtype), shape_(shape), kind_(kind), state_(std::make_shared<State>()) {}
AccumulatorState::~AccumulatorState() = default;

void AccumulatorState::abandon(const Status& why) {
  const std::shared_ptr<State> kept = state_;  // the receiver of a call may let go of this
  detail::end_waiting(kept, &State::takers, why);
}

std::string AccumulatorState::debug_string() const {
  return str_cat(kind_.is_sparse ? "SparseConditionalAccumulator '" : "ConditionalAccumulator '", name_, "' (",
                 dtype_name(dtype_), shape_.to_string(), ")");
}

namespace detail {

/// int32 or int64 as int64, and back.
AnyTensor with_index_type(const AnyTensor& indices, DType wanted) {
  if (indices.dtype() == wanted) return indices;
  AnyTensor to(wanted, indices.shape());
  if (wanted == DType::int64) {
    std::copy_n(Tensor<std::int32_t>::of(indices).data(), indices.num_elements(), Tensor<std::int64_t>::of(to).data());
  } else {
    std::transform(Tensor<std::int64_t>::of(indices).begin(), Tensor<std::int64_t>::of(indices).end(),
                   Tensor<std::int32_t>::of(to).data(), [](std::int64_t i) { return static_cast<std::int32_t>(i); });
  }
  return to;
}

/// 16-bit floats as float, and back.
AnyTensor with_value_type(const AnyTensor& values, DType wanted) {
  if (values.dtype() == wanted) return values;
  AnyTensor to(wanted, values.shape());
  using Types = TypeList<float, Half, BFloat16>;
  visit_dtype<Types>(values.dtype(), [&]<class From>() {
    visit_dtype<Types>(wanted, [&]<class To>() {
      std::transform(Tensor<From>::of(values).begin(), Tensor<From>::of(values).end(), Tensor<To>::of(to).data(),
                     [](From value) { return static_cast<To>(static_cast<float>(value)); });
    });
  });
  return to;
}

}  // namespace detail

std::vector<AnyTensor> AccumulatorState::saved_state() const {
  std::vector<AccumulatedGradient> held;
  std::vector<std::int64_t> numbers;
  {
    const std::lock_guard lock(state_->mutex);
    held = state_->ranked;
    held.insert(held.end(), state_->unranked.begin(), state_->unranked.end());
    const auto num_ranked = static_cast<std::int64_t>(state_->ranked.size());
    numbers = {state_->global_step, state_->num_unranked, state_->new_rows, num_ranked,
               static_cast<std::int64_t>(held.size()) - num_ranked};
  }
  std::vector<AnyTensor> indices, values;
  for (const AccumulatedGradient& gradient : held) {
    numbers.insert(numbers.end(), {gradient.rank, gradient.local_step});
    detail::put_shape(numbers, gradient.values.shape());
    values.push_back(detail::with_value_type(gradient.values, detail::sum_type(dtype_)));
    if (!kind_.is_sparse) continue;
    numbers.push_back(gradient.indices.dtype() == DType::int32 ? 0 : 1);
    indices.push_back(detail::with_index_type(gradient.indices, DType::int64));
  }
  return {detail::numbers_tensor(numbers), detail::flattened(DType::int64, indices),
          detail::flattened(detail::sum_type(dtype_), values)};
}

void AccumulatorState::restore_state(std::span<const AnyTensor> state) {
  // With room to count up from there.
  constexpr std::int64_t most = std::int64_t{1} << 62, least = -most;
  detail::FlatState saved(debug_string(), state, std::array{DType::int64, detail::sum_type(dtype_)});
  const std::int64_t global_step = saved.number(least, most);
  const std::int64_t num_unranked = saved.number(0, most), new_rows = saved.number(0, most);
  const std::int64_t num_ranked = saved.number(0, most), num_sums = saved.number(0, num_unranked);
  if ((num_sums == 0) != (num_unranked == 0)) saved.fail("gradients that were summed have no sum");
  std::vector<AccumulatedGradient> ranked, unranked;
  const auto read = [&](std::int64_t from_rank, std::int64_t to_rank) {
    AccumulatedGradient gradient;
    gradient.rank = saved.number(from_rank, to_rank);
    gradient.local_step = saved.number(least, most);
    const Shape shape = saved.shape();
    gradient.values = saved.tensor(1, shape);
    if (gradient.rank >= 0) gradient.values = detail::with_value_type(gradient.values, dtype_);  // no sum
    if (!kind_.is_sparse) {
      if (!shape_.is_compatible_with(shape)) saved.fail(str_cat("a gradient of shape ", shape.to_string()));
      return gradient;
    }
    if (shape.rank() == 0) saved.fail("rows that are none");
    const DType type = saved.number(0, 1) == 0 ? DType::int32 : DType::int64;
    const AnyTensor indices = saved.tensor(0, Shape{shape.dim(0)});
    const std::int64_t rows = shape_.has_rank() && shape_.rank() > 0 && shape_.dim(0) != dynamic ? shape_.dim(0) : most;
    const std::int64_t end = type == DType::int32 ? std::min(rows, std::int64_t{1} << 31) : rows;
    for (const std::int64_t row : indices.span<std::int64_t>()) {
      if (row < 0 || row >= end) saved.fail(str_cat("a gradient of row ", row));
    }
    if (shape_.has_rank() && !shape_.subshape(1, shape_.rank()).is_compatible_with(shape.subshape(1, shape.rank()))) {
      saved.fail(str_cat("rows of shape ", shape.to_string()));
    }
    gradient.indices = detail::with_index_type(indices, type);
    return gradient;
  };
  for (std::int64_t i = 0; i < num_ranked; ++i)
    ranked.push_back(read(ranked.empty() ? 0 : ranked.back().rank + 1, most));
  for (std::int64_t i = 0; i < num_sums; ++i) unranked.push_back(read(-1, -1));
  saved.end();
  State::Taker served;
  TakenGradients taken;
  {
    const std::lock_guard lock(state_->mutex);
    state_->ranked.swap(ranked);
    state_->unranked.swap(unranked);
    state_->num_unranked = num_unranked;
    state_->new_rows = new_rows;
    state_->global_step = global_step;
    if (!state_->serve(served, taken)) return;
  }
  served.done(Status(), std::move(taken));
}

void AccumulatorState::apply(AccumulatedGradient gradient, Combine combine) {
  State::Taker served;
  TakenGradients taken;
  AccumulatedGradient replaced;  // freed without the lock
  {
    const std::lock_guard lock(state_->mutex);
    if (gradient.local_step < state_->global_step) return;
    if (gradient.rank < 0) {
      state_->add_unranked(std::move(gradient), combine);
    } else {
      auto& ranked = state_->ranked;
      const auto place =
          std::lower_bound(ranked.begin(), ranked.end(), gradient.rank,
                           [](const AccumulatedGradient& held, std::int64_t rank) { return held.rank < rank; });
      if (place != ranked.end() && place->rank == gradient.rank) {
        replaced = std::exchange(*place, std::move(gradient));
      } else {
        ranked.insert(place, std::move(gradient));
      }
    }
    if (!state_->serve(served, taken)) return;
  }
  served.done(Status(), std::move(taken));
}

void AccumulatorState::take_async(std::int64_t num_required, const CancellationToken& cancellation, TakeDone done) {
  if (num_required < 1) {
    return done(
        Status::invalid_argument(str_cat(debug_string(), ": ", num_required, " gradients are required, not 1 or more")),
        {});
  }
  std::unique_lock lock(state_->mutex);
  if (cancellation.is_cancelled()) {
    lock.unlock();
    return done(cancellation.status(), {});
  }
  if (state_->takers.is_empty() && state_->count() >= num_required) {
    TakenGradients taken = state_->take_all();
    ++state_->global_step;
    lock.unlock();
    return done(Status(), std::move(taken));
  }
  detail::wait_for(state_, &State::takers, lock, state_->takers.add(State::Taker{num_required, std::move(done)}),
                   cancellation);
}

TakenGradients AccumulatorState::take(std::span<const std::int32_t> ranks, std::int64_t step) {
  TakenGradients taken;
  taken.gradients.reserve(ranks.size());
  TakenGradients dropped;  // freed without the lock
  const std::lock_guard lock(state_->mutex);
  for (const std::int32_t rank : ranks) {
    const auto found = std::find_if(state_->ranked.begin(), state_->ranked.end(), [&](const AccumulatedGradient& held) {
      return held.rank == rank && held.local_step == step;
    });
    if (found == state_->ranked.end()) {
      throw_error(Status::aborted(str_cat(debug_string(), " has no gradient of replica ", rank, " for step ", step,
                                          ": a task was started anew since, or somebody else leads")));
    }
    taken.gradients.push_back(*found);
  }
  taken.count = static_cast<std::int64_t>(ranks.size());
  dropped = state_->take_all();
  for (AccumulatedGradient& held : dropped.gradients) {
    if (held.rank >= 0 && held.local_step > step) state_->ranked.push_back(std::exchange(held, {}));
  }
  state_->global_step = step + 1;
  return taken;
}

void AccumulatorState::set_global_step(std::int64_t step, bool drops_waiting) {
  TakenGradients dropped;  // freed without the lock
  const std::lock_guard lock(state_->mutex);
  if (drops_waiting) dropped = state_->take_all();
  state_->global_step = step;
}

std::int64_t AccumulatorState::num_accumulated() const {
  const std::lock_guard lock(state_->mutex);
  return state_->count();
}

std::int64_t AccumulatorState::global_step() const {
  const std::lock_guard lock(state_->mutex);
  return state_->global_step;
}

}  // namespace dflow
