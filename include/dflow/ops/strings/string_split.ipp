#pragma once

#include <dflow/ops/strings/string_split.hpp>

namespace dflow {

namespace detail {

void infer_split(InferContext& context) {
  static_cast<void>(context.with_rank(0, 1));
  static_cast<void>(context.with_rank(1, 0));
  context.set_output(0, PartialShape{dynamic, 2});
  context.set_output(1, PartialShape{dynamic});
  context.set_output(2, Shape{2});
}

SparseOutput<std::string> split_of(const BuiltNode& node) {
  return {Output<std::int64_t>::unchecked(node.output(0)), Output<std::string>::unchecked(node.output(1)),
          Output<std::int64_t>::unchecked(node.output(2))};
}

}  // namespace detail

void StringSplit::infer(InferContext& context) { detail::infer_split(context); }
void StringSplitV2::infer(InferContext& context) { detail::infer_split(context); }

SparseOutput<std::string> string_split(const Output<std::string>& input, StringSplit::Attrs attrs, const At& at) {
  return string_split(input, " ", attrs, at);
}

SparseOutput<std::string> string_split_v2(const Output<std::string>& input, StringSplitV2::Attrs attrs, const At& at) {
  return string_split_v2(input, "", attrs, at);
}

}  // namespace dflow
