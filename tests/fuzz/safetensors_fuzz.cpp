// Reads bytes as a safetensors file, once as they are and once with the length of the header made right where there is
// one. Tensors that are read must be the same after they are written and read again.
#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/base/status.hpp>
#include <dflow/io/safetensors.hpp>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void read(dflow::FileSystem& files, std::string_view file) {
  files.write_file_atomically("/m", file);
  std::vector<dflow::NamedTensor> tensors;
  dflow::SafetensorsMetadata metadata;
  try {
    const dflow::SafetensorsReader reader(files, "/m");
    metadata = reader.metadata();
    std::uint64_t bytes = 0;
    for (const dflow::SafetensorsEntry& entry : reader.entries()) {
      bytes += entry.end - entry.begin;
      if (!entry.problem.ok()) {
        require(entry.problem.code() == dflow::Code::unimplemented && entry.dtype == dflow::DType::invalid);
        continue;
      }
      tensors.push_back({entry.name, reader.read(entry)});
      require(tensors.back().tensor.bytes() == entry.end - entry.begin);
    }
    require(bytes <= file.size());
  } catch (const dflow::Error& error) {
    require(error.code() == dflow::Code::data_loss || error.code() == dflow::Code::unimplemented);
    return;
  }
  dflow::write_safetensors(files, "/again", tensors, metadata);
  const dflow::SafetensorsReader again(files, "/again");
  require(again.metadata() == metadata);
  for (const auto& [name, tensor] : tensors) require(bitwise_equal(again.read(name), tensor));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static dflow::MemoryFileSystem files;
  std::string file(reinterpret_cast<const char*>(data), size);
  read(files, file);
  const std::size_t end = file.rfind('}');
  if (end == std::string::npos || end < 8) return 0;
  const std::uint64_t length = end + 1 - 8;
  std::memcpy(file.data(), &length, sizeof(length));
  read(files, file);
  return 0;
}
