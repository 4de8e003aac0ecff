// Reads bytes as a saved graph, once as they are and once with a right checksum, and imports the graph.
#include <dflow/base/files/crc32c.hpp>
#include <dflow/graph/graph_def_archive.hpp>

#include "graph_def_fuzz.hpp"
#include "graph_def_mutator.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace {

void read(std::string_view bytes) {
  dflow::GraphDef def;
  try {
    def = dflow::from_binary(bytes);
  } catch (const dflow::Error& error) {
    const dflow::Code code = error.code();
    dflow::fuzz::require(code == dflow::Code::data_loss || code == dflow::Code::invalid_argument ||
                         code == dflow::Code::out_of_range);
    return;
  }
  dflow::fuzz::require(dflow::from_binary(dflow::to_binary(def)) == def);
  dflow::fuzz::import(def);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string bytes;
  if (size != 0) bytes.assign(reinterpret_cast<const char*>(data), size);
  read(bytes);
  constexpr std::size_t body = 12;
  if (size <= body) return 0;
  const std::uint32_t crc = dflow::mask_crc32c(dflow::crc32c(std::string_view(bytes).substr(body)));
  if (std::memcmp(bytes.data() + 8, &crc, sizeof crc) == 0) return 0;
  std::memcpy(bytes.data(), "dfGRAPH\n", 8);
  std::memcpy(bytes.data() + 8, &crc, sizeof crc);
  read(bytes);
  return 0;
}

/// libFuzzer's own; a program that replays a corpus has none.
extern "C" [[gnu::weak]] std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

/// One time in four as bytes, else as a graph, if it is one.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  if (seed % 4 != 0) {
    try {
      dflow::GraphDef def = dflow::from_binary(std::string_view(reinterpret_cast<const char*>(data), size));
      dflow::fuzz::GraphDefMutator(def, seed).mutate();
      const std::string bytes = dflow::to_binary(def);
      if (bytes.size() <= max_size) {
        std::memcpy(data, bytes.data(), bytes.size());
        return bytes.size();
      }
    } catch (const dflow::Error&) {  // of bytes that are none
    }
  }
  return LLVMFuzzerMutate == nullptr ? size : LLVMFuzzerMutate(data, size, max_size);
}
