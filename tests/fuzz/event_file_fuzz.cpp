// Reads bytes as one event, as a summary, and as an event file. Events and summaries that are read and written again
// must be read as the same bytes.
#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/base/status.hpp>
#include <dflow/trace/events/event_file.hpp>

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

template <class Read>
auto outcome(Read read) -> std::optional<decltype(read())> {
  try {
    return read();
  } catch (const dflow::Error& error) {
    require(error.code() == dflow::Code::data_loss || error.code() == dflow::Code::resource_exhausted);
    return std::nullopt;
  }
}

void require_stable(const dflow::Event& event) {
  const std::string bytes = dflow::serialize(event);
  require(dflow::serialize(dflow::parse_event(bytes)) == bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static dflow::MemoryFileSystem files;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const auto event = outcome([&] { return dflow::parse_event(bytes); })) require_stable(*event);
  if (const auto summary = outcome([&] { return dflow::parse_summary(bytes); })) {
    const std::string again = dflow::serialize(*summary);
    require(dflow::serialize(dflow::parse_summary(again)) == again);
  }
  files.write_file_atomically("/file", bytes);
  dflow::EventReader reader(files, "/file", {.max_record_bytes = 1 << 20});
  while (const auto event = outcome([&] { return reader.next(); })) {
    if (!*event) break;
    require_stable(**event);
  }
  return 0;
}
