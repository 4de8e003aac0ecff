#pragma once

#include <dflow/base/config.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace dflow {

/// The content of a raw snappy stream, as tables of TensorFlow's checkpoints hold it (github.com/google/snappy,
/// format_description.txt).
///
/// Errors: DataLoss if it is cut short or damaged, or says that it holds more than so many bytes could;
/// ResourceExhausted if that exceeds `max_bytes`. Nothing is allocated before that is known.
std::string unsnappy(std::span<const std::byte> packed, std::uint64_t max_bytes);

}  // namespace dflow
