// Reads bytes as an IDX file, as they are and from a file, where they may be gzip-compressed. A tensor that is read
// must hold the very bytes of the file.
#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/base/status.hpp>
#include <dflow/io/compression/gzip.hpp>
#include <dflow/io/idx.hpp>

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

/// The outcome of `read`: nothing if the bytes are damaged, the only error there may be besides a missing zlib.
template <class Read>
auto outcome(Read read) -> std::optional<decltype(read())> {
  try {
    return read();
  } catch (const dflow::Error& error) {
    require(error.code() == dflow::Code::data_loss || error.code() == dflow::Code::unimplemented);
    return std::nullopt;
  }
}

/// `extents` and elements of `file` against the extents and elements of the tensor, byte by byte.
void require_same(const dflow::AnyTensor& tensor, std::string_view file) {
  const auto extents = static_cast<std::size_t>(tensor.shape().rank());
  const std::size_t header = 4 + 4 * extents;
  require(static_cast<std::size_t>(static_cast<unsigned char>(file[3])) == extents);
  require(header + tensor.bytes() == file.size());
  for (std::size_t i = 0; i < extents; ++i) {
    std::uint64_t extent = 0;
    for (std::size_t at = 4 + 4 * i; at < 8 + 4 * i; ++at) extent = extent << 8 | static_cast<unsigned char>(file[at]);
    require(static_cast<std::uint64_t>(tensor.dim(static_cast<int>(i))) == extent);
  }
  const auto* elements = static_cast<const char*>(tensor.raw_data());
  const std::size_t size = dflow::size_of(tensor.dtype());
  for (std::size_t i = 0; i < tensor.bytes(); ++i) {
    const std::size_t mirrored = i - i % size + (size - 1 - i % size);  // big-endian in the file, little-endian here
    require(elements[mirrored] == file[header + i]);
  }
}

bool parses(std::string_view file) {
  const auto tensor = outcome([&] { return dflow::parse_idx(bytes_of(file)); });
  if (tensor) require_same(*tensor, file);
  return tensor.has_value();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static dflow::MemoryFileSystem files;
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  bool is_idx = parses(file);
  const bool is_packed = dflow::is_gzip(file);
  if (is_packed) {
    const auto content = outcome([&] { return dflow::gunzip(file); });
    is_idx = content && parses(*content);
  }
  files.write_file_atomically("/file.idx", file);
  const auto tensor = outcome([&] { return dflow::read_idx(files, "/file.idx"); });
  require(tensor.has_value() == is_idx);
  if (tensor && !is_packed) require_same(*tensor, file);
  return 0;
}
