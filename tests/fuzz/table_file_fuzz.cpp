// Reads bytes as a text file of a table. The first four bytes give the key column, the value column, their types and
// the expected number of lines. The table must have been read from as many lines as the file has.
#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/base/status.hpp>
#include <dflow/core/tensor.hpp>
#include <dflow/state/tables/table_file.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

/// The number of lines that a reader sees.
std::int64_t num_lines(std::string_view text) {
  const std::int64_t ends = std::count(text.begin(), text.end(), '\n');
  return text.empty() || text.back() == '\n' ? ends : ends + 1;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using dflow::DType;
  constexpr std::array dtypes{DType::string, DType::int64, DType::int32, DType::float32, DType::float64};
  constexpr std::size_t header = 4;
  if (size < header) return 0;
  static dflow::MemoryFileSystem files;
  const std::string_view text(reinterpret_cast<const char*>(data) + header, size - header);
  files.write_file_atomically("/table.txt", text);
  const dflow::TableFileFormat format{.key_index = data[0] % 5 - 2,
                                      .value_index = data[1] % 5 - 2,
                                      .max_lines = data[2] % 4 == 0 ? data[2] / 4 + 1 : -1,
                                      .delimiter = data[2] % 2 == 0 ? '\t' : ','};
  const DType key = dtypes[data[3] % dtypes.size()], value = dtypes[data[3] / dtypes.size() % dtypes.size()];
  try {
    const dflow::TableEntries entries = dflow::read_table_file(files, "/table.txt", format, key, value);
    const std::int64_t count = format.max_lines < 0 ? num_lines(text) : format.max_lines;
    require(entries.keys.shape() == dflow::Shape{count} && entries.values.shape() == dflow::Shape{count});
    require(entries.keys.dtype() == key && entries.values.dtype() == value);
    if (format.key_index != dflow::TableFileFormat::whole_line) return 0;
    std::size_t at = 0;
    for (const std::string& line : entries.keys.span<std::string>()) {
      require(text.substr(at, line.size()) == line);
      at = text.find('\n', at) + 1;
    }
  } catch (const dflow::Error& error) {
    require(error.code() == dflow::Code::invalid_argument || error.code() == dflow::Code::out_of_range);
  }
  return 0;
}
