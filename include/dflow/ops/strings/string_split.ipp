#pragma once

#include <dflow/ops/array/constant.hpp>
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

AnyOutput text_constant_beside(const Output<std::string>& edge, std::string_view text, const At& at) {
  const AnyOutput beside = edge;
  GraphStore& graph = graph_of({&beside, 1}, StringSplit::name, at);
  return any_constant(graph, Tensor<std::string>(std::string(text)), {.where = at.where});
}

}  // namespace detail

void StringSplit::infer(InferContext& context) { detail::infer_split(context); }
void StringSplitV2::infer(InferContext& context) { detail::infer_split(context); }

SparseOutput<std::string> string_split(const Output<std::string>& input, const Output<std::string>& delimiter,
                                       StringSplit::Attrs attrs, const At& at) {
  return detail::split_of(build<StringSplit>({input, delimiter}, attrs, at));
}

SparseOutput<std::string> string_split(const Output<std::string>& input, std::string_view delimiter,
                                       StringSplit::Attrs attrs, const At& at) {
  return detail::split_of(build<StringSplit>({input, detail::text_constant_beside(input, delimiter, at)}, attrs, at));
}

SparseOutput<std::string> string_split_v2(const Output<std::string>& input, const Output<std::string>& separator,
                                          StringSplitV2::Attrs attrs, const At& at) {
  return detail::split_of(build<StringSplitV2>({input, separator}, attrs, at));
}

SparseOutput<std::string> string_split_v2(const Output<std::string>& input, std::string_view separator,
                                          StringSplitV2::Attrs attrs, const At& at) {
  return detail::split_of(build<StringSplitV2>({input, detail::text_constant_beside(input, separator, at)}, attrs, at));
}

}  // namespace dflow
