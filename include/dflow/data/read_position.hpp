#pragma once

#include <dflow/base/files/byte_reader.hpp>
#include <dflow/base/status.hpp>
#include <dflow/data/stream.hpp>

#include <cstdint>

namespace dflow::data {

/// Reads a number of elements, epochs, rounds or draws from a state. Errors: DataLoss if the number exceeds
/// `max_position`, from which counting on would wrap.
inline std::uint64_t read_position(ByteReader& in) {
  const std::uint64_t position = in.varint();
  if (position > max_position) throw_error(Status::data_loss("an iterator's state overflows"));
  return position;
}

}  // namespace dflow::data
