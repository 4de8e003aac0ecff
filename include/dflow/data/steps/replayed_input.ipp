#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/data/steps/replayed_input.hpp>

#include <cassert>
#include <span>

namespace dflow::data {

void SnapshotLog::forget_before(std::uint64_t index) {
  while (snapshots_.size() > 1 && snapshots_[1].index <= index) snapshots_.pop_front();
}

const SnapshotLog::Snapshot& SnapshotLog::before(std::uint64_t index) const {
  auto at = snapshots_.rbegin();
  while (at->index > index && std::next(at) != snapshots_.rend()) ++at;
  assert(at->index <= index);
  return *at;
}

SnapshotLog::Snapshot SnapshotLog::of(const Stream& stream, std::uint64_t index) {
  Snapshot snapshot{index, {}};
  ByteWriter out(snapshot.state);
  stream.save(out);
  return snapshot;
}

bool ReplayedInput::next(Item& item) {
  if (is_due()) log_.add(position_, SnapshotLog::of(*input_, position_).state);
  if (!input_->next(item)) return false;
  ++position_;
  return true;
}

std::uint64_t ReplayedInput::skip(std::uint64_t n) {
  const std::uint64_t passed = input_->skip(n);
  position_ += passed;
  log_ = {};
  return passed;
}

void ReplayedInput::save(ByteWriter& out, std::uint64_t oldest) const {
  if (log_.is_empty()) {
    out.varint(position_);
    out.varint(0);
    input_->save(out);
    return;
  }
  const SnapshotLog::Snapshot& snapshot = log_.before(oldest);
  out.varint(snapshot.index);
  out.varint(position_ - snapshot.index);
  out.bytes(std::as_bytes(std::span(snapshot.state.data(), snapshot.state.size())));
}

void ReplayedInput::restore(ByteReader& in, std::uint64_t most, std::size_t num_held,
                            FunctionRef<std::uint64_t(std::size_t)> held, FunctionRef<void(std::size_t, Item)> keep) {
  const std::uint64_t begin = in.varint();
  const std::uint64_t count = read_replayed(in, most);
  if (detail::saturating_add(begin, count) > max_position)
    throw_error(Status::data_loss("an iterator's state overflows"));
  input_->restore(in);
  position_ = begin;
  log_ = {};
  log_.add(begin, SnapshotLog::of(*input_, begin).state);
  const std::uint64_t end = begin + count;
  for (std::size_t i = 0; i < num_held; ++i) {
    const std::uint64_t index = held(i);
    if (index < position_ || index >= end) {
      throw_error(Status::data_loss(str_cat("an iterator's state holds element ", index, ", which is not among ", begin,
                                            " to ", end, ", or twice")));
    }
    replay(*input_, index - position_);
    position_ = index + 1;
    Item item;
    require_passed_over(input_->next(item) ? 1 : 0, 1);
    keep(i, std::move(item));
  }
  replay(*input_, end - position_);
  position_ = end;
}

}  // namespace dflow::data
