#pragma once

#include <dflow/ops/array/constant.hpp>

namespace dflow {

void Const::infer(InferContext& context) {
  const AnyTensor& value = context.attrs<Const>().value;
  if (!value.is_initialized()) context.fail("a constant needs a value");
  if (value.dtype() != context.type_arg(0)) {
    context.fail(str_cat("the constant is declared ", dtype_name(context.type_arg(0)), " but holds ",
                         dtype_name(value.dtype())));
  }
  context.set_output(0, value.shape());
}

void Placeholder::infer(InferContext& context) { context.set_output(0, context.attrs<Placeholder>().shape); }

void PlaceholderWithDefault::infer(InferContext& context) {
  const PartialShape& shape = context.attrs<PlaceholderWithDefault>().shape;
  static_cast<void>(context.merge(shape, context.input(0)));
  context.set_output(0, shape);
}

void PlaceholderWithDefault::gradient(GradientContext& context) { context.set_dx(0, context.dy()); }

PlaceholderShape::PlaceholderShape(std::initializer_list<std::int64_t> dims, std::source_location where) {
  try {
    shape_ = PartialShape(dims);
  } catch (const Error& error) {
    throw_error(error.status().with_node(Placeholder::name, "").with_location(where));
  }
}

AnyOutput detail::any_constant(GraphStore& graph, AnyTensor value, const At& at) {
  if (!value.is_initialized()) {
    throw_error(Status::invalid_argument("the tensor is empty: it has neither shape nor elements")
                    .with_node(Const::name, at.name)
                    .with_location(at.where));
  }
  const TypeArgs type = one_type(value.dtype());
  return build<Const>(graph, {}, {.value = std::move(value)}, at, type);
}

AnyOutput detail::constant_beside(const AnyOutput& edge, AnyTensor value, const std::source_location& where) {
  if (!edge.is_valid() || edge.is_dangling()) return {};
  return any_constant(*edge.graph(), std::move(value), {.name = {}, .where = where});
}

void detail::throw_literal_out_of_range(std::uint64_t value, bool is_unsigned, DType dtype,
                                        const std::source_location& where) {
  const std::string number = is_unsigned ? str_cat(value) : str_cat(static_cast<std::int64_t>(value));
  throw_error(Status::invalid_argument(str_cat("the number ", number, " is out of the range of ", dtype_name(dtype)))
                  .with_node(Const::name, "")
                  .with_location(where));
}

void detail::throw_literal_out_of_range(double value, DType dtype, const std::source_location& where) {
  throw_error(Status::invalid_argument(str_cat("the number ", value, " is out of the range of ", dtype_name(dtype)))
                  .with_node(Const::name, "")
                  .with_location(where));
}

void detail::require_constant(const Status& status, const At& at) {
  if (!status.ok()) throw_error(status.with_node(Const::name, at.name).with_location(at.where));
}

AnyOutput detail::any_placeholder(GraphStore& graph, DType dtype, const PartialShape& shape, const At& at) {
  return build<Placeholder>(graph, {}, {.shape = shape}, at, one_type(dtype));
}

}  // namespace dflow
