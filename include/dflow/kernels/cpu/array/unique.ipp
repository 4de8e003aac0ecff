#pragma once

#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/cpu/array/element_bits.hpp>
#include <dflow/kernels/cpu/array/named_rows.hpp>
#include <dflow/kernels/cpu/array/unique.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace dflow::cpu {

namespace detail {

/// Numbers that equal elements have alike, for a block of elements.
struct ElementTags {
  static constexpr std::int64_t block = 256;

  std::array<std::uint64_t, block> tags;
  std::array<bool, block> are_nan;

  /// Of elements [begin, begin + n) of x. The tags of types up to 8 bytes are alike only for equal elements.
  void read(const AnyTensor& x, std::int64_t begin, std::int64_t n) {
    const void* const from = dflow::detail::element(x, begin);
    if (x.dtype() == DType::string) {
      const auto* const texts = static_cast<const std::string*>(from);
      for (std::int64_t i = 0; i < n; ++i) set(i, std::hash<std::string>()(texts[i]), false);
    } else if (x.dtype() == DType::complex64) {
      read_words<std::uint32_t, 2>(x.dtype(), from, n);
    } else if (x.dtype() == DType::complex128) {
      read_words<std::uint64_t, 2>(x.dtype(), from, n);
    } else if (size_of(x.dtype()) == 1) {
      read_words<std::uint8_t, 1>(x.dtype(), from, n);
    } else if (size_of(x.dtype()) == 2) {
      read_words<std::uint16_t, 1>(x.dtype(), from, n);
    } else if (size_of(x.dtype()) == 4) {
      read_words<std::uint32_t, 1>(x.dtype(), from, n);
    } else {
      read_words<std::uint64_t, 1>(x.dtype(), from, n);
    }
  }

 private:
  void set(std::int64_t i, std::uint64_t tag, bool is_nan) {
    tags[static_cast<std::size_t>(i)] = tag;
    are_nan[static_cast<std::size_t>(i)] = is_nan;
  }

  /// Elements are `parts` words each.
  template <class Word, int parts>
  void read_words(DType dtype, const void* from, std::int64_t n) {
    const auto magnitude = static_cast<Word>(dflow::detail::magnitude_bits(dtype));
    const auto infinity = static_cast<Word>(dflow::detail::infinity_bits(dtype));
    for (std::int64_t i = 0; i < n; ++i) {
      Word words[parts];
      std::memcpy(words, static_cast<const std::byte*>(from) + static_cast<std::size_t>(i) * sizeof(words),
                  sizeof(words));
      std::uint64_t tag = 0;
      bool is_nan = false;
      for (const Word word : words) {
        const auto size = static_cast<Word>(word & magnitude);
        tag = std::rotl(tag, 32) * (sizeof(words) > 8 ? 0x9E3779B97F4A7C15u : 1u) ^ (size == 0 ? Word{0} : word);
        is_nan = is_nan || size > infinity;
      }
      set(i, tag, is_nan);
    }
  }
};

/// The distinct elements of a tensor, each with a number, in a hash table with open addresses.
class DistinctElements {
 public:
  explicit DistinctElements(const AnyTensor& elements)
      : elements_(elements), tags_decide_(elements.dtype() != DType::string && size_of(elements.dtype()) <= 8) {}

  /// Where the distinct elements are in the tensor for the first time.
  const std::vector<std::int64_t>& places() const noexcept { return places_; }

  /// The number of the element at `place`, which is the next one if it is new. NaN is always new.
  std::int64_t add(std::uint64_t tag, bool is_nan, std::int64_t place) {
    const auto next = static_cast<std::int64_t>(places_.size());
    if (!is_nan) {
      Slot& slot = slots_[find(tag, elements_, place)];
      if (slot.number >= 0) return slot.number;
      slot = {tag, next};
      if (++num_used_ * 2 > slots_.size()) grow();
    }
    places_.push_back(place);
    return next;
  }

  /// Whether the element of x at `place` equals one that was added.
  bool contains(std::uint64_t tag, bool is_nan, const AnyTensor& x, std::int64_t place) const {
    return !is_nan && slots_[find(tag, x, place)].number >= 0;
  }

  /// Asks for the memory that a later look at the tag will read.
  void prefetch(std::uint64_t tag) const noexcept { __builtin_prefetch(&slots_[home(tag)]); }

 private:
  struct Slot {
    std::uint64_t tag = 0;
    std::int64_t number = -1;  ///< -1: the slot is free
  };

  std::size_t home(std::uint64_t tag) const noexcept {
    return static_cast<std::size_t>(((tag ^ tag >> 32) * 0x9E3779B97F4A7C15u) >> shift_);
  }

  /// The slot of the element of x at `place`, or the free slot that it would have.
  std::size_t find(std::uint64_t tag, const AnyTensor& x, std::int64_t place) const {
    for (std::size_t at = home(tag);; at = (at + 1) & (slots_.size() - 1)) {
      const Slot& slot = slots_[at];
      if (slot.number < 0 || (slot.tag == tag && (tags_decide_ || equals(slot.number, x, place)))) return at;
    }
  }

