#pragma once

#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/graph/attr_value.hpp>
#include <dflow/graph/graph_def.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <utility>
#include <variant>

/// Code that the two written forms of a GraphDef share.
namespace dflow::detail {

/// How many shapes the lists of a graph may still have.
class ShapeAllowance {
 public:
  void take(std::size_t count) {
    if (count > left_) {
      throw_error(Status::out_of_range(str_cat("the graph lists more than ", GraphDef::max_listed_shapes, " shapes")));
    }
    left_ -= count;
  }

 private:
  std::size_t left_ = GraphDef::max_listed_shapes;
};

/// Errors: InvalidArgument for elements that have no meaning outside of the process.
inline void require_savable(const AnyTensor& tensor) {
  if (tensor.is_initialized() && !is_element(tensor.dtype())) {
    throw_error(Status::invalid_argument(str_cat("a tensor of ", dtype_name(tensor.dtype()), " cannot be saved")));
  }
}

inline std::span<const std::byte> bytes_of(const AnyTensor& tensor) {
  return {static_cast<const std::byte*>(tensor.raw_data()), tensor.raw_data() == nullptr ? 0 : tensor.bytes()};
}

/// A tensor of numbers from as many bytes as it has; throws with `code` where they do not fit.
inline AnyTensor tensor_of_bytes(DType dtype, const Shape& shape, std::span<const std::byte> bytes, Code code) {
  if (num_bytes(dtype, shape) != bytes.size()) {
    throw_error(Status(code, str_cat(bytes.size(), " bytes for a tensor of ", dtype_name(dtype), shape.to_string())));
  }
  if (dtype == DType::boolean &&
      std::any_of(bytes.begin(), bytes.end(), [](std::byte b) { return b > std::byte{1}; })) {
    throw_error(Status(code, "a boolean that is neither 0 nor 1"));
  }
  AnyTensor tensor(dtype, shape);
  if (!bytes.empty()) std::memcpy(tensor.raw_data(), bytes.data(), bytes.size());
  return tensor;
}

/// Calls `f.template operator()<T>()` for the alternative of an AttrValue with that index.
template <class F, std::size_t... I>
void with_attr_type(std::size_t index, F&& f, std::index_sequence<I...>) {
  static_cast<void>(((index == I && (f.template operator()<std::variant_alternative_t<I, AttrValue>>(), true)) || ...));
}

}  // namespace dflow::detail
