#pragma once

#include <dflow/kernels/cpu/array/element_bits.hpp>
#include <dflow/kernels/cpu/array/element_copy.hpp>
#include <dflow/kernels/cpu/array/where.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

namespace dflow::cpu {

namespace detail {

/// Elements that one thread looks at together.
inline constexpr std::int64_t where_block = 4096;

/// For each element of a block, 1 if it is not zero.
using NonzeroMarks = std::array<std::uint8_t, static_cast<std::size_t>(where_block)>;

/// Elements are `parts` words each.
template <class Word, int parts>
void mark_nonzero_words(const std::byte* from, std::int64_t n, std::uint64_t mask, std::uint8_t* marks) {
  const auto bits = static_cast<Word>(mask);
  const auto mark = [=](std::int64_t i) -> std::uint8_t {
    Word words[parts];
    std::memcpy(words, from + static_cast<std::size_t>(i) * sizeof(words), sizeof(words));
    Word all = 0;
    for (const Word word : words) all = static_cast<Word>(all | word);
    return (all & bits) != 0 ? 1 : 0;
  };
  std::array<std::uint8_t, 32> some{};  // of a length that compilers know, for vectors
  constexpr auto step = static_cast<std::int64_t>(some.size());
  std::int64_t i = 0;
  for (; i + step <= n; i += step) {
    for (std::int64_t k = 0; k < step; ++k) some[static_cast<std::size_t>(k)] = mark(i + k);
    std::memcpy(marks + i, some.data(), some.size());
  }
  for (; i < n; ++i) marks[i] = mark(i);
}

/// Marks elements [begin, begin + n) of x.
void mark_nonzero(const AnyTensor& x, std::int64_t begin, std::int64_t n, NonzeroMarks& marks) {
  const auto* const from = static_cast<const std::byte*>(dflow::detail::element(x, begin));
  const std::uint64_t mask = dflow::detail::magnitude_bits(x.dtype());
  switch (size_of(x.dtype())) {
    case 1:
      return mark_nonzero_words<std::uint8_t, 1>(from, n, mask, marks.data());
    case 2:
      return mark_nonzero_words<std::uint16_t, 1>(from, n, mask, marks.data());
    case 4:
      return mark_nonzero_words<std::uint32_t, 1>(from, n, mask, marks.data());
    case 8:
      return mark_nonzero_words<std::uint64_t, 1>(from, n, mask, marks.data());
    default:
      return mark_nonzero_words<std::uint64_t, 2>(from, n, mask, marks.data());
  }
}

/// The number of marks of the first n elements.
std::int64_t count_marks(const NonzeroMarks& marks, std::int64_t n) {
  std::int64_t count = 0, i = 0;
  for (std::uint64_t eight = 0; i + 8 <= n; i += 8) {
    std::memcpy(&eight, &marks[static_cast<std::size_t>(i)], sizeof(eight));
    count += static_cast<std::int64_t>(eight * 0x0101010101010101 >> 56);  // the sum of the bytes
  }
  for (; i < n; ++i) count += marks[static_cast<std::size_t>(i)];
  return count;
}

/// Writes the positions of the `count` marked elements of a block, which begins with element `first` of a tensor:
/// [count, rank].
void write_positions(std::int64_t first, std::int64_t count, const NonzeroMarks& marks, const Shape& shape,
                     std::int64_t* to) {
  const int rank = shape.rank();
  if (rank == 0) return;
  // Each element is written, and the next one in its place unless it is marked: there is no branch to guess.
  const auto write_offsets = [&](auto* offsets, std::int64_t from) {
    std::int64_t found = 0;
    for (std::size_t i = 0; found < count; ++i) {
      offsets[found] = static_cast<std::remove_pointer_t<decltype(offsets)>>(from + static_cast<std::int64_t>(i));
      found += marks[i];
    }
  };
  if (rank == 1) return write_offsets(to, first);
  static_assert(where_block <= std::numeric_limits<std::uint16_t>::max());
  std::array<std::uint16_t, static_cast<std::size_t>(where_block)> offsets;
  write_offsets(offsets.data(), 0);
  // The positions ascend: the indices of a row are the same until its end.
  const std::int64_t width = shape[rank - 1];
  std::array<std::int64_t, max_rank> index{};
  std::int64_t row_begin = 0, row_end = 0;
  for (const std::uint16_t offset : std::span(offsets).first(static_cast<std::size_t>(count))) {
    const std::int64_t position = first + offset;
    if (position >= row_end) {
      std::int64_t left = position / width;
      row_begin = left * width;
      row_end = row_begin + width;
      for (int i = rank - 1; i-- > 0;) {
        index[static_cast<std::size_t>(i)] = left % shape[i];
        left /= shape[i];
      }
    }
    to = std::copy_n(index.begin(), rank - 1, to);
    *to++ = position - row_begin;
  }
}

}  // namespace detail

void find_nonzero(KernelContext& context) {
  const std::int64_t block = detail::where_block;
  const AnyTensor& x = context.input(0);
  const std::int64_t n = x.num_elements(), blocks = n / block + (n % block != 0 ? 1 : 0);
  const auto size_of_block = [=](std::int64_t b) { return std::min(block, n - b * block); };
  std::vector<std::int64_t> starts(static_cast<std::size_t>(blocks) + 1);  // of the blocks' positions in the result
  context.pool().parallel_for(blocks, 0.5 * detail::where_block, [&](std::int64_t begin, std::int64_t end) {
    detail::NonzeroMarks marks;
    for (std::int64_t b = begin; b < end; ++b) {
      detail::mark_nonzero(x, b * block, size_of_block(b), marks);
      starts[static_cast<std::size_t>(b) + 1] = detail::count_marks(marks, size_of_block(b));
    }
  });
  for (std::size_t b = 1; b < starts.size(); ++b) starts[b] += starts[b - 1];
  const int rank = x.rank();
  std::int64_t* const y = context.allocate_output<std::int64_t>(0, {starts.back(), rank}).data();
  context.pool().parallel_for(blocks, 1.5 * detail::where_block, [&](std::int64_t begin, std::int64_t end) {
    detail::NonzeroMarks marks;
    for (std::int64_t b = begin; b < end; ++b) {
      detail::mark_nonzero(x, b * block, size_of_block(b), marks);
      const std::int64_t start = starts[static_cast<std::size_t>(b)];
      const std::int64_t count = starts[static_cast<std::size_t>(b) + 1] - start;
      detail::write_positions(b * block, count, marks, x.shape(), y + start * rank);
    }
  });
}

}  // namespace dflow::cpu
