#pragma once

#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/parsing/decode_csv.hpp>

#include <algorithm>
#include <functional>

namespace dflow {

void DecodeCsv::infer(InferContext& context) {
  const Attrs& attrs = context.attrs<DecodeCsv>();
  if (attrs.OUT_TYPE.empty()) context.fail("there are no columns to read");
  if (attrs.field_delim.size() != 1 || attrs.field_delim.find_first_of("\"\r\n") != std::string::npos) {
    context.fail("field_delim must be one character, and no quote or line break");
  }
  const std::vector<std::int64_t>& columns = attrs.select_cols;
  const bool is_ascending = std::adjacent_find(columns.begin(), columns.end(), std::greater_equal<>()) == columns.end();
  if (!columns.empty() && (columns.front() < 0 || !is_ascending)) {
    context.fail("select_cols must be positions in ascending order");
  }
  if (!columns.empty() && columns.size() != attrs.OUT_TYPE.size()) {
    context.fail(str_cat("select_cols names ", columns.size(), " columns, and there are ", attrs.OUT_TYPE.size()));
  }
  for (int i = 0; i < context.num_outputs(); ++i) {
    const DType dtype = attrs.OUT_TYPE[static_cast<std::size_t>(i)];
    if (!in_mask(dtype, dtype_mask<CsvTypes>)) context.fail(str_cat("there are no fields of type ", dtype_name(dtype)));
    const PartialShape& value = context.input(1 + i);
    if (value.has_rank() && (value.rank() > 1 || (value.rank() == 1 && value[0] > 1))) {
      context.fail(str_cat("field ", i, " has defaults of shape ", value.to_string(), ", and must have one or none"));
    }
    context.set_output(i, context.input(0));
  }
}

BuiltNode detail::build_decode_csv(const Output<std::string>& records, std::vector<AnyTensor> defaults,
                                   const CsvFormat& format, const At& at) {
  std::vector<AnyOutput> inputs{records};
  GraphStore& graph = graph_of(inputs, DecodeCsv::name, at);
  std::vector<DType> dtypes;
  for (AnyTensor& value : defaults) {
    dtypes.push_back(value.dtype());
    inputs.push_back(any_constant(graph, std::move(value), {.where = at.where}));
  }
  return build<DecodeCsv>(std::span<const AnyOutput>(inputs),
                          {.OUT_TYPE = std::move(dtypes),
                           .field_delim = std::string(format.field_delim),
                           .use_quote_delim = format.use_quote_delim,
                           .na_value = std::string(format.na_value),
                           .select_cols = format.select_cols},
                          at);
}

}  // namespace dflow
