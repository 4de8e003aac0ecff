#pragma once

#include <dflow/io/records/csv_record.hpp>
#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/cpu/parsing/decode_csv.hpp>

#include <utility>
#include <vector>

namespace dflow {

void Kernel<DecodeCsv, Cpu>::operator()(KernelContext& context) const {
  detail::with_inferred_shapes(context, [](std::span<const PartialShape>) {});
  std::vector<AnyTensor> defaults;
  for (int i = 1; i < context.num_inputs(); ++i) defaults.push_back(context.input(i));
  std::vector<AnyTensor> columns = decode_csv_records(context.input<std::string>(0), defaults,
                                                      {.separator = attrs.field_delim[0],
                                                       .has_quotes = attrs.use_quote_delim,
                                                       .missing = attrs.na_value,
                                                       .selected = attrs.select_cols});
  for (int i = 0; i < context.num_outputs(); ++i) {
    context.set_output(i, std::move(columns[static_cast<std::size_t>(i)]));
  }
}

}  // namespace dflow
