#include <dflow/trace/events/event.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/base/files/crc32c.hpp>
#include <dflow/base/files/file_system.hpp>
#include <dflow/core/tensor.hpp>
#include <dflow/io/records/record_file.hpp>

#include <bit>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

using namespace dflow;
using namespace std::string_view_literals;

namespace {

std::vector<Event> event_of_each_kind() {
  return {{1.5, 0, EventFileVersion()},
          {2, 3, EventGraph{"graph"}},
          {3, -1, Summary{{scalar_summary("loss", 0.5), histogram_summary("w", Tensor<float>(1.0f))}}},
          {4, std::int64_t{1} << 40, SessionLog{SessionLog::Status::checkpoint, "/path", "message"}},
          {5, 6, TaggedRunMetadata{"tag", "metadata"}},
          {6, 7, {}}};
}

}  // namespace

TEST_CASE("the first event of a file is the bytes that TensorFlow writes", "[event]") {
  // Published bytes of a file that TensorFlow wrote, and their masked checksum.
  const std::string first =
      serialize(Event{std::bit_cast<double>(std::uint64_t{0x41d7d69938800000}), 0, EventFileVersion()});
  CHECK(first ==
        "\x09\x00\x00\x80\x38\x99\xd6\xd7\x41\x1a\x0d"
        "brain.Event:2"sv);
  CHECK(mask_crc32c(crc32c(first)) == 0xab364b12);
}

TEST_CASE("an event is read as it was written", "[event]") {
  for (const Event& event : event_of_each_kind()) {
    const std::string bytes = serialize(event);
    const Event read = parse_event(bytes);
    CHECK(serialize(read) == bytes);
    CHECK(read.wall_time == event.wall_time);
    CHECK(read.step == event.step);
    CHECK(read.content.index() == event.content.index());
  }
  const Event log = parse_event(serialize(event_of_each_kind()[3]));
  CHECK(std::get<SessionLog>(log.content).status == SessionLog::Status::checkpoint);
  CHECK(std::get<SessionLog>(log.content).checkpoint_path == "/path");
  CHECK(std::get<SessionLog>(log.content).message == "message");
}

TEST_CASE("content of another kind is none", "[event]") {
  const Event event = parse_event("\x10\x05\x32\x04\x0a\x02hi"sv);  // step 5, log_message
  CHECK(event.step == 5);
  CHECK(std::holds_alternative<std::monostate>(event.content));
}

TEST_CASE("the golden event file holds what its description says", "[event]") {
  const char* root = std::getenv("DFLOW_DATA");
  if (root == nullptr) {
    WARN("DFLOW_DATA is not set: the golden event file is not read");
    return;
  }
  PosixFileSystem files;
  RecordReader reader(files, std::string(root) + "/formats/events.out.tfevents.1461000000.golden");
  std::vector<Event> events;
  for (std::string record; reader.next(record);) events.push_back(parse_event(record));
  REQUIRE(events.size() == 10);
  CHECK(std::get<EventFileVersion>(events[0].content).text == EventFileVersion::current);
  CHECK_FALSE(std::get<EventGraph>(events[1].content).graph_def.empty());
  CHECK(std::get<SessionLog>(events[2].content).status == SessionLog::Status::start);
  std::string seen;
  for (const Event& event : events) {
    const auto* summary = std::get_if<Summary>(&event.content);
    if (summary == nullptr) continue;
    for (const SummaryValue& value : summary->values) {
      seen += str_cat(event.step, " ", value.tag, " ", value.value.index(), "\n");
      if (const auto* image = std::get_if<SummaryImage>(&value.value)) CHECK(image->height * image->width == 4);
      if (const auto* histogram = std::get_if<Histogram>(&value.value)) {
        CHECK(histogram->min == -1);
        CHECK(histogram->max == 2);
        CHECK(histogram->count == 5);
      }
    }
  }
  CHECK(seen == "1 loss 1\n1 layer/acc 1\n2 loss 1\n1000000 loss 1\n3 layer/weights 2\n3 img/image/0 3\n");
  CHECK(std::get<TaggedRunMetadata>(events[8].content).tag == "step_3");
  CHECK(std::get<SessionLog>(events[9].content).checkpoint_path == "/tmp/m/model.ckpt-3");
}

TEST_CASE("damaged events are events or DataLoss, never more", "[event]") {
  for (const Event& event : event_of_each_kind()) {
    const std::string whole = serialize(event);
    for (std::size_t size = 0; size < whole.size(); ++size) {
      const std::string cut = whole.substr(0, size);
      // After the time, and after the step, there may be nothing.
      const Code code = code_of([&] { return parse_event(cut); });
      if (code != Code::ok && code != Code::data_loss) FAIL("cut at " << size);
      if (size > 20 && size + 1 == whole.size()) CHECK(code == Code::data_loss);
    }
    for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
      std::string damaged = whole;
      damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
      const Code code = code_of([&] { return parse_event(damaged); });
      if (code != Code::ok && code != Code::data_loss) FAIL("bit " << bit);
    }
  }
}
