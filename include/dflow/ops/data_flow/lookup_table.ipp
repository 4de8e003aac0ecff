#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/op/build_on.hpp>
#include <dflow/ops/data_flow/lookup_table.hpp>
#include <dflow/ops/data_flow/queue.ipp>

#include <optional>

namespace dflow {

namespace detail {

void infer_table(InferContext& context, const LookupTableAttrs& attrs) {
  if (!in_mask(attrs.key_dtype, dtype_mask<TableKeyTypes>)) {
    context.fail(str_cat("keys are int32, int64 or string, not ", dtype_name(attrs.key_dtype)));
  }
  if (!in_mask(attrs.value_dtype, dtype_mask<AllTypes>)) {
    context.fail(str_cat("there are no values of type ", dtype_name(attrs.value_dtype)));
  }
  if (!attrs.value_shape.is_fully_defined()) {
    context.fail(str_cat("the shape of a value is ", attrs.value_shape.to_string(), ", which is not known"));
  }
  context.set_output(0, Shape{});
}

/// values [k..., value_shape] for keys [k...].
void infer_values(InferContext& context) {
  const PartialShape& keys = context.input(1);
  if (!keys.has_rank()) return;
  const PartialShape values = context.with_rank_at_least(2, keys.rank());
  if (!values.has_rank()) return;
  for (int i = 0; i < keys.rank(); ++i) static_cast<void>(context.merge_dim(keys.dim(i), values.dim(i)));
}

}  // namespace detail

void MutableHashTableOp::infer(InferContext& context) {
  detail::infer_table(context, context.attrs<MutableHashTableOp>());
}
void HashTableOp::infer(InferContext& context) { detail::infer_table(context, context.attrs<HashTableOp>()); }
void LookupTableFind::infer(InferContext& context) {
  context.set_output(0, context.input(1).concatenated(context.input(2)));
}
void LookupTableInsert::infer(InferContext& context) { detail::infer_values(context); }
void LookupTableRemove::infer(InferContext&) {}
void LookupTableSize::infer(InferContext& context) { context.set_output(0, Shape{}); }
void LookupTableExport::infer(InferContext& context) {
  context.set_output(0, PartialShape{dynamic});
  context.set_output(1, PartialShape{dynamic}.concatenated(context.attrs<LookupTableExport>().value_shape));
}
void LookupTableImport::infer(InferContext& context) { detail::infer_values(context); }
void InitializeTable::infer(InferContext& context) {
  static_cast<void>(context.with_rank(1, 1));
  detail::infer_values(context);
}
void InitializeTableFromTextFile::infer(InferContext& context) {
  const auto& attrs = context.attrs<InitializeTableFromTextFile>();
  static_cast<void>(context.with_rank(1, 0));
  if (attrs.key_index < whole_line || attrs.value_index < whole_line) {
    context.fail(str_cat("columns ", attrs.key_index, " and ", attrs.value_index,
                         ": they are counted from 0; -2 is the whole line, -1 its number"));
  }
  if (attrs.vocab_size == 0 || attrs.vocab_size < -1) {
    context.fail(str_cat("vocab_size is ", attrs.vocab_size, ", which is no number of lines"));
  }
  if (attrs.delimiter.size() != 1) context.fail(str_cat("delimiter '", attrs.delimiter, "' is not one character"));
}

namespace detail {

AnyLookupTable::AnyLookupTable(GraphStore& graph, bool is_mutable, DType key, DType value,
                               const LookupTableOptions& options, const At& at)
    : key_(key), value_(value), value_shape_(options.value_shape) {
  const ScopeGuard without_control_inputs = enter_without_control_inputs(graph);
  const LookupTableAttrs attrs{.key_dtype = key,
                               .value_dtype = value,
                               .value_shape = value_shape_,
                               .container = std::string(options.container),
                               .shared_name = std::string(options.shared_name)};
  const At named{.name = at.name.empty() ? options.name : at.name, .where = at.where};
  handle_ = is_mutable ? AnyOutput(build<MutableHashTableOp>(graph, {}, attrs, named))
                       : AnyOutput(build<HashTableOp>(graph, {}, attrs, named));
}

void AnyLookupTable::check_values(const AnyOutput& keys, const AnyOutput& values, std::string_view op,
                                  const At& at) const {
  if (!keys.is_valid() || !values.is_valid()) return;  // the node's errors are better
  const PartialShape wanted = keys.shape().concatenated(value_shape_);
  if (wanted.is_compatible_with(values.shape())) return;
  throw_error(Status::invalid_argument(str_cat("values of shape ", values.shape().to_string(), " for keys ",
                                               keys.shape().to_string(), " of a table with values ",
                                               value_shape_.to_string(), ", wanted ", wanted.to_string()))
                  .with_node(op, at.name)
                  .with_location(at.where));
}

AnyOutput AnyLookupTable::find(const AnyOutput& keys, const AnyOutput& default_value, const At& at) const {
  const ScopeGuard with = enter_beside(handle_, LookupTableFind::name, at);
  if (default_value.is_valid() && !default_value.shape().is_compatible_with(value_shape_)) {
    throw_error(Status::invalid_argument(str_cat("the default value has shape ", default_value.shape().to_string(),
                                                 ", and the table's values ", value_shape_.to_string()))
                    .with_node(LookupTableFind::name, at.name)
                    .with_location(at.where));
  }
  return build<LookupTableFind>({handle_, keys, default_value}, {}, at);
}
Operation AnyLookupTable::insert(const AnyOutput& keys, const AnyOutput& values, const At& at) const {
  const ScopeGuard with = enter_beside(handle_, LookupTableInsert::name, at);
  check_values(keys, values, LookupTableInsert::name, at);
  return build<LookupTableInsert>({handle_, keys, values}, {}, at);
}
Operation AnyLookupTable::remove(const AnyOutput& keys, const At& at) const {
  return build_on<LookupTableRemove>({handle_, keys}, {}, at);
}
AnyOutput AnyLookupTable::size(const At& at) const { return build_on<LookupTableSize>({handle_}, {}, at); }
BuiltNode AnyLookupTable::export_all(const At& at) const {
  return build_on<LookupTableExport>({handle_}, {.value_shape = value_shape_}, at, two_types(key_, value_));
}
Operation AnyLookupTable::import_all(const AnyOutput& keys, const AnyOutput& values, const At& at) const {
  const ScopeGuard with = enter_beside(handle_, LookupTableImport::name, at);
  check_values(keys, values, LookupTableImport::name, at);
  return build<LookupTableImport>({handle_, keys, values}, {}, at);
}
Operation AnyLookupTable::initialize(const AnyOutput& keys, const AnyOutput& values, const At& at) const {
  const ScopeGuard with = enter_beside(handle_, InitializeTable::name, at);
  check_values(keys, values, InitializeTable::name, at);
  return build<InitializeTable>({handle_, keys, values}, {}, at);
}

/// Why column `index` of a file cannot give elements of that type.
std::optional<std::string> why_no_column(std::int64_t index, DType dtype) {
  using Op = InitializeTableFromTextFile;
  if (index == Op::whole_line && dtype != DType::string)
    return str_cat("a whole line is a string, not ", dtype_name(dtype));
  if (index == Op::line_number && dtype != DType::int64) {
    return str_cat("a line's number is an int64, not ", dtype_name(dtype));
  }
  if (index >= 0 && !in_mask(dtype, dtype_mask<TypeList<std::int32_t, std::int64_t, float, double, std::string>>)) {
    return str_cat("columns are int32, int64, float, double or string, not ", dtype_name(dtype));
  }
  return std::nullopt;
}

Operation AnyLookupTable::initialize_from_text_file(const AnyOutput& filename, InitializeTableFromTextFile::Attrs attrs,
                                                    const At& at) const {
  using Op = InitializeTableFromTextFile;
  const ScopeGuard with = enter_beside(handle_, Op::name, at);
  std::optional<std::string> why = why_no_column(attrs.key_index, key_);
  if (!why) why = why_no_column(attrs.value_index, value_);
  if (!why && value_shape_.rank() != 0) why = "a file gives scalars, and the table's values have another shape";
  if (why) throw_error(Status::invalid_argument(*why).with_node(Op::name, at.name).with_location(at.where));
  return build<Op>({handle_, filename}, std::move(attrs), at);
}

}  // namespace detail

}  // namespace dflow
