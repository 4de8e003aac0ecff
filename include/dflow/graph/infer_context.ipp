#pragma once

#include <dflow/graph/infer_context.hpp>

namespace dflow {

std::optional<std::vector<std::int64_t>> InferContext::value_as_integers(int i) const {
  const AnyTensor* tensor = value(i);
  if (tensor == nullptr) return std::nullopt;
  std::vector<std::int64_t> integers;
  integers.reserve(static_cast<std::size_t>(tensor->num_elements()));
  if (tensor->dtype() == DType::int32) {
    for (const std::int32_t v : tensor->span<std::int32_t>()) integers.push_back(v);
  } else if (tensor->dtype() == DType::int64) {
    for (const std::int64_t v : tensor->span<std::int64_t>()) integers.push_back(v);
  } else {
    return std::nullopt;
  }
  return integers;
}

std::optional<PartialShape> InferContext::value_as_shape(int i) const {
  const std::optional<std::vector<std::int64_t>> integers = value_as_integers(i);
  if (!integers) return values_.value_as_shape(i);
  try {
    return PartialShape(std::span<const std::int64_t>(*integers));
  } catch (const Error& error) {
    fail(str_cat("input ", i, " is no shape: ", error.status().message()));
  }
}

PartialShape InferContext::with_rank(int i, int rank) const {
  const PartialShape& shape = input(i);
  if (!shape.has_rank()) return PartialShape::unknown(rank);
  if (shape.rank() != rank) fail(str_cat("input ", i, " must have rank ", rank, ", got shape ", shape.to_string()));
  return shape;
}

PartialShape InferContext::with_rank_at_least(int i, int rank) const {
  const PartialShape& shape = input(i);
  if (shape.has_rank() && shape.rank() < rank) {
    fail(str_cat("input ", i, " must have rank ", rank, " or more, got shape ", shape.to_string()));
  }
  return shape;
}

PartialShape InferContext::merge(const PartialShape& a, const PartialShape& b) const {
  if (!a.is_compatible_with(b)) fail(str_cat("shapes ", a.to_string(), " and ", b.to_string(), " do not agree"));
  return a.merged_with(b);
}

std::int64_t InferContext::merge_dim(std::int64_t a, std::int64_t b) const {
  if (a == dynamic) return b;
  if (b != dynamic && a != b) fail(str_cat("dimensions ", a, " and ", b, " do not agree"));
  return a;
}

int InferContext::normalize_axis(std::int64_t axis, int rank) const {
  if (axis < -rank || axis >= rank) fail(str_cat("axis ", axis, " is outside [", -rank, ", ", rank, ")"));
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

void InferContext::infer() {
  try {
    node_.op->infer(*this);
  } catch (const Error& error) {
    if (error.code() != Code::invalid_argument || !error.status().op().empty()) throw;
    fail(std::string(error.status().message()));
  }
}

void InferContext::fail(const std::string& message) const {
  std::string text = message;
  if (!inputs_.empty()) {
    text += " (input shapes:";
    for (const PartialShape& shape : inputs_) text += str_cat(" ", shape.to_string());
    text += ")";
  }
  throw_error(
      Status::invalid_argument(std::move(text)).with_node(node_.op->name, node_.name).with_location(node_.where));
}

}  // namespace dflow
