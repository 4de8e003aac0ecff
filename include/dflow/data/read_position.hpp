#pragma once

#include <dflow/base/files/byte_reader.hpp>
#include <dflow/base/status.hpp>
#include <dflow/data/stream.hpp>

#include <cstdint>

namespace dflow::data {

/// How many elements, epochs, rounds or draws there have been, as a state says. Errors: DataLoss for more than there
/// can be, from which counting on would wrap.
inline std::uint64_t read_position(ByteReader& in) {
  const std::uint64_t position = in.varint();
  if (position > max_position) throw_error(Status::data_loss("an iterator's state overflows"));
  return position;
}

}  // namespace dflow::data
