// Reads bytes as a file of records of one length. The first six bytes say how it is compressed, the lengths of its
// parts, and where else to read from. In an uncompressed file the records are given by the lengths; a reader that goes
// back to some must see the same.
#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/base/status.hpp>
#include <dflow/io/records/fixed_record_file.hpp>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

/// Mostly small lengths, and some that no sum holds.
std::uint64_t length_of(std::uint8_t byte) {
  const std::uint64_t low = byte & 31u;
  if (byte < 192) return byte < 96 ? low : low * 9;
  return byte < 224 ? low << 33 : ~std::uint64_t{0} - low;
}

bool is_expected(const dflow::Error& error) {
  const dflow::Code code = error.code();
  return code == dflow::Code::data_loss || code == dflow::Code::invalid_argument || code == dflow::Code::out_of_range ||
         code == dflow::Code::resource_exhausted || code == dflow::Code::unimplemented;
}

/// Reads to the end or the first error, which must not move the reader.
std::vector<std::string> read_all(dflow::FixedRecordReader& reader, bool& is_whole) {
  std::vector<std::string> records;
  std::string record;
  try {
    while (records.size() < 10'000 && reader.next(record)) records.push_back(record);
    is_whole = records.size() < 10'000;
  } catch (const dflow::Error& error) {
    require(is_expected(error));
    require(record.empty() && reader.number() == records.size());
    is_whole = false;
  }
  return records;
}

/// True if the file ends where records end, or where the rest of a record that a hop leaves ends.
bool ends_well(std::uint64_t size, std::uint64_t records, const dflow::FixedRecordFormat& of) {
  if (size < of.header_bytes) return false;
  const std::uint64_t next = of.header_bytes + records * of.hop_bytes, left = size > next ? size - next : 0;
  if (records == 0) return left == of.footer_bytes;
  const std::uint64_t overlap = of.hop_bytes < of.record_bytes ? of.record_bytes - of.hop_bytes : 0;
  return left <= of.footer_bytes + overlap;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 6) return 0;
  static dflow::MemoryFileSystem files;
  const std::string_view file(reinterpret_cast<const char*>(data) + 6, size - 6);
  files.write_file_atomically("/file", file);
  dflow::FixedRecordFormat format{.header_bytes = length_of(data[1]),
                                  .record_bytes = length_of(data[2]),
                                  .footer_bytes = length_of(data[3]),
                                  .hop_bytes = length_of(data[4]),
                                  .compression = static_cast<dflow::RecordCompression>(data[0] % 3)};
  try {
    dflow::FixedRecordReader reader(files, "/file", format);
    bool is_whole = false;
    const std::vector<std::string> records = read_all(reader, is_whole);
    if (format.hop_bytes == 0) format.hop_bytes = format.record_bytes;
    std::string record;
    // Goes back only to some records: to go back in a compressed file is to begin again.
    const std::size_t step = 1 + records.size() / 16;
    for (std::size_t i = records.size(); i >= step;) {
      i -= step;
      reader.seek(i);
      require(reader.next(record) && record == records[i] && reader.number() == i + 1);
    }
    if (format.compression == dflow::RecordCompression::none) {
      std::uint64_t at = format.header_bytes, number = 0;
      const std::uint64_t whole = format.record_bytes + format.footer_bytes;  // the reader has checked the sum
      for (; at <= file.size() && whole <= file.size() - at; at += format.hop_bytes, ++number) {
        require(number < records.size() && records[number] == file.substr(at, format.record_bytes));
        if (format.hop_bytes > file.size()) {
          ++number;
          break;
        }
      }
      require(number == records.size());
      if (is_whole) require(ends_well(file.size(), number, format));
      if (!is_whole && format.hop_bytes <= file.size()) require(!ends_well(file.size(), number, format));
    }
    reader.seek(length_of(data[5]));
    static_cast<void>(reader.next(record));
  } catch (const dflow::Error& error) {
    require(is_expected(error));
  }
  return 0;
}
