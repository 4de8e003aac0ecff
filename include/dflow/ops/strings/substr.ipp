#pragma once

#include <dflow/core/broadcast.hpp>
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

Output<std::int32_t> string_length(const Output<std::string>& texts, StringLength::Attrs attrs, const At& at) {
  return Output<std::int32_t>::unchecked(build<StringLength>({texts}, attrs, at));
}

}  // namespace dflow
