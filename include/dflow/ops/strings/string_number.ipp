#pragma once

#include <dflow/ops/strings/string_number.hpp>

namespace dflow {

void StringToNumber::infer(InferContext& context) { context.set_output(0, context.input(0)); }

void AsString::infer(InferContext& context) {
  const Attrs& attrs = context.attrs<AsString>();
  const DType dtype = context.type_arg(0);
  const bool has_point = is_floating(dtype) || is_complex(dtype);
  if (attrs.scientific && attrs.shortest) context.fail("cannot be both scientific and shortest");
  if (!has_point && dtype != DType::string) {
    if (attrs.scientific || attrs.shortest)
      context.fail(str_cat("scientific and shortest are no forms of ", dtype_name(dtype)));
    if (attrs.precision > -1) context.fail(str_cat("precision is nothing that ", dtype_name(dtype), " has"));
  }
  if (attrs.width > max_width || attrs.precision > max_width) {
    context.fail(str_cat("width ", attrs.width, " and precision ", attrs.precision, " may be ", max_width, " at most"));
  }
  if (attrs.fill.size() > 1) context.fail(str_cat("fill '", attrs.fill, "' is more than one character"));
  if (attrs.fill.find_first_not_of("0-+ #") != std::string::npos) {
    context.fail(str_cat("fill '", attrs.fill, "' is none of '0', '-', '+', ' ' and '#'"));
  }
  context.set_output(0, context.input(0));
}

}  // namespace dflow
