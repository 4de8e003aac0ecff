// Reads bytes as a record file; the first byte says how the file is compressed. The target writes the records again
// after it has read them. If the file is not compressed, the result must be the file's own beginning. A second reader
// that seeks to each record must read the same.
#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/base/status.hpp>
#include <dflow/io/records/record_file.hpp>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

/// Reads to the end or to the first error. The error's code must be a code of damaged files.
std::vector<std::string> read_all(dflow::RecordReader& reader, std::vector<std::uint64_t>& places) {
  std::vector<std::string> records;
  try {
    places.push_back(reader.tell());
    for (std::string record; reader.next(record); places.push_back(reader.tell())) records.push_back(record);
  } catch (const dflow::Error& error) {
    require(error.code() == dflow::Code::data_loss || error.code() == dflow::Code::resource_exhausted);
  }
  return records;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  static dflow::MemoryFileSystem files;
  const auto compression = static_cast<dflow::RecordCompression>(data[0] % 3);
  const std::string_view file(reinterpret_cast<const char*>(data) + 1, size - 1);
  files.write_file_atomically("/file", file);
  const dflow::RecordReaderOptions options{.compression = compression, .max_record_bytes = 1 << 20};
  std::vector<std::string> records;
  std::vector<std::uint64_t> places;
  try {
    dflow::RecordReader reader(files, "/file", options);
    records = read_all(reader, places);
    for (std::size_t i = records.size(); i-- > 0;) {
      reader.seek(places[i]);
      require(reader.read() == records[i]);
    }
  } catch (const dflow::Error& error) {
    require(error.code() == dflow::Code::unimplemented);
    return 0;
  }
  if (compression != dflow::RecordCompression::none) return 0;
  dflow::RecordWriter writer(files, "/again");
  for (const std::string& record : records) writer.write(record);
  writer.close();
  require(file.starts_with(files.read_file("/again")));
  return 0;
}
