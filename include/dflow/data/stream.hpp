#pragma once

#include <dflow/base/files/byte_reader.hpp>
#include <dflow/base/files/byte_writer.hpp>
#include <dflow/data/item.hpp>
#include <dflow/data/replay_limit.hpp>

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace dflow::data {

/// What a pass is opened with.
struct PassContext {
  std::uint64_t epoch;
  ReplayLimit& limit;
  /// An element that cannot be made is given as an Item that is a failure. It counts as an element.
  bool gives_failures = false;

  /// The same for the pass of a step's input in another epoch.
  PassContext in_epoch(std::uint64_t other) const { return {other, limit, gives_failures}; }
  /// Calls `make`, which a step calls for element `number` of its input, counted from 0 in an epoch. For a batch it is
  /// the batch's first element, and for a source the source's own. The error says so. If `make` throws and the pass
  /// gives failures, `item` becomes the failure, and the result is false.
  template <class F>
  bool make(Item& item, std::string_view step, std::uint64_t number, F make) const {
    try {
      make();
      return true;
    } catch (...) {
      item = Item::failure_in(step, number);
    }
    return hand_on(item);
  }
  /// The same for a source whose errors say themselves where they were.
  template <class F>
  bool make(Item& item, F make) const {
    try {
      make();
      return true;
    } catch (...) {
      item = Item::failure();
    }
    return hand_on(item);
  }

 private:
  bool hand_on(const Item& failure) const {
    if (!gives_failures) failure.throw_failure();
    return false;
  }
};

/// One pass over a dataset. Its recipe and its epoch alone decide which elements it gives.
///
/// Thread safety: one thread at a time. The recipe and the limit that the stream was opened with outlive it.
/// Errors: all errors that sources and functions throw. After an error the stream can only be destroyed.
class Stream {
 public:
  Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  virtual ~Stream() = default;

  /// The next element; false at the end, and from then on. In a pass that gives failures it may be one: sources and
  /// functions make failures of their errors, and the other steps hand them on. A step that makes one element of
  /// several makes a failure of them if one of them is.
  virtual bool next(Item& item) = 0;
  /// Passes over n elements, or over all that are left if they are fewer, and returns their number. It does not
  /// compute the elements if it can avoid that.
  virtual std::uint64_t skip(std::uint64_t n);
  /// Appends the position: after the elements that were given, not after the elements that were read ahead.
  virtual void save(ByteWriter& out) const = 0;
  /// Makes a stream that has given nothing go on from a saved position. Errors: DataLoss, OutOfRange for bytes that do
  /// not fit this recipe.
  virtual void restore(ByteReader& in) = 0;
};

/// The first failure among items that a step makes one element of; null if there is none.
Item* first_failure(std::span<Item> items) noexcept;

/// The size of a dataset without an end.
inline constexpr std::uint64_t endless = std::numeric_limits<std::uint64_t>::max();

namespace detail {
/// a + b and a * b, or `endless` if the result is too large.
constexpr std::uint64_t saturating_add(std::uint64_t a, std::uint64_t b) noexcept {
  std::uint64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? endless : sum;
}
constexpr std::uint64_t saturating_multiply(std::uint64_t a, std::uint64_t b) noexcept {
  std::uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? endless : product;
}
}  // namespace detail

/// How a dataset is made: a source, or a step that transforms others.
///
/// Thread safety: immutable.
class Recipe {
 public:
  Recipe() = default;
  Recipe(const Recipe&) = delete;
  Recipe& operator=(const Recipe&) = delete;
  virtual ~Recipe() = default;

  /// Opens a new pass. Other epochs have other random orders. Reads nothing and starts no thread yet. A source tells
  /// the limit of each element that it reads, and once of elements that it passes over without reading them. Other
  /// steps hand the context on.
  virtual std::unique_ptr<Stream> open(const PassContext& context) const = 0;
  /// The number of elements that a pass gives, if it is known without a pass, or `endless`.
  virtual std::optional<std::uint64_t> size() const { return std::nullopt; }
  /// "range(10) | shuffle(4, seed 1)": describes all that decides elements and order, except functions.
  virtual std::string describe() const = 0;
};

using SharedRecipe = std::shared_ptr<const Recipe>;

/// Errors: InvalidArgument, with `what`, for a count of 0 and for one over 2^63 - 1: a negative number that was made
/// unsigned.
void require_count(std::string_view what, std::uint64_t count);

/// Errors: DataLoss unless all of `n` elements were there to be passed over when a stream was restored.
void require_passed_over(std::uint64_t passed, std::uint64_t n);
/// Passes over the n elements that had been read ahead and not given. Errors: DataLoss if they are not there.
inline void replay(Stream& stream, std::uint64_t n) { require_passed_over(stream.skip(n), n); }
/// Reads the number of elements to replay. Errors: DataLoss past `most`.
std::uint64_t read_replayed(ByteReader& in, std::uint64_t most);

/// The most elements that a pass can have given: far more than any pass gives, and far from overflowing.
inline constexpr std::uint64_t max_position = std::uint64_t{1} << 62;
/// Twice the most elements that a map or a prefetch reads ahead.
inline constexpr std::uint64_t max_read_ahead = std::uint64_t{1} << 20;

}  // namespace dflow::data
