#pragma once

#include <dflow/base/status.hpp>
#include <dflow/core/checkpoint/checkpoint_slice.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>

namespace dflow {

namespace detail {

[[noreturn]] DFLOW_INLINE void fail_slice(std::string_view text) {
  throw_error(invalid_argument(str_cat("'", text, "' is no slice of a tensor, like \"4 3 0,2:-\"")));
}

/// What is before the next `end`, or all; `rest` keeps what follows it.
DFLOW_INLINE std::string_view next_of_slice(std::string_view& rest, char end) {
  const std::size_t at = std::min(rest.find(end), rest.size());
  const std::string_view taken = rest.substr(0, at);
  rest.remove_prefix(std::min(at + 1, rest.size()));
  return taken;
}

DFLOW_INLINE std::int64_t number_in_slice(std::string_view digits, std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size() || number < 0) fail_slice(text);
  return number;
}

DFLOW_INLINE void copy_run(const AnyTensor& from, std::int64_t first, std::int64_t count, AnyTensor& to,
                           std::int64_t at) {
  if (from.dtype() == DType::string) {
    std::copy_n(from.span<std::string>().begin() + first, count, to.span<std::string>().begin() + at);
    return;
  }
  const std::size_t size = size_of(from.dtype());
  std::memcpy(static_cast<std::byte*>(to.raw_data()) + static_cast<std::size_t>(at) * size,
              static_cast<const std::byte*>(from.raw_data()) + static_cast<std::size_t>(first) * size,
              static_cast<std::size_t>(count) * size);
}

}  // namespace detail

DFLOW_INLINE CheckpointSlice CheckpointSlice::parse(std::string_view text) {
  const std::size_t space = text.rfind(' ');
  if (space == std::string_view::npos) detail::fail_slice(text);
  std::string_view dims = text.substr(0, space), ranges = text.substr(space + 1);
  std::vector<std::int64_t> whole, extent;
  CheckpointSlice slice;
  while (!dims.empty()) {
    const std::int64_t dim = detail::number_in_slice(detail::next_of_slice(dims, ' '), text);
    if (ranges.empty() || whole.size() == static_cast<std::size_t>(max_rank)) detail::fail_slice(text);
    std::string_view range = detail::next_of_slice(ranges, ':');
    const bool is_all = range == "-";
    const std::int64_t first = is_all ? 0 : detail::number_in_slice(detail::next_of_slice(range, ','), text);
    const std::int64_t length = is_all ? dim : detail::number_in_slice(range, text);
    if (first > dim || length > dim - first) detail::fail_slice(text);
    whole.push_back(dim);
    slice.begin.push_back(first);
    extent.push_back(length);
  }
  if (whole.empty() || !ranges.empty()) detail::fail_slice(text);
  slice.whole = Shape(std::span<const std::int64_t>(whole));
  slice.extent = Shape(std::span<const std::int64_t>(extent));
  return slice;
}

DFLOW_INLINE AnyTensor CheckpointSlice::cut_from(const AnyTensor& tensor) const {
  if (tensor.shape() != whole) {
    throw_error(invalid_argument(
        str_cat("a slice of ", whole.to_string(), " is wanted from a tensor of shape ", tensor.shape().to_string())));
  }
  AnyTensor part(tensor.dtype(), extent);
  if (part.num_elements() == 0) return part;
  const int last = extent.rank() - 1;
  std::vector<std::int64_t> index(begin.size());
  for (std::int64_t at = 0; at < part.num_elements(); at += extent[last]) {
    std::int64_t from = 0;
    for (int d = 0; d <= last; ++d)
      from = from * whole[d] + begin[static_cast<std::size_t>(d)] + index[static_cast<std::size_t>(d)];
    detail::copy_run(tensor, from, extent[last], part, at);
    for (int d = last - 1; d >= 0 && ++index[static_cast<std::size_t>(d)] == extent[d]; --d) {
      index[static_cast<std::size_t>(d)] = 0;
    }
  }
  return part;
}

}  // namespace dflow
