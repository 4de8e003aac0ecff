#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/op/build_on.hpp>
#include <dflow/ops/io/reader.hpp>

namespace dflow {

void WholeFileReaderOp::infer(InferContext& context) { context.set_output(0, Shape{}); }
void TextLineReaderOp::infer(InferContext& context) {
  const std::int64_t skipped = context.attrs<TextLineReaderOp>().skip_header_lines;
  if (skipped < 0) context.fail(str_cat("cannot skip ", skipped, " lines"));
  context.set_output(0, Shape{});
}
void FixedLengthRecordReaderOp::infer(InferContext& context) {
  const auto& attrs = context.attrs<FixedLengthRecordReaderOp>();
  constexpr std::int64_t most = std::int64_t{1} << 60;
  if (attrs.record_bytes < 1 || attrs.record_bytes > most) {
    context.fail(str_cat("a record has ", attrs.record_bytes, " bytes"));
  }
  for (const std::int64_t bytes : {attrs.header_bytes, attrs.footer_bytes, attrs.hop_bytes}) {
    if (bytes < 0 || bytes > most) context.fail(str_cat("header, footer or hop has ", bytes, " bytes"));
  }
  context.set_output(0, Shape{});
}
void TFRecordReaderOp::infer(InferContext& context) { context.set_output(0, Shape{}); }
void IdentityReaderOp::infer(InferContext& context) { context.set_output(0, Shape{}); }

void ReaderRead::infer(InferContext& context) {
  context.set_output(0, Shape{});
  context.set_output(1, Shape{});
}
void ReaderReadUpTo::infer(InferContext& context) {
  static_cast<void>(context.with_rank(2, 0));
  if (const auto n = context.value_as_integers(2); n && (*n)[0] < 0) {
    context.fail(str_cat("cannot read ", (*n)[0], " records"));
  }
  context.set_output(0, PartialShape{dynamic});
  context.set_output(1, PartialShape{dynamic});
}
void ReaderNumRecordsProduced::infer(InferContext& context) { context.set_output(0, Shape{}); }
void ReaderNumWorkUnitsCompleted::infer(InferContext& context) { context.set_output(0, Shape{}); }
void ReaderSerializeState::infer(InferContext& context) { context.set_output(0, Shape{}); }
void ReaderRestoreState::infer(InferContext& context) { static_cast<void>(context.with_rank(1, 0)); }
void ReaderReset::infer(InferContext&) {}

namespace detail {

template <class O>
AnyOutput build_reader(Graph& graph, typename O::Attrs attrs, std::string_view name, const At& at) {
  GraphStore& store = *graph.store();
  const ScopeGuard without_control_inputs = enter_without_control_inputs(store);
  return build<O>(store, {}, std::move(attrs), {.name = at.name.empty() ? name : at.name, .where = at.where});
}

Reader::Records records_of(const BuiltNode& node) {
  return {Output<std::string>::unchecked(node.output(0)), Output<std::string>::unchecked(node.output(1))};
}

}  // namespace detail

Reader::Records Reader::read(const detail::TypedQueue<std::string>& queue, const At& at) const {
  GraphStore& graph = detail::graph_of({&handle_, 1}, ReaderRead::name, at);
  const ScopeGuard with_queue = enter_colocation(graph, queue.handle().operation(), at.where);
  return detail::records_of(detail::build_on<ReaderRead>({handle_, queue.handle()}, {}, at));
}
Reader::Records Reader::read_up_to(const detail::TypedQueue<std::string>& queue,
                                   const Output<std::int64_t>& num_records, const At& at) const {
  GraphStore& graph = detail::graph_of({&handle_, 1}, ReaderReadUpTo::name, at);
  const ScopeGuard with_queue = enter_colocation(graph, queue.handle().operation(), at.where);
  return detail::records_of(detail::build_on<ReaderReadUpTo>({handle_, queue.handle(), num_records}, {}, at));
}
Reader::Records Reader::read_up_to(const detail::TypedQueue<std::string>& queue, std::int64_t num_records,
                                   const At& at) const {
  GraphStore& graph = detail::graph_of({&handle_, 1}, ReaderReadUpTo::name, at);
  return read_up_to(queue,
                    Output<std::int64_t>::unchecked(
                        detail::any_constant(graph, Tensor<std::int64_t>(num_records), {.where = at.where})),
                    at);
}
Output<std::int64_t> Reader::num_records_produced(const At& at) const {
  return Output<std::int64_t>::unchecked(detail::build_on<ReaderNumRecordsProduced>({handle_}, {}, at).output(0));
}
Output<std::int64_t> Reader::num_work_units_completed(const At& at) const {
  return Output<std::int64_t>::unchecked(detail::build_on<ReaderNumWorkUnitsCompleted>({handle_}, {}, at).output(0));
}
Output<std::string> Reader::serialize_state(const At& at) const {
  return Output<std::string>::unchecked(detail::build_on<ReaderSerializeState>({handle_}, {}, at).output(0));
}
Operation Reader::restore_state(const Output<std::string>& state, const At& at) const {
  return detail::build_on<ReaderRestoreState>({handle_, state}, {}, at);
}
Operation Reader::restore_state(std::string_view state, const At& at) const {
  GraphStore& graph = detail::graph_of({&handle_, 1}, ReaderRestoreState::name, at);
  return restore_state(Output<std::string>::unchecked(
                           detail::any_constant(graph, Tensor<std::string>(std::string(state)), {.where = at.where})),
                       at);
}
Operation Reader::reset(const At& at) const { return detail::build_on<ReaderReset>({handle_}, {}, at); }

WholeFileReader::WholeFileReader(Graph& graph, const ReaderOptions& options, const At& at)
    : Reader(detail::build_reader<WholeFileReaderOp>(
          graph, {.container = std::string(options.container), .shared_name = std::string(options.shared_name)},
          options.name, at)) {}
TextLineReader::TextLineReader(Graph& graph, const TextLineReaderOptions& options, const At& at)
    : Reader(detail::build_reader<TextLineReaderOp>(graph,
                                                    {.skip_header_lines = options.skip_header_lines,
                                                     .container = std::string(options.container),
                                                     .shared_name = std::string(options.shared_name)},
                                                    options.name, at)) {}
FixedLengthRecordReader::FixedLengthRecordReader(Graph& graph, const FixedLengthRecordReaderOptions& options,
                                                 const At& at)
    : Reader(detail::build_reader<FixedLengthRecordReaderOp>(graph,
                                                             {.header_bytes = options.header_bytes,
                                                              .record_bytes = options.record_bytes,
                                                              .footer_bytes = options.footer_bytes,
                                                              .hop_bytes = options.hop_bytes,
                                                              .container = std::string(options.container),
                                                              .shared_name = std::string(options.shared_name),
                                                              .encoding = options.compression},
                                                             options.name, at)) {}
TFRecordReader::TFRecordReader(Graph& graph, const TFRecordReaderOptions& options, const At& at)
    : Reader(detail::build_reader<TFRecordReaderOp>(graph,
                                                    {.container = std::string(options.container),
                                                     .shared_name = std::string(options.shared_name),
                                                     .compression_type = options.compression},
                                                    options.name, at)) {}
IdentityReader::IdentityReader(Graph& graph, const ReaderOptions& options, const At& at)
    : Reader(detail::build_reader<IdentityReaderOp>(
          graph, {.container = std::string(options.container), .shared_name = std::string(options.shared_name)},
          options.name, at)) {}

}  // namespace dflow
