#pragma once

#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/cpu/parsing/decode_raw.hpp>
#include <dflow/ops/data_flow/partition.hpp>

namespace dflow::detail {

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
                         name(context.node().types[0])));
  }
  return static_cast<std::int64_t>(length / size);
}

void copy_swapped(const char* from, std::int64_t count, std::size_t size, char* to) noexcept {
  for (const char* const end = from + count * static_cast<std::int64_t>(size); from != end; from += size, to += size) {
    std::reverse_copy(from, from + size, to);
  }
}

}  // namespace dflow::detail
