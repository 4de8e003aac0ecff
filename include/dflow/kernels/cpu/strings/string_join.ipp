#pragma once

#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/cpu/strings/string_join.hpp>

#include <algorithm>
#include <array>
#include <span>
#include <vector>

namespace dflow {

void Kernel<StringJoin, Cpu>::operator()(KernelContext& context) const {
  const std::span<std::string> joined = context.allocate_output<std::string>(0, detail::inferred_shape(context)).span();
  detail::each_text(context, static_cast<std::int64_t>(joined.size()), [&](std::int64_t i) {
    std::string& text = joined[static_cast<std::size_t>(i)];
    for (int k = 0; k < context.num_inputs(); ++k) {
      const Tensor<std::string>& input = context.input<std::string>(k);
      if (k > 0) text += attrs.separator;
      text += input.data()[input.rank() == 0 ? 0 : i];
    }
  });
}

namespace detail {

/// The elements of a tensor by their distance from the first, along the dimensions `axes`. The last of `axes` runs
/// fastest.
std::vector<std::int64_t> offsets_along(const Shape& shape, std::span<const int> axes) {
  std::vector<std::int64_t> offsets{0};
  for (const int axis : axes) {
    std::int64_t step = 1;
    for (int i = axis + 1; i < shape.rank(); ++i) step *= shape[i];
    std::vector<std::int64_t> longer;
    longer.reserve(offsets.size() * static_cast<std::size_t>(shape[axis]));
    for (const std::int64_t offset : offsets) {
      for (std::int64_t i = 0; i < shape[axis]; ++i) longer.push_back(offset + i * step);
    }
    offsets = std::move(longer);
  }
  return offsets;
}

}  // namespace detail

void Kernel<ReduceJoin, Cpu>::operator()(KernelContext& context) const {
  const Tensor<std::string>& inputs = context.input<std::string>(0);
  const std::span<std::string> joined = context.allocate_output<std::string>(0, detail::inferred_shape(context)).span();
  std::array<bool, max_rank> is_joined{};
  std::vector<int> joined_axes, kept_axes;
  for (const std::int32_t axis : context.input<std::int32_t>(1).span()) {
    joined_axes.push_back(axis < 0 ? axis + inputs.rank() : axis);
    is_joined[static_cast<std::size_t>(joined_axes.back())] = true;
  }
  std::reverse(joined_axes.begin(), joined_axes.end());
  for (int i = 0; i < inputs.rank(); ++i) {
    if (!is_joined[static_cast<std::size_t>(i)]) kept_axes.push_back(i);
  }
  if (joined.empty() || inputs.num_elements() == 0) return;
  const std::vector<std::int64_t> begins = detail::offsets_along(inputs.shape(), kept_axes),
                                  parts = detail::offsets_along(inputs.shape(), joined_axes);
  context.pool().parallel_for(static_cast<std::int64_t>(joined.size()),
                              detail::text_cost_ns * static_cast<double>(parts.size()),
                              [&](std::int64_t begin, std::int64_t end) {
                                for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
                                  for (const std::int64_t part : parts) {
                                    if (part != parts.front()) joined[i] += attrs.separator;
                                    joined[i] += inputs.data()[begins[i] + part];
                                  }
                                }
                              });
}

}  // namespace dflow
