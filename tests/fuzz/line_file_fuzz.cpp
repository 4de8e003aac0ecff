// Reads bytes as a file of text; the first two say how long a line may be and where else to read from. The lines must
// be equal to a plain split. A reader that goes back to each, or anywhere, must see the same.
#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/base/status.hpp>
#include <dflow/io/records/line_file.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

struct Line {
  std::size_t begin;
  std::string text;
};

std::vector<Line> split(std::string_view file, std::size_t from) {
  std::vector<Line> lines;
  while (from < file.size()) {
    const std::size_t end = std::min(file.find('\n', from), file.size());
    std::string text(file.substr(from, end - from));
    if (text.ends_with('\r')) text.pop_back();
    lines.push_back({from, text});
    from = end + 1;
  }
  return lines;
}

/// Reads on, as far as no line is longer than `limit`.
void require_lines(dflow::LineReader& reader, const std::vector<Line>& lines, std::size_t limit) {
  std::string_view line;
  for (const Line& expected : lines) {
    require(reader.tell() == expected.begin);
    if (expected.text.size() > limit) {
      for (int again = 0; again < 2; ++again) {
        try {
          static_cast<void>(reader.next(line));
          std::abort();
        } catch (const dflow::Error& error) {
          require(error.code() == dflow::Code::resource_exhausted);
        }
        require(reader.tell() == expected.begin);
      }
      return;
    }
    require(reader.next(line) && line == expected.text);
  }
  require(!reader.has_next_at_hand());
  require(!reader.next(line) && !reader.next(line));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  static dflow::MemoryFileSystem files;
  const std::size_t limit = data[0] == 255 ? std::size_t{1} << 30 : data[0];
  const std::string_view file(reinterpret_cast<const char*>(data) + 2, size - 2);
  files.write_file_atomically("/file", file);
  dflow::LineReader reader(files, "/file", limit);
  const std::vector<Line> lines = split(file, 0);
  require_lines(reader, lines, limit);
  for (std::size_t i = lines.size(); i-- > 0;) {
    if (lines[i].text.size() > limit) continue;
    std::string_view line;
    reader.seek(lines[i].begin);
    require(reader.next(line) && line == lines[i].text);
  }
  const std::size_t elsewhere = data[1];
  reader.seek(elsewhere);
  require_lines(reader, split(file, elsewhere), limit);
  return 0;
}
