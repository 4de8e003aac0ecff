#pragma once

#include <dflow/core/broadcast.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/strings/substr.hpp>

#include <optional>

namespace dflow {

void Substr::infer(InferContext& context) {
  const PartialShape& pos = context.input(1);
  const PartialShape& length = context.input(2);
  if (!pos.is_compatible_with(length)) {
    context.fail(str_cat("pos and len must have the same shape, got ", pos.to_string(), " and ", length.to_string()));
  }
  const std::optional<PartialShape> shape = broadcast_shapes(context.input(0), context.merge(pos, length));
  if (!shape) context.fail("pos does not broadcast with the texts");
  context.set_output(0, *shape);
}

void StringLength::infer(InferContext& context) { context.set_output(0, context.input(0)); }

Output<std::string> substr(const Output<std::string>& texts, std::int64_t pos, std::int64_t length, Substr::Attrs attrs,
                           const At& at) {
  const AnyOutput edge = texts;
  GraphStore& graph = detail::graph_of({&edge, 1}, Substr::name, at);
  const At here{.where = at.where};
  return Output<std::string>::unchecked(
      build<Substr>({edge, detail::any_constant(graph, Tensor<std::int64_t>(pos), here),
                     detail::any_constant(graph, Tensor<std::int64_t>(length), here)},
                    attrs, at));
}

Output<std::int32_t> string_length(const Output<std::string>& texts, StringLength::Attrs attrs, const At& at) {
  return Output<std::int32_t>::unchecked(build<StringLength>({texts}, attrs, at));
}

}  // namespace dflow
