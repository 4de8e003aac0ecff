#pragma once

#include <dflow/core/broadcast.hpp>
#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/cpu/strings/substr.hpp>

#include <algorithm>
#include <limits>
#include <utility>

namespace dflow {

namespace detail {

bool begins_character(char c) noexcept { return (static_cast<unsigned char>(c) & 0xc0u) != 0x80u; }

std::size_t units_of(std::string_view text, TextUnit unit) noexcept {
  if (unit == TextUnit::byte) return text.size();
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

/// The byte where unit `count` begins, or the end. The first unit begins with the text.
std::size_t byte_of_unit(std::string_view text, std::size_t count, TextUnit unit) noexcept {
  if (unit == TextUnit::byte || count == 0) return std::min(count, text.size());
  std::size_t at = 0, units = 0;
  for (; at < text.size(); ++at) {
    if (begins_character(text[at]) && units++ == count) break;
  }
  return at;
}

/// Step through a broadcast tensor by the position in the result.
std::int64_t offset_in(const std::array<std::int64_t, max_rank>& strides, const Shape& shape,
                       std::int64_t position) noexcept {
  std::int64_t offset = 0;
  for (int i = shape.rank(); i-- > 0; position /= shape[i]) {
    offset += position % shape[i] * strides[static_cast<std::size_t>(i)];
  }
  return offset;
}

std::int64_t integer_at(const AnyTensor& integers, std::int64_t i) noexcept {
  return integers.dtype() == DType::int32 ? Tensor<std::int32_t>::of(integers).data()[i]
                                          : Tensor<std::int64_t>::of(integers).data()[i];
}

}  // namespace detail

void Kernel<Substr, Cpu>::operator()(KernelContext& context) const {
  const Tensor<std::string>& texts = context.input<std::string>(0);
  const Shape shape = detail::inferred_shape(context);
  Tensor<std::string>& parts = context.allocate_output<std::string>(0, shape);
  const auto text_strides = broadcast_strides(texts.shape(), shape),
             pos_strides = broadcast_strides(context.input(1).shape(), shape);
  detail::each_text(context, shape.num_elements(), [&](std::int64_t i) {
    std::string_view text = texts.data()[detail::offset_in(text_strides, shape, i)];
    const std::int64_t where = detail::offset_in(pos_strides, shape, i),
                       pos = detail::integer_at(context.input(1), where),
                       length = detail::integer_at(context.input(2), where);
    const auto units = static_cast<std::int64_t>(detail::units_of(text, attrs.unit));
    if (pos > units || pos < -units) {
      context.fail(str_cat("pos ", pos, " is out of range for string", detail::index_to_string(i, shape), " = ",
                           detail::quoted_start(text), " of ", units,
                           attrs.unit == TextUnit::byte ? " bytes" : " characters"));
    }
    const std::int64_t from = pos < 0 ? pos + units : pos, rest = units - from,
                       below_0 = attrs.unit == TextUnit::byte ? rest : 0;
    text.remove_prefix(detail::byte_of_unit(text, static_cast<std::size_t>(from), attrs.unit));
    parts.data()[i] =
        text.substr(0, detail::byte_of_unit(
                           text, static_cast<std::size_t>(length < 0 ? below_0 : std::min(length, rest)), attrs.unit));
  });
}

void Kernel<StringLength, Cpu>::operator()(KernelContext& context, const Tensor<std::string>& texts,
                                           Tensor<std::int32_t>& lengths) const {
  detail::each_text(context, texts.num_elements(), [&](std::int64_t i) {
    const std::size_t units = detail::units_of(texts.data()[i], attrs.unit);
    if (!std::in_range<std::int32_t>(units)) {
      context.fail(str_cat("string", detail::index_to_string(i, texts.shape()), " is ", units, " units long"));
    }
    lengths.data()[i] = static_cast<std::int32_t>(units);
  });
}

}  // namespace dflow
