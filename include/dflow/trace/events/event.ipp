#pragma once

#include <dflow/io/proto/proto_reader.hpp>
#include <dflow/io/proto/proto_writer.hpp>
#include <dflow/trace/events/event.hpp>

namespace dflow {

namespace detail {

/// Writes the content of an Event in its field.
struct EventContentWriter {
  ProtoWriter& out;

  void operator()(std::monostate) const {}
  void operator()(const EventFileVersion& version) const { write_text(out, 3, version.text); }
  void operator()(const EventGraph& graph) const { out.bytes(4, graph.graph_def); }
  void operator()(const Summary& summary) const {
    out.message(5, [&](ProtoWriter& fields) { write_summary(fields, summary); });
  }
  void operator()(const SessionLog& log) const {
    out.message(7, [&](ProtoWriter& fields) {
      fields.int64(1, static_cast<std::int64_t>(log.status));
      if (!log.checkpoint_path.empty()) write_text(fields, 2, log.checkpoint_path);
      if (!log.message.empty()) write_text(fields, 3, log.message);
    });
  }
  void operator()(const TaggedRunMetadata& metadata) const {
    out.message(8, [&](ProtoWriter& fields) {
      write_text(fields, 1, metadata.tag);
      fields.bytes(2, metadata.run_metadata);
    });
  }
};

SessionLog read_session_log(ProtoReader in) {
  SessionLog log;
  while (in.next()) {
    if (in.number() == 1) log.status = static_cast<SessionLog::Status>(in.int32());
    if (in.number() == 2) log.checkpoint_path = in.bytes();
    if (in.number() == 3) log.message = in.bytes();
  }
  return log;
}

TaggedRunMetadata read_tagged_run_metadata(ProtoReader in) {
  TaggedRunMetadata metadata;
  while (in.next()) {
    if (in.number() == 1) metadata.tag = in.bytes();
    if (in.number() == 2) metadata.run_metadata = in.bytes();
  }
  return metadata;
}

}  // namespace detail

std::string serialize(const Event& event) {
  std::string bytes;
  ProtoWriter out(bytes);
  out.float64(1, event.wall_time);
  if (event.step != 0) out.int64(2, event.step);
  std::visit(detail::EventContentWriter{out}, event.content);
  return bytes;
}

Event parse_event(std::string_view bytes) {
  Event event;
  for (ProtoReader in(bytes); in.next();) {
    if (in.number() == 1) event.wall_time = in.float64();
    if (in.number() == 2) event.step = in.int64();
    if (in.number() == 3) event.content = EventFileVersion{std::string(in.bytes())};
    if (in.number() == 4) event.content = EventGraph{std::string(in.bytes())};
    if (in.number() == 5) event.content = detail::read_summary(in.message());
    if (in.number() == 7) event.content = detail::read_session_log(in.message());
    if (in.number() == 8) event.content = detail::read_tagged_run_metadata(in.message());
  }
  return event;
}

}  // namespace dflow
