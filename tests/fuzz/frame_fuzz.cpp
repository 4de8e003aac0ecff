// Reads bytes as the header of a frame, once as they are and once with its checksum made right.
#include <dflow/base/files/crc32c.hpp>
#include <dflow/base/status.hpp>
#include <dflow/net/protocol/frame.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>

namespace {

constexpr std::uint64_t longest = 1 << 20;

void read(const dflow::net::FrameHeaderBytes& bytes) {
  dflow::net::FrameHeader header;
  try {
    header = dflow::net::read_frame_header(bytes, longest);
  } catch (const dflow::Error&) {
    return;
  }
  if (header.length > longest || dflow::net::to_bytes(header) != bytes) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  dflow::net::FrameHeaderBytes bytes{};
  if (size != 0) std::memcpy(bytes.data(), data, std::min(size, bytes.size()));
  read(bytes);
  constexpr std::size_t checked = 28;
  const std::uint32_t crc = dflow::crc32c(std::span<const std::byte>(bytes).first(checked));
  std::memcpy(bytes.data() + checked, &crc, sizeof crc);
  read(bytes);
  return 0;
}
