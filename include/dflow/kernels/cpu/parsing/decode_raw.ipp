#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/cpu/parsing/decode_raw.hpp>
#include <dflow/ops/data_flow/partition.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>

namespace dflow {

namespace detail {

/// How many numbers of `size` bytes each text holds. Errors: InvalidArgument if they differ, or it is no whole number.
std::int64_t numbers_per_text(const KernelContext& context, const Tensor<std::string>& texts, std::size_t size) {
  with_inferred_shapes(context, [](std::span<const PartialShape>) {});
  if (texts.num_elements() == 0) return 0;
  const std::size_t length = texts.data()->size();
  for (std::int64_t i = 1; i < texts.num_elements(); ++i) {
    if (texts.data()[i].size() == length) continue;
    context.fail(str_cat("all texts must be as long, but that at ", index_to_string(i, texts.shape()), " has ",
                         texts.data()[i].size(), " bytes, and the first ", length));
  }
  if (length % size != 0) {
    context.fail(str_cat("texts of ", length, " bytes are no multiple of ", size, ", the size of ",
                         dtype_name(context.node().types[0])));
  }
  return static_cast<std::int64_t>(length / size);
}

/// Copies `count` numbers of `size` bytes each with their bytes in reverse order.
void copy_swapped(const char* from, std::int64_t count, std::size_t size, char* to) noexcept {
  for (const char* const end = from + count * static_cast<std::int64_t>(size); from != end; from += size, to += size) {
    std::reverse_copy(from, from + size, to);
  }
}

}  // namespace detail

void Kernel<DecodeRaw, Cpu>::operator()(KernelContext& context) const {
  const Tensor<std::string>& texts = context.input<std::string>(0);
  const DType dtype = context.output_dtype(0);
  const std::size_t size = size_of(dtype);
  const std::int64_t count = detail::numbers_per_text(context, texts, size);
  AnyTensor& numbers = context.allocate_output(0, texts.shape().concatenated(Shape{count}));
  if (count == 0) return;
  // The two parts of a complex number are reversed separately.
  const std::size_t parts = is_complex(dtype) ? 2 : 1;
  const bool is_swapped = attrs.little_endian != (std::endian::native == std::endian::little);
  const std::size_t bytes = static_cast<std::size_t>(count) * size;
  const double cost_ns = static_cast<double>(bytes) * (is_swapped ? 1 : 0.1) + 5;
  context.pool().parallel_for(texts.num_elements(), cost_ns, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const char* const from = texts.data()[i].data();
      char* const to = static_cast<char*>(numbers.raw_data()) + static_cast<std::size_t>(i) * bytes;
      if (dtype == DType::boolean) {
        std::transform(from, from + count, reinterpret_cast<bool*>(to), [](char byte) { return byte != 0; });
      } else if (is_swapped) {
        detail::copy_swapped(from, count * static_cast<std::int64_t>(parts), size / parts, to);
      } else {
        std::memcpy(to, from, bytes);
      }
    }
  });
}

}  // namespace dflow
