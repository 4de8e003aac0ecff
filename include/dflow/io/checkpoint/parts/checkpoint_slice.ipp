#pragma once

#include <dflow/base/status.hpp>
#include <dflow/io/checkpoint/parts/checkpoint_slice.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>

namespace dflow {

namespace detail {

[[noreturn]] void fail_slice(std::string_view text) {
  throw_error(Status::invalid_argument(str_cat("'", text, "' is no slice of a tensor, like \"4 3 0,2:-\"")));
}

/// The text before the next `end`, or all of it; `rest` keeps the text behind that `end`.
std::string_view next_of_slice(std::string_view& rest, char end) {
  const std::size_t at = std::min(rest.find(end), rest.size());
  const std::string_view taken = rest.substr(0, at);
  rest.remove_prefix(std::min(at + 1, rest.size()));
  return taken;
}

std::int64_t number_in_slice(std::string_view digits, std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size() || number < 0) fail_slice(text);
  return number;
}

void copy_run(const AnyTensor& from, std::int64_t first, std::int64_t count, AnyTensor& to, std::int64_t at) {
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

CheckpointSlice CheckpointSlice::parse(std::string_view text) {
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

AnyTensor CheckpointSlice::cut_from(const AnyTensor& tensor) const {
  if (tensor.shape() != whole) {
    throw_error(Status::invalid_argument(
        str_cat("a slice of ", whole.to_string(), " is wanted from a tensor of shape ", tensor.shape().to_string())));
  }
  AnyTensor part(tensor.dtype(), extent);
  copy_common(std::vector<std::int64_t>(begin.size()), tensor, part);
  return part;
}

bool CheckpointSlice::meets(std::span<const std::int64_t> part_begin, const Shape& part_extent) const {
  for (std::size_t d = 0; d < begin.size(); ++d) {
    const int dim = static_cast<int>(d);
    const std::int64_t end = std::min(begin[d] + extent[dim], part_begin[d] + part_extent[dim]);
    if (end <= std::max(begin[d], part_begin[d])) return false;
  }
  return true;
}

void CheckpointSlice::copy_common(std::span<const std::int64_t> part_begin, const AnyTensor& part,
                                  AnyTensor& into) const {
  if (!meets(part_begin, part.shape())) return;
  if (begin.empty()) return detail::copy_run(part, 0, 1, into, 0);
  const std::size_t last = begin.size() - 1;
  std::vector<std::int64_t> first(begin.size()), end(begin.size());
  for (std::size_t d = 0; d <= last; ++d) {
    const int dim = static_cast<int>(d);
    first[d] = std::max(begin[d], part_begin[d]);
    end[d] = std::min(begin[d] + extent[dim], part_begin[d] + part.dim(dim));
  }
  const std::int64_t run = end[last] - first[last];
  const auto place = [](std::span<const std::int64_t> index, std::span<const std::int64_t> origin, const Shape& shape) {
    std::int64_t at = 0;
    for (std::size_t d = 0; d < index.size(); ++d) at = at * shape[static_cast<int>(d)] + index[d] - origin[d];
    return at;
  };
  for (std::vector<std::int64_t> index = first;;) {
    detail::copy_run(part, place(index, part_begin, part.shape()), run, into, place(index, begin, extent));
    std::size_t d = last;
    while (d > 0 && ++index[d - 1] == end[d - 1]) {
      index[d - 1] = first[d - 1];
      --d;
    }
    if (d == 0) return;
  }
}

namespace detail {

void require_slices_of(std::string_view name, const Shape& whole, std::span<const CheckpointSlice> slices) {
  for (const CheckpointSlice& slice : slices) {
    const bool has_all =
        slice.begin.size() == static_cast<std::size_t>(slice.whole.rank()) && slice.extent.rank() == slice.whole.rank();
    bool is_inside = has_all;
    for (int d = 0; is_inside && d < slice.whole.rank(); ++d) {
      const std::int64_t first = slice.begin[static_cast<std::size_t>(d)];
      is_inside = first >= 0 && first <= slice.whole[d] && slice.extent[d] <= slice.whole[d] - first;
    }
    if (!is_inside)
      throw_error(Status::invalid_argument(str_cat("tensor '", name, "': a slice of it that lies outside of it")));
    if (slice.whole == whole) continue;
    throw_error(Status::invalid_argument(str_cat("tensor '", name, "' is of shape ", whole.to_string(),
                                                 ", and a slice of it is wanted as of ", slice.whole.to_string())));
  }
}

}  // namespace detail

}  // namespace dflow
