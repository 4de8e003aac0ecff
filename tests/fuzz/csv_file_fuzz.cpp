// Reads bytes as a file of CSV, plain or packed by gzip, in the way that the first byte says. A table that was read is
// written by RFC 4180, its numbers bare or in quotes and its names in quotes. The written file must be read alike,
// and its columns one by one.
#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/base/status.hpp>
#include <dflow/io/compression/gzip.hpp>
#include <dflow/io/csv.hpp>
#include <dflow/io/csv_columns.hpp>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

/// Nothing for a damaged file, which is the only possible error besides a missing zlib.
template <class Read>
auto outcome(Read read) -> std::optional<decltype(read())> {
  try {
    return read();
  } catch (const dflow::Error& error) {
    require(error.code() == dflow::Code::data_loss || error.code() == dflow::Code::unimplemented);
    return std::nullopt;
  }
}

bool same(const dflow::CsvTable& a, const dflow::CsvTable& b) {
  return a.names == b.names && bitwise_equal(a.values, b.values);
}

std::string quoted(std::string_view field) {
  std::string text = "\"";
  for (const char c : field) text += c == '"' ? std::string("\"\"") : std::string(1, c);
  return text + '"';
}

/// The text of `table`: all fields in quotes, or the numbers bare.
std::string written(const dflow::CsvTable& table, const dflow::CsvOptions& options, bool has_quotes,
                    std::string_view line_end) {
  const auto columns = static_cast<std::size_t>(table.values.dim(1));
  std::string text;
  const auto end_field = [&](std::size_t column) {
    text += column + 1 < columns ? std::string(1, options.separator) : std::string(line_end);
  };
  for (std::size_t c = 0; c < table.names.size(); ++c) {
    text += quoted(table.names[c]);
    end_field(c);
  }
  const float* value = table.values.data();
  for (std::int64_t row = 0; row < table.values.dim(0); ++row) {
    for (std::size_t c = 0; c < columns; ++c) {
      char digits[32];
      const char* const end = std::to_chars(digits, digits + sizeof digits, *value++).ptr;
      const std::string_view number(digits, static_cast<std::size_t>(end - digits));
      text += has_quotes ? quoted(number) : std::string(number);
      end_field(c);
    }
  }
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::uint8_t choice = data[0];
  const dflow::CsvOptions options{.has_header = (choice & 4) != 0, .separator = ",;\t "[choice & 3]};
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto table = outcome([&] { return dflow::parse_csv_table(text, options); });
  if (table) {
    require(!options.has_header || table->names.size() == static_cast<std::size_t>(table->values.dim(1)));
    for (const bool has_quotes : {false, true}) {
      for (const std::string_view line_end : {"\n", "\r\n", "\r"}) {
        require(same(*table, dflow::parse_csv_table(written(*table, options, has_quotes, line_end), options)));
      }
    }
  }

  static dflow::MemoryFileSystem files;
  files.write_file_atomically("/table.csv", std::string_view(text));
  const auto from_file = outcome([&] { return dflow::read_csv_table(files, "/table.csv", options); });
  const auto content = outcome([&] { return dflow::is_gzip(text) ? dflow::gunzip(text) : text; });
  const auto wanted = outcome([&] { return content ? dflow::parse_csv_table(*content, options) : dflow::CsvTable(); });
  const bool has_rows = content && wanted && wanted->values.dim(0) > 0;
  require(from_file.has_value() == has_rows);
  if (!from_file) return 0;
  require(same(*from_file, *wanted));
  for (std::int64_t c = 0; c < std::min<std::int64_t>(from_file->values.dim(1), 4); ++c) {
    const auto [numbers, texts] = dflow::read_csv_columns<float, std::string>(files, "/table.csv", {c, c}, options);
    require(bitwise_equal(numbers, dflow::column(from_file->values, c)) && texts.shape() == numbers.shape());
  }
  return 0;
}
