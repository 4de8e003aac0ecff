// Reads bytes as an npy file and as an npz file. An array that is read must be the same after it is written and read
// again.
#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/base/status.hpp>
#include <dflow/io/npy.hpp>
#include <dflow/io/npz.hpp>

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

void require_known(const dflow::Error& error) {
  require(error.code() == dflow::Code::data_loss || error.code() == dflow::Code::unimplemented);
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

void read_npy(std::string_view file) {
  dflow::AnyTensor tensor;
  try {
    tensor = dflow::parse_npy(bytes_of(file));
  } catch (const dflow::Error& error) {
    return require_known(error);
  }
  for (const bool is_other : {false, true}) {
    const dflow::NpyOptions options{is_other ? 2 : 1, is_other, is_other};
    require(bitwise_equal(dflow::parse_npy(bytes_of(dflow::to_npy(tensor, options))), tensor));
  }
}

void read_npz(dflow::FileSystem& files) {
  std::vector<dflow::NamedTensor> tensors;
  try {
    tensors = dflow::read_npz(files, "/file.npz");
  } catch (const dflow::Error& error) {
    return require_known(error);
  }
  for (const dflow::NamedTensor& one : tensors) {
    require(one.name.empty() || dflow::read_npz(files, "/file.npz", one.name).is_initialized());
  }
}

/// The tensors that a listing tells of have the listed type and shape.
void list_npz(dflow::FileSystem& files) {
  try {
    const dflow::NpzReader reader(files, "/file.npz");
    for (const dflow::NpzEntry& entry : reader.entries()) {
      try {
        const dflow::AnyTensor tensor = reader.read(entry.name);
        const bool is_first = &entry == &*std::ranges::find(reader.entries(), entry.name, &dflow::NpzEntry::name);
        require(!is_first || (tensor.dtype() == entry.dtype && tensor.shape() == entry.shape && entry.problem.ok()));
      } catch (const dflow::Error& error) {
        require_known(error);
      }
    }
  } catch (const dflow::Error& error) {
    require_known(error);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static dflow::MemoryFileSystem files;
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  read_npy(file);
  files.write_file_atomically("/file.npz", file);
  read_npz(files);
  list_npz(files);
  return 0;
}
