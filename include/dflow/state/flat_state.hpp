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

/// The elements of tensors of that type, one tensor behind the other: [n].
AnyTensor flattened(DType dtype, std::span<const AnyTensor> tensors);

/// Takes a saved state apart: the numbers that describe it, in their order, and tensors out of flat ones. Data that
/// does not fit, perhaps of a damaged file, is InvalidArgument, and nothing is allocated for it.
///
/// Thread safety: used by one thread.
class FlatState {
 public:
  /// Errors: InvalidArgument unless `state` is int64 [n] and tensors [...] of `dtypes`. `of` names the owner of the
  /// state in errors.
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

/// The numbers that describe a shape.
void put_shape(std::vector<std::int64_t>& numbers, const Shape& shape);
/// int64 [n].
AnyTensor numbers_tensor(const std::vector<std::int64_t>& numbers);

}  // namespace dflow::detail
