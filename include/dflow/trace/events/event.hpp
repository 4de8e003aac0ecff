#pragma once

#include <dflow/base/config.hpp>
#include <dflow/io/summary/summary.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace dflow {

/// The first event of a file.
struct EventFileVersion {
  static constexpr std::string_view current = "brain.Event:2";
  std::string text{current};
};

/// A GraphDef of TensorFlow, serialised.
struct EventGraph {
  std::string graph_def;
};

/// A message of a training run about itself.
struct SessionLog {
  enum class Status : std::int32_t {
    unspecified = 0,
    start = 1,  ///< events before it in the file, of the same step or later, are void
    stop = 2,
    checkpoint = 3,
  };
  Status status = Status::unspecified;
  std::string checkpoint_path;
  std::string message;
};

/// A RunMetadata of TensorFlow, serialised, under a tag.
struct TaggedRunMetadata {
  std::string tag;
  std::string run_metadata;
};

/// One record of an event file (tensorflow/core/util/event.proto). An event with content of another kind is read as an
/// event without content.
///
/// Thread safety: a value type.
struct Event {
  double wall_time = 0;  ///< seconds since 1970
  std::int64_t step = 0;
  std::variant<std::monostate, EventFileVersion, EventGraph, Summary, SessionLog, TaggedRunMetadata> content;
};

/// Errors: as serialize(const Summary&).
std::string serialize(const Event& event);

/// Errors: DataLoss with the offset.
Event parse_event(std::string_view bytes);

}  // namespace dflow
