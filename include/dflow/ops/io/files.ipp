#pragma once

#include <dflow/ops/io/files.hpp>

namespace dflow {

void ReadFile::infer(InferContext& context) {
  static_cast<void>(context.with_rank(0, 0));
  context.set_output(0, Shape{});
}
void WriteFile::infer(InferContext& context) {
  static_cast<void>(context.with_rank(0, 0));
  static_cast<void>(context.with_rank(1, 0));
}
void MatchingFiles::infer(InferContext& context) {
  const PartialShape& pattern = context.input(0);
  if (pattern.has_rank() && pattern.rank() > 1) context.fail("patterns are a scalar or a vector");
  context.set_output(0, PartialShape{dynamic});
}

void ImmutableConst::infer(InferContext& context) {
  const PartialShape& shape = context.attrs<ImmutableConst>().shape;
  if (!shape.is_fully_defined()) context.fail(str_cat("shape ", shape.to_string(), " is not known"));
  context.set_output(0, shape);
}

Output<std::string> read_file(const Output<std::string>& filename, const At& at) {
  return Output<std::string>::unchecked(build<ReadFile>({filename}, {}, at).output(0));
}

Output<std::string> matching_files(const Output<std::string>& pattern, const At& at) {
  return Output<std::string>::unchecked(build<MatchingFiles>({pattern}, {}, at).output(0));
}

}  // namespace dflow
