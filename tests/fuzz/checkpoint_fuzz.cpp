// Reads bytes as the index of a checkpoint beside a small shard, once as they are and once with its checksums made
// right.
#include <dflow/base/files/crc32c.hpp>
#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/base/status.hpp>
#include <dflow/core/checkpoint/checkpoint_reader.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

void put_u64(std::string& bytes, std::size_t at, std::uint64_t value) {
  std::memcpy(bytes.data() + at, &value, sizeof(value));
}

void put_crc(std::string& bytes, std::size_t at, std::size_t begin, std::size_t end) {
  const std::uint32_t crc = dflow::crc32c(std::string_view(bytes).substr(begin, end - begin));
  std::memcpy(bytes.data() + at, &crc, sizeof(crc));
}

void read(const std::string& bytes) {
  dflow::CheckpointIndex index;
  try {
    index = dflow::CheckpointIndex::parse(std::as_bytes(std::span(bytes)));
  } catch (const dflow::Error&) {
    return;
  }
  const std::string again = index.serialize();
  if (dflow::CheckpointIndex::parse(std::as_bytes(std::span(again))) != index) std::abort();
  dflow::MemoryFileSystem files;
  try {
    for (const dflow::CheckpointShard& shard : index.shards) {
      if (shard.size > 4096) return;
      files.write_file_atomically(shard.file, std::string(static_cast<std::size_t>(shard.size), '\0'));
    }
    files.write_file_atomically("m.index", bytes);
    const dflow::CheckpointReader reader(files, "m");
    for (const dflow::CheckpointEntry& entry : index.entries) {
      try {
        static_cast<void>(reader.read(entry.name));
      } catch (const dflow::Error&) {  // the next one may do
      }
    }
    reader.verify();
  } catch (const dflow::Error&) {  // names and checksums may be anything
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  read(bytes);
  constexpr std::size_t header = dflow::CheckpointIndex::header_bytes;
  if (size < header + 4) return 0;
  put_u64(bytes, 32, size - header - 4);
  put_crc(bytes, header - 4, 0, header - 4);
  put_crc(bytes, size - 4, header, size - 4);
  read(bytes);
  return 0;
}
