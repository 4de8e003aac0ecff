// Reads bytes as the index of a TensorFlow checkpoint of version 2 beside a small data file, and as a checkpoint of
// version 1. The first byte says how: 0 as they are; 1 as keys and values of a table; 2 as one block of a table,
// packed or not as the second byte says. The checksums of the tables are right. Any other first byte means a snappy
// stream.
#include <dflow/base/files/byte_reader.hpp>
#include <dflow/base/files/byte_writer.hpp>
#include <dflow/base/files/crc32c.hpp>
#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/base/status.hpp>
#include <dflow/io/checkpoint/parts/sorted_table.hpp>
#include <dflow/io/checkpoint/saved_tensors.hpp>
#include <dflow/io/compression/snappy.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void require_known(const dflow::Error& error) {
  const dflow::Code code = error.code();
  require(code == dflow::Code::data_loss || code == dflow::Code::unimplemented || code == dflow::Code::not_found ||
          code == dflow::Code::out_of_range || code == dflow::Code::resource_exhausted);
}

void read_all(dflow::FileSystem& files, const std::string& prefix) {
  try {
    const auto saved = dflow::open_saved_tensors(files, prefix);
    for (const std::string& name : saved->names()) {
      const auto found = saved->find(name);
      require(found.has_value());
      try {
        const dflow::AnyTensor tensor = saved->read(name);
        require(tensor.dtype() == found->dtype && tensor.shape() == found->shape);
      } catch (const dflow::Error& error) {
        require_known(error);
      }
    }
  } catch (const dflow::Error& error) {
    require_known(error);
  }
}

void read_table(const std::string& table) {
  dflow::MemoryFileSystem files;
  files.write_file_atomically("/v2.index", std::string_view(table));
  files.write_file_atomically("/v2.data-00000-of-00001", std::string(64, '\0'));
  files.write_file_atomically("/v1", std::string_view(table));
  read_all(files, "/v2");
  read_all(files, "/v1");
}

/// Each entry is a length and as many bytes.
std::string table_of_entries(std::string_view bytes) {
  std::map<std::string, std::string> entries;
  dflow::ByteReader in(bytes);
  while (in.remaining() >= 2) {
    const auto next = [&] {
      const std::size_t size = in.at_end() ? 0 : in.u8();
      const auto part = in.bytes(size < in.remaining() ? size : in.remaining());
      return std::string(reinterpret_cast<const char*>(part.data()), part.size());
    };
    std::string key = next();
    entries[std::move(key)] = next();
  }
  std::string table;
  dflow::SortedTableWriter writer(table);
  for (const auto& [key, value] : entries) writer.add(key, value);
  writer.finish();
  return table;
}

std::string table_of_block(std::string_view bytes, char packing) {
  std::string table, index, handle;
  const auto append_block = [&](std::string_view block, char how) {
    const std::size_t at = table.size();
    table += block;
    table += how;
    dflow::ByteWriter(table).u32(dflow::mask_crc32c(dflow::crc32c(std::string_view(table).substr(at))));
    return at;
  };
  append_block(bytes, static_cast<char>(packing & 1));
  dflow::ByteWriter entry(index), handle_out(handle);
  handle_out.varint(0);
  handle_out.varint(bytes.size());
  for (const std::size_t number : {std::size_t{0}, std::size_t{4}, handle.size()}) entry.varint(number);
  index += "\xff\xff\xff\xff" + handle;
  entry.u32(0);
  entry.u32(1);
  const std::size_t index_at = append_block(index, 0);
  std::string footer;
  dflow::ByteWriter footer_out(footer);
  for (const std::size_t number : {std::size_t{0}, std::size_t{0}, index_at, index.size()}) footer_out.varint(number);
  footer.resize(dflow::SortedTableReader::footer_bytes - 8);
  footer_out.u64(dflow::SortedTableReader::magic);
  return table + footer;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (size < 2) return 0;
  const std::string_view rest = bytes.substr(1);
  if (data[0] == 0) {
    read_table(std::string(rest));
  } else if (data[0] == 1) {
    read_table(table_of_entries(rest));
  } else if (data[0] == 2) {
    read_table(table_of_block(rest.substr(1), rest[0]));
  } else {
    try {
      static_cast<void>(dflow::unsnappy(std::as_bytes(std::span(rest.data(), rest.size())), std::uint64_t{1} << 20));
    } catch (const dflow::Error& error) {
      require_known(error);
    }
  }
  return 0;
}
