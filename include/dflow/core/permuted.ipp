#pragma once

#include <dflow/base/status.hpp>
#include <dflow/core/permuted.hpp>
#include <dflow/core/tensor.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace dflow {

AnyTensor permuted(const AnyTensor& tensor, std::span<const int> axes) {
  std::array<bool, max_rank> is_seen{};
  const bool is_order =
      static_cast<int>(axes.size()) == tensor.rank() && std::ranges::all_of(axes, [&](int axis) {
        return axis >= 0 && axis < tensor.rank() && !std::exchange(is_seen[static_cast<std::size_t>(axis)], true);
      });
  if (!is_order) {
    std::string list;
    for (const int axis : axes) list += str_cat(list.empty() ? "" : ", ", axis);
    throw_error(Status::invalid_argument(str_cat("a tensor of shape ", tensor.shape().to_string(),
                                                 " does not have the dimensions {", list, "}, each once")));
  }
  const auto strides = row_major_strides(tensor.shape());
  std::array<std::int64_t, max_rank> extents{}, steps{}, index{};
  for (std::size_t d = 0; d < axes.size(); ++d) {
    extents[d] = tensor.dim(axes[d]);
    steps[d] = strides[static_cast<std::size_t>(axes[d])];
  }
  AnyTensor result(tensor.dtype(), Shape(std::span<const std::int64_t>(extents.data(), axes.size())));
  visit_dtype<AllTypes>(tensor.dtype(), [&]<class T>() {
    const T* source = tensor.span<T>().data();
    for (T& target : result.span<T>()) {
      target = *source;
      for (std::size_t d = axes.size(); d-- > 0;) {
        source += steps[d];
        if (++index[d] < extents[d]) break;
        source -= steps[d] * extents[d];
        index[d] = 0;
      }
    }
  });
  return result;
}

}  // namespace dflow
