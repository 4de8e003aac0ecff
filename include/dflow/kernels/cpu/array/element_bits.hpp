#pragma once

#include <dflow/core/dtype.hpp>

#include <cstdint>

/// Numbers as bits, for kernels that compare them without knowing their type.
namespace dflow::detail {

/// The bits of an element, or of a part of a complex128, that are not all 0 unless it is zero: all but signs of floats.
constexpr std::uint64_t magnitude_bits(DType dtype) noexcept {
  switch (dtype) {
    case DType::float16:
    case DType::bfloat16:
      return 0x7FFF;
    case DType::float32:
      return 0x7FFFFFFF;
    case DType::complex64:
      return 0x7FFFFFFF7FFFFFFF;
    case DType::float64:
    case DType::complex128:
      return 0x7FFFFFFFFFFFFFFF;
    default:
      return ~std::uint64_t{0};
  }
}

/// The magnitude bits of an infinity, or of a part that is one: larger ones are of a NaN. All bits for types without
/// it.
constexpr std::uint64_t infinity_bits(DType dtype) noexcept {
  switch (dtype) {
    case DType::float16:
      return 0x7C00;
    case DType::bfloat16:
      return 0x7F80;
    case DType::float32:
    case DType::complex64:
      return 0x7F800000;
    case DType::float64:
    case DType::complex128:
      return 0x7FF0000000000000;
    default:
      return ~std::uint64_t{0};
  }
}

}  // namespace dflow::detail
