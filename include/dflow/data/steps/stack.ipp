#pragma once

#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/core/tensor.hpp>
#include <dflow/data/steps/stack.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <type_traits>

namespace dflow::data {

namespace detail {

void require_alike(std::span<const AnyTensor> rows, bool by_rank) {
  if (rows.empty()) throw_error(Status::invalid_argument("data: a batch needs at least one element"));
  const AnyTensor& first = rows.front();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const AnyTensor& row = rows[i];
    if (!row.is_initialized())
      throw_error(Status::invalid_argument(str_cat("data: element ", i, " of a batch is an empty tensor")));
    const bool fits = by_rank ? row.rank() == first.rank() : row.shape() == first.shape();
    if (row.dtype() == first.dtype() && fits) continue;
    throw_error(Status::invalid_argument(str_cat("data: element ", i, " of a batch is ", dtype_name(row.dtype()),
                                                 row.shape().to_string(), ", the first is ", dtype_name(first.dtype()),
                                                 first.shape().to_string(),
                                                 by_rank ? "" : "; padded_batch fills up shapes that differ")));
  }
}

bool lie_side_by_side(std::span<const AnyTensor> rows) {
  const AnyTensor& first = rows.front();
  if (!is_plain(first.dtype()) || !first.buffer()) return false;
  const auto* expected = static_cast<const std::byte*>(first.raw_data());
  for (const AnyTensor& row : rows) {
    if (!row.shares_buffer_with(first) || row.raw_data() != expected) return false;
    expected += row.bytes();
  }
  return true;
}

template <class T>
T padding_of(double padding) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    // The largest number of 64 bits rounds up as a double: a smaller padding fits.
    const bool fits = padding >= static_cast<double>(std::numeric_limits<T>::min()) &&
                      padding < static_cast<double>(std::numeric_limits<T>::max()) + (sizeof(T) < 8 ? 1.0 : 0.0);
    if (!fits || padding != static_cast<double>(static_cast<T>(padding))) {
      throw_error(
          Status::invalid_argument(str_cat("data: a padding of ", padding, " is no ", dtype_name(dtype_of<T>))));
    }
    return static_cast<T>(padding);
  } else if constexpr (std::is_same_v<T, bool>) {
    return padding != 0;
  } else if constexpr (std::is_same_v<T, double> || std::is_same_v<T, std::complex<double>>) {
    return T(padding);
  } else {
    return T(static_cast<float>(padding));
  }
}

void fill_with(AnyTensor& tensor, double padding) {
  if (tensor.dtype() == DType::string) return;
  visit_dtype<PlainTypes>(tensor.dtype(), [&]<class T>() {
    const std::span<T> elements = tensor.span<T>();
    std::fill(elements.begin(), elements.end(), padding_of<T>(padding));
  });
}

void copy_elements(const AnyTensor& from, std::int64_t from_offset, AnyTensor& to, std::int64_t to_offset,
                   std::int64_t count) {
  if (from.dtype() == DType::string) {
    std::copy_n(static_cast<const std::string*>(from.raw_data()) + from_offset, count,
                static_cast<std::string*>(to.raw_data()) + to_offset);
    return;
  }
  const std::size_t size = size_of(from.dtype());
  std::memcpy(static_cast<std::byte*>(to.raw_data()) + static_cast<std::size_t>(to_offset) * size,
              static_cast<const std::byte*>(from.raw_data()) + static_cast<std::size_t>(from_offset) * size,
              static_cast<std::size_t>(count) * size);
}

/// Copies `row` to the corner of the part of `to` that begins at element `offset` and has the shape `whole`.
void copy_to_corner(const AnyTensor& row, const Shape& whole, AnyTensor& to, std::int64_t offset) {
  if (row.num_elements() == 0) return;
  const int rank = row.rank();
  if (rank == 0) return copy_elements(row, 0, to, offset, 1);
  const std::array<std::int64_t, max_rank> strides = row_major_strides(whole);
  const std::int64_t run = row.dim(rank - 1);
  std::array<std::int64_t, max_rank> index{};
  for (std::int64_t from = 0; from < row.num_elements(); from += run) {
    std::int64_t at = offset;
    for (int d = 0; d + 1 < rank; ++d) at += index[static_cast<std::size_t>(d)] * strides[static_cast<std::size_t>(d)];
    copy_elements(row, from, to, at, run);
    for (int d = rank - 2; d >= 0; --d) {
      if (++index[static_cast<std::size_t>(d)] < row.dim(d)) break;
      index[static_cast<std::size_t>(d)] = 0;
    }
  }
}

}  // namespace detail

AnyTensor stack_rows(std::span<const AnyTensor> rows) {
  detail::require_alike(rows, false);
  const AnyTensor& first = rows.front();
  const Shape shape = first.shape().inserted(0, static_cast<std::int64_t>(rows.size()));
  if (detail::lie_side_by_side(rows)) {
    const auto offset =
        static_cast<const std::byte*>(first.raw_data()) - static_cast<const std::byte*>(first.buffer()->data());
    return AnyTensor::over(first.buffer(), static_cast<std::size_t>(offset), first.dtype(), shape);
  }
  AnyTensor stacked(first.dtype(), shape);
  const std::int64_t count = first.num_elements();
  for (std::size_t i = 0; count > 0 && i < rows.size(); ++i) {
    detail::copy_elements(rows[i], 0, stacked, static_cast<std::int64_t>(i) * count, count);
  }
  return stacked;
}

AnyTensor stack_padded(std::span<const AnyTensor> rows, double padding) {
  detail::require_alike(rows, true);
  const AnyTensor& first = rows.front();
  Shape whole = first.shape();
  bool is_ragged = false;
  for (const AnyTensor& row : rows) {
    is_ragged = is_ragged || row.shape() != first.shape();
    for (int d = 0; d < row.rank(); ++d) whole = whole.with_dim(d, std::max(whole.dim(d), row.dim(d)));
  }
  if (!is_ragged) return stack_rows(rows);
  AnyTensor stacked(first.dtype(), whole.inserted(0, static_cast<std::int64_t>(rows.size())));
  detail::fill_with(stacked, padding);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    detail::copy_to_corner(rows[i], whole, stacked, static_cast<std::int64_t>(i) * whole.num_elements());
  }
  return stacked;
}

}  // namespace dflow::data
