// Parses bytes as the state of a reader; the first byte gives its kind. The numbers of an accepted state can be
// counted on from. The state is written so that it is read as the same.
#include <dflow/base/status.hpp>
#include <dflow/state/readers/reader_state.hpp>

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

std::optional<dflow::ReaderProgress> parsed(std::string_view state, dflow::ReaderFormat format) {
  try {
    return dflow::parse_reader_progress(state, format);
  } catch (const dflow::Error& error) {
    require(error.code() == dflow::Code::invalid_argument);
    return std::nullopt;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto format = static_cast<dflow::ReaderFormat>(data[0] % 5);
  const std::string_view state(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::optional<dflow::ReaderProgress> progress = parsed(state, format);
  if (!progress) return 0;
  constexpr std::int64_t most = std::int64_t{1} << 62;
  require(progress->num_finished >= 0 && progress->num_started >= progress->num_finished);
  require(progress->num_started <= most && progress->num_records >= 0 && progress->num_records <= most);
  require(progress->is_at_work() || progress->place == dflow::WorkPlace{});
  const std::string text = dflow::serialized(*progress, format);
  const std::optional<dflow::ReaderProgress> again = parsed(text, format);
  require(again.has_value());
  require(again->num_started == progress->num_started && again->num_finished == progress->num_finished);
  require(again->num_records == progress->num_records && again->work == progress->work);
  require(again->place == progress->place && again->next_works == progress->next_works);
  require(dflow::serialized(*again, format) == text);
  return 0;
}