  bool equals(std::int64_t number, const AnyTensor& x, std::int64_t place) const {
    const void* const a = dflow::detail::element(elements_, places_[static_cast<std::size_t>(number)]);
    const void* const b = dflow::detail::element(x, place);
    if (x.dtype() == DType::string) return *static_cast<const std::string*>(a) == *static_cast<const std::string*>(b);
    return *static_cast<const std::complex<double>*>(a) == *static_cast<const std::complex<double>*>(b);
  }

  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    --shift_;
    for (const Slot& slot : old) {
      if (slot.number < 0) continue;
      std::size_t at = home(slot.tag);
      while (slots_[at].number >= 0) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = slot;
    }
  }

  static constexpr int first_bits = 6;

  const AnyTensor& elements_;
  bool tags_decide_;
  std::vector<std::int64_t> places_;
  std::vector<Slot> slots_ = std::vector<Slot>(std::size_t{1} << first_bits);
  int shift_ = 64 - first_bits;
  std::size_t num_used_ = 0;
};

/// Calls take(place, tag, is_nan) for each element of x.
template <class Take>
void for_each_tag(const AnyTensor& x, const DistinctElements& distinct, const Take& take) {
  constexpr std::size_t ahead = 8;
  ElementTags read;
  for (std::int64_t begin = 0; begin < x.num_elements(); begin += ElementTags::block) {
    const std::int64_t n = std::min(ElementTags::block, x.num_elements() - begin);
    read.read(x, begin, n);
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
      if (i + ahead < static_cast<std::size_t>(n)) distinct.prefetch(read.tags[i + ahead]);
      take(begin + static_cast<std::int64_t>(i), read.tags[i], read.are_nan[i]);
    }
  }
}

/// Fails unless output 1 can hold the positions of x.
void check_positions(KernelContext& context, const AnyTensor& x) {
  if (context.output_dtype(1) == DType::int32 && x.num_elements() > std::numeric_limits<std::int32_t>::max()) {
    context.fail(str_cat("shape ", x.shape().to_string(), " has more elements than int32 counts: ask for int64"));
  }
}

/// Output `o` = the elements of x at the places.
void put_elements(KernelContext& context, int o, const AnyTensor& x, std::span<const std::int64_t> places) {
  AnyTensor& y = context.allocate_output(o, {static_cast<std::int64_t>(places.size())});
  dflow::detail::copy_named_rows(context, x, 1, places, y);
}

}  // namespace detail

void find_unique(KernelContext& context) {
  const AnyTensor& x = context.input(0);
  dflow::detail::with_inferred_shapes(context, [](std::span<const PartialShape>) {});
  detail::check_positions(context, x);
  detail::DistinctElements distinct(x);
  AnyTensor& positions = context.allocate_output(1, x.shape());
  visit_dtype<IndexTypes>(positions.dtype(), [&]<class I>() {
    I* const to = static_cast<I*>(positions.raw_data());
    detail::for_each_tag(x, distinct, [&](std::int64_t place, std::uint64_t tag, bool is_nan) {
      to[place] = static_cast<I>(distinct.add(tag, is_nan, place));
    });
    if (context.num_outputs() < 3) return;
    const std::span<I> counts =
        context.allocate_output<I>(2, {static_cast<std::int64_t>(distinct.places().size())}).span();
    std::ranges::fill(counts, I{0});
    for (std::int64_t i = 0; i < x.num_elements(); ++i) ++counts[static_cast<std::size_t>(to[i])];
  });
  detail::put_elements(context, 0, x, distinct.places());
}

void find_difference(KernelContext& context) {
  const AnyTensor &x = context.input(0), &y = context.input(1);
  dflow::detail::with_inferred_shapes(context, [](std::span<const PartialShape>) {});
  detail::check_positions(context, x);
  detail::DistinctElements distinct(y);
  detail::for_each_tag(y, distinct, [&](std::int64_t place, std::uint64_t tag, bool is_nan) {
    if (!is_nan) static_cast<void>(distinct.add(tag, is_nan, place));
  });
  std::vector<std::int64_t> kept;
  detail::for_each_tag(x, distinct, [&](std::int64_t place, std::uint64_t tag, bool is_nan) {
    if (!distinct.contains(tag, is_nan, x, place)) kept.push_back(place);
  });
  detail::put_elements(context, 0, x, kept);
  AnyTensor& positions = context.allocate_output(1, {static_cast<std::int64_t>(kept.size())});
  visit_dtype<IndexTypes>(positions.dtype(), [&]<class I>() {
    std::ranges::transform(kept, positions.span<I>().begin(), [](std::int64_t place) { return static_cast<I>(place); });
  });
}

}  // namespace dflow::cpu
