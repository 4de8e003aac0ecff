#pragma once

#include <dflow/base/checked.hpp>
#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/array/index_list.hpp>

#include <algorithm>
#include <optional>
#include <utility>

namespace dflow {

IndexList::IndexList(const AnyTensor& values, detail::IndexTensor) : is_given_(true) {
  if (values.rank() > 1) {
    throw_error(Status::invalid_argument(
        str_cat("a list of integers is a scalar or a vector, got a tensor of shape ", values.shape().to_string())));
  }
  if (values.dtype() == DType::int64) {
    const auto numbers = values.span<std::int64_t>();
    values_.assign(numbers.begin(), numbers.end());
  } else {
    const auto numbers = values.span<std::int32_t>();
    values_.assign(numbers.begin(), numbers.end());
  }
}

void detail::throw_no_index(std::uint64_t value, const std::source_location& where) {
  throw_error(Status::invalid_argument(str_cat(value, " is no axis, extent or position: it does not fit in int64"))
                  .with_location(where));
}

const std::vector<std::int64_t>& IndexList::numbers(std::string_view op, const At& at) const {
  if (is_edge()) {
    throw_error(Status::invalid_argument(str_cat(op, " takes numbers here, and not an edge"))
                    .with_node(op, at.name)
                    .with_location(at.where));
  }
  return values_;
}

DType IndexList::dtype() const {
  if (edge_.is_valid()) return edge_.dtype();
  for (const std::int64_t value : values_) {
    if (!std::in_range<std::int32_t>(value)) return DType::int64;
  }
  return DType::int32;
}

AnyOutput IndexList::edge(GraphStore& graph, DType dtype, const At& at) const {
  if (edge_.is_valid()) return edge_;
  const Shape shape{static_cast<std::int64_t>(values_.size())};
  const At here{.where = at.where};
  if (dtype == DType::int64) return detail::any_constant(graph, Tensor<std::int64_t>(shape, values_), here);
  return detail::int32_constant(graph, values_, here);
}

namespace detail {

SmallIntegers::SmallIntegers(const AnyTensor& integers) : size_(static_cast<int>(integers.num_elements())) {
  if (integers.dtype() == DType::int64) {
    std::copy_n(static_cast<const std::int64_t*>(integers.raw_data()), size_, values_.begin());
  } else {
    std::copy_n(static_cast<const std::int32_t*>(integers.raw_data()), size_, values_.begin());
  }
}

std::optional<SmallIntegers> known_integers(const InferContext& context, int i) {
  const AnyTensor* tensor = context.value(i);
  if (tensor == nullptr) return std::nullopt;
  if (tensor->num_elements() > SmallIntegers::max_size) {
    context.fail(str_cat("input ", i, " holds ", tensor->num_elements(), " integers, more than a tensor of up to ",
                         max_rank, " dimensions needs"));
  }
  return SmallIntegers(*tensor);
}

void infer_shape_argument(InferContext& context, int i) {
  const PartialShape dims = context.with_rank(i, 1);
  if (const std::optional<SmallIntegers> known = known_integers(context, i)) {
    if (known->size() > max_rank) context.fail(str_cat("a tensor has at most ", max_rank, " dimensions"));
    for (const std::int64_t dim : *known) {
      if (dim < 0) context.fail(str_cat("dimension ", dim, " is negative"));
    }
    if (!try_product(known->span())) context.fail("the tensor would have more elements than can be counted");
    context.set_output(0, PartialShape(known->span()));
  } else if (const std::optional<PartialShape> shape = context.value_as_shape(i)) {
    context.set_output(0, *shape);
  } else if (dims[0] != dynamic && dims[0] <= max_rank) {
    context.set_output(0, PartialShape::unknown(static_cast<int>(dims[0])));
  }
}

const AnyTensor* constant_value(const AnyOutput& edge) {
  const Node& node = edge.node();
  return node.op->role == OpRole::constant ? &node.attrs_as<Const>().value : nullptr;
}

std::optional<SmallIntegers> constant_integers(const AnyOutput& edge) {
  const AnyTensor* tensor = constant_value(edge);
  if (tensor == nullptr || tensor->num_elements() > SmallIntegers::max_size) return std::nullopt;
  return SmallIntegers(*tensor);
}

AnyOutput int32_constant(GraphStore& graph, std::int32_t value, const At& at) {
  return any_constant(graph, Tensor<std::int32_t>(value), at);
}

AnyOutput int32_constant(GraphStore& graph, std::span<const std::int64_t> values, const At& at) {
  Tensor<std::int32_t> tensor({static_cast<std::int64_t>(values.size())});
  std::int32_t* to = tensor.data();
  for (const std::int64_t value : values) {
    if (!std::in_range<std::int32_t>(value)) {
      throw_error(Status::invalid_argument(str_cat(value, " does not fit in int32"))
                      .with_location(graph.scope().where.value_or(at.where)));
    }
    *to++ = static_cast<std::int32_t>(value);
  }
  return any_constant(graph, tensor, at);
}

}  // namespace detail

}  // namespace dflow
