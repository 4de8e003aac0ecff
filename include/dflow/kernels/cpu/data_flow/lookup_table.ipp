#pragma once

#include <dflow/kernels/cpu/data_flow/lookup_table.hpp>
#include <dflow/kernels/state/device_files.hpp>
#include <dflow/state/tables/table_file.hpp>

#include <utility>

namespace dflow {

namespace detail {

/// Per key.
inline constexpr double lookup_cost_ns = 40;

LookupImportKernel::LookupImportKernel(const KernelInit& init)
    : is_initialization(init.node.op == &op_def<InitializeTable>) {}
double LookupImportKernel::cost_ns(const KernelInit& init) const {
  return 200 + estimated_elements(init.inputs[1]) * 2 * lookup_cost_ns;
}
void LookupImportKernel::operator()(KernelContext& context) const {
  LookupTableState& table = context.resource<LookupTableState>(0);
  if (is_initialization && table.kind().is_mutable) context.fail(str_cat(table.debug_string(), " is not filled once"));
  table.import(context.input(1), context.input(2));
}

}  // namespace detail

double Kernel<LookupTableFind, Cpu>::cost_ns(const KernelInit& init) const {
  return 200 + estimated_elements(init.inputs[1]) * detail::lookup_cost_ns;
}
void Kernel<LookupTableFind, Cpu>::operator()(KernelContext& context) const {
  context.set_output(
      0, context.resource<LookupTableState>(0).find(context.input(1), context.input(2), context.output_allocator(0)));
}

double Kernel<LookupTableInsert, Cpu>::cost_ns(const KernelInit& init) const {
  return 200 + estimated_elements(init.inputs[1]) * 2 * detail::lookup_cost_ns;
}
void Kernel<LookupTableInsert, Cpu>::operator()(KernelContext& context) const {
  context.resource<LookupTableState>(0).insert(context.input(1), context.input(2));
}

void Kernel<LookupTableRemove, Cpu>::operator()(KernelContext& context) const {
  context.resource<LookupTableState>(0).remove(context.input(1));
}

void Kernel<LookupTableExport, Cpu>::operator()(KernelContext& context) const {
  const LookupTableState& table = context.resource<LookupTableState>(0);
  if (table.kind().key != context.output_dtype(0) || table.kind().value != context.output_dtype(1)) {
    context.fail(str_cat(table.debug_string(), " has other element types than are taken out"));
  }
  auto [keys, values] = table.export_all(context.output_allocator(0));
  context.set_output(0, std::move(keys));
  context.set_output(1, std::move(values));
}

void detail::fill_table_from_file(KernelContext& context) {
  const InitializeTableFromTextFile::Attrs& attrs = context.node().attrs_as<InitializeTableFromTextFile>();
  LookupTableState& table = context.resource<LookupTableState>(0);
  if (table.kind().is_mutable) context.fail(str_cat(table.debug_string(), " is not filled once"));
  const Tensor<std::string>& filename = context.input<std::string>(1);
  if (filename.rank() != 0) context.fail("the name of the file must be a scalar");
  const auto entries = read_table_file(*device_files(context.device()), *filename.data(),
                                       {.key_index = attrs.key_index,
                                        .value_index = attrs.value_index,
                                        .max_lines = attrs.vocab_size,
                                        .delimiter = attrs.delimiter[0],
                                        .offset = attrs.offset},
                                       table.kind().key, table.kind().value);
  try {
    table.import(entries.keys, entries.values);
  } catch (const Error& error) {
    throw_error(error.status().with_prefix(str_cat(*filename.data(), ": ")));
  }
}

}  // namespace dflow
