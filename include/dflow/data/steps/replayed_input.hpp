#pragma once

#include <dflow/base/function_ref.hpp>
#include <dflow/data/stream.hpp>

#include <cstdint>
#include <deque>
#include <memory>
#include <string>

namespace dflow::data {

/// Snapshots of a stream at some of its elements. With them, elements that were read and not yet given can be read
/// again.
///
/// Thread safety: one thread at a time.
class SnapshotLog {
 public:
  struct Snapshot {
    std::uint64_t index = 0;  ///< elements that the stream had given
    std::string state;
  };

  bool is_empty() const noexcept { return snapshots_.empty(); }
  void add(std::uint64_t index, std::string state) { snapshots_.push_back({index, std::move(state)}); }
  /// Drops the snapshots that are not needed to begin at `index` or later.
  void forget_before(std::uint64_t index);
  /// The last snapshot at `index` or before; there is one unless it has been dropped.
  const Snapshot& before(std::uint64_t index) const;
  std::uint64_t last_index() const noexcept { return snapshots_.back().index; }

  static Snapshot of(const Stream& stream, std::uint64_t index);

 private:
  std::deque<Snapshot> snapshots_;
};

/// An input that is read ahead of the elements that its reader has given. Elements are numbered. To restore the
/// elements that the reader holds, the input is read again from a snapshot before them.
///
/// Thread safety: one thread at a time.
class ReplayedInput {
 public:
  /// A snapshot is taken at every `every`-th element.
  ReplayedInput(std::unique_ptr<Stream> input, std::uint64_t every) : input_(std::move(input)), every_(every) {}

  /// The next element, number `position()` before the call.
  bool next(Item& item);
  std::uint64_t position() const noexcept { return position_; }
  /// True if the next call of `next` takes a snapshot: time to forget the snapshots that are not needed any more.
  bool is_due() const noexcept { return log_.is_empty() || position_ - log_.last_index() >= every_; }
  void forget_before(std::uint64_t index) { log_.forget_before(index); }
  /// Passes over elements; for readers that hold none.
  std::uint64_t skip(std::uint64_t n);

  /// Saves the position, so that elements from number `oldest` on can be read again.
  void save(ByteWriter& out, std::uint64_t oldest) const;
  /// Goes back to the saved snapshot and reads on to the saved position, at most `most` elements. On the way
  /// `keep(i, item)` gets element number `held(i)`, for i below `num_held`. Errors: DataLoss unless `held` ascends and
  /// lies within the elements that are read.
  void restore(ByteReader& in, std::uint64_t most, std::size_t num_held, FunctionRef<std::uint64_t(std::size_t)> held,
               FunctionRef<void(std::size_t, Item)> keep);

 private:
  std::unique_ptr<Stream> input_;
  std::uint64_t every_;
  std::uint64_t position_ = 0;
  SnapshotLog log_;
};

}  // namespace dflow::data
