#pragma once

#include <dflow/core/any_tensor.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace dflow::detail {

/// Copies `count` elements of tensors of one element type.
void copy_elements(const AnyTensor& from, std::int64_t begin, std::int64_t count, AnyTensor& to, std::int64_t at);

/// The elements of tensors of that type, one tensor's behind the other's: [n].
AnyTensor flattened(DType dtype, std::span<const AnyTensor> tensors);

/// Takes a saved state apart: the numbers that say what it is, in their order, and tensors out of flat ones. What does
/// not fit, of a damaged file maybe, is InvalidArgument, and nothing is allocated for it.
///
/// Thread safety: used by one thread.
class FlatState {
 public:
  /// Errors: InvalidArgument unless `state` is int64 [n] and tensors [...] of `dtypes`. `of` says what it is the state
  /// of, in errors.
  FlatState(std::string of, std::span<const AnyTensor> state, std::span<const DType> dtypes);

  /// The next number, if it is in [least, most].
  std::int64_t number(std::int64_t least, std::int64_t most);
  /// The next numbers: rank and extents.
  Shape shape();
  /// The next elements of flat tensor `i`, a tensor of its own.
  AnyTensor tensor(std::size_t i, const Shape& shape);
  /// Errors: InvalidArgument if there is more.
  void end() const;
  [[noreturn]] void fail(std::string_view why) const;

 private:
  const std::string of_;
  std::span<const std::int64_t> numbers_;
  struct Flat {
    AnyTensor tensor;
    std::int64_t next = 0;
  };
  std::vector<Flat> flat_;
};

/// The numbers that say what a shape is.
void put_shape(std::vector<std::int64_t>& numbers, const Shape& shape);
/// int64 [n].
AnyTensor numbers_tensor(const std::vector<std::int64_t>& numbers);

}  // namespace dflow::detail
