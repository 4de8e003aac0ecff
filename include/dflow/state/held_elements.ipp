#pragma once

#include <dflow/state/held_elements.hpp>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <map>
#include <utility>

namespace dflow {

Shape QueuedElements::element_shape(std::size_t component) const {
  const Shape& shape = components[component].shape();
  return is_single ? shape : shape.subshape(1, shape.rank());
}

namespace detail {

/// A row as an element of its own, so that it does not keep the others' memory.
QueuedElements single_element(const QueuedElements& from, std::int64_t row) {
  QueuedElements single;
  single.is_single = true;
  if (from.is_single) {
    single.components = from.components;
    return single;
  }
  single.components.reserve(from.components.size());
  for (std::size_t c = 0; c < from.components.size(); ++c) {
    single.components.push_back(from.components[c].slice(row, row + 1).reshaped(from.element_shape(c)).deep_copy());
  }
  return single;
}

class HeldInOrder final : public HeldElements {
 public:
  void put(QueuedElements& from, std::int64_t count) override {
    move_first(from, count, held_);
    size_ += count;
  }
  void take(std::int64_t count, std::vector<QueuedElements>& to) override {
    const std::int64_t moved = std::min(count, held_.front().size());
    move_first(held_.front(), moved, to);
    if (held_.front().size() == 0) held_.pop_front();
    size_ -= moved;
  }
  void put_back(const QueuedElements& last) override {
    held_.push_front(last);
    size_ += last.size();
  }
  std::vector<QueuedElements> with(std::span<const QueuedElements> taken) const override {
    std::vector<QueuedElements> all(taken.begin(), taken.end());
    all.insert(all.end(), held_.begin(), held_.end());
    return all;
  }

 private:
  static void move_first(QueuedElements& from, std::int64_t count, auto& to) {
    to.push_back(from);
    from.begin = to.back().end = from.begin + count;
  }

  std::deque<QueuedElements> held_;
};

class HeldAtRandom final : public HeldElements {
 public:
  explicit HeldAtRandom(std::shared_ptr<RandomStream> stream) : stream_(std::move(stream)) {}

  void put(QueuedElements& from, std::int64_t count) override {
    std::vector<QueuedElements> singles;
    singles.reserve(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) singles.push_back(single_element(from, from.begin + i));
    held_.insert(held_.end(), std::make_move_iterator(singles.begin()), std::make_move_iterator(singles.end()));
    from.begin += count;
    size_ += count;
  }
  void take(std::int64_t, std::vector<QueuedElements>& to) override {
    to.emplace_back();
    RandomStreamState state = stream_->state();
    PhiloxStream groups = PhiloxStream::from_seeds(state.seed, state.seed2);
    groups.skip(state.position++);
    stream_->set_state(state);
    const PhiloxWords words = groups.next();
    const std::uint64_t number = words[0] | std::uint64_t{words[1]} << 32;
    std::swap(held_[number % held_.size()], held_.back());
    to.back() = std::move(held_.back());
    held_.pop_back();
    --size_;
  }
  void put_back(const QueuedElements& last) override {
    held_.push_back(last);
    ++size_;
  }
  std::vector<QueuedElements> with(std::span<const QueuedElements> taken) const override {
    std::vector<QueuedElements> all = held_;
    all.insert(all.end(), taken.rbegin(), taken.rend());
    return all;
  }

 private:
  std::vector<QueuedElements> held_;
  const std::shared_ptr<RandomStream> stream_;
};

class HeldByPriority final : public HeldElements {
 public:
  void put(QueuedElements& from, std::int64_t count) override {
    Held fresh;
    for (std::int64_t i = 0; i < count; ++i) {
      QueuedElements single = single_element(from, from.begin + i);
      single.place = last_place_ + 1 + static_cast<std::uint64_t>(i);
      const Key key = key_of(single);
      fresh.emplace(key, std::move(single));
    }
    held_.merge(fresh);
    last_place_ += static_cast<std::uint64_t>(count);
    from.begin += count;
    size_ += count;
  }
  void take(std::int64_t, std::vector<QueuedElements>& to) override {
    to.push_back(held_.begin()->second);
    held_.erase(held_.begin());
    --size_;
  }
  void put_back(const QueuedElements& last) override {
    held_.emplace(key_of(last), last);
    ++size_;
  }
  std::vector<QueuedElements> with(std::span<const QueuedElements> taken) const override {
    Held all = held_;
    for (const QueuedElements& element : taken) all.emplace(key_of(element), element);
    std::vector<QueuedElements> list;
    for (auto& [key, element] : all) list.push_back(std::move(element));
    return list;
  }

 private:
  using Key = std::pair<std::int64_t, std::uint64_t>;
  using Held = std::map<Key, QueuedElements>;

  static Key key_of(const QueuedElements& single) {
    return {*Tensor<std::int64_t>::of(single.components[0]).data(), single.place};
  }

  Held held_;
  std::uint64_t last_place_ = 0;
};

std::unique_ptr<HeldElements> held_in_order() { return std::make_unique<HeldInOrder>(); }
std::unique_ptr<HeldElements> held_at_random(std::shared_ptr<RandomStream> stream) {
  return std::make_unique<HeldAtRandom>(std::move(stream));
}
std::unique_ptr<HeldElements> held_by_priority() { return std::make_unique<HeldByPriority>(); }

}  // namespace detail

}  // namespace dflow
