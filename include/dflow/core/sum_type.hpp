#pragma once

#include <dflow/core/dtype.hpp>

#include <type_traits>

namespace dflow::detail {

/// The type of a sum whose terms come one after the other: over the iterations of a loop, the calls of a function,
/// gradients, replicas, steps. It is float for 16-bit floats, for a sum that is rounded with each term stands still:
/// in bfloat16, 256 + 1 is 256. The sum is rounded once, when all terms are there.
template <class T>
using SumType = std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float, T>;

constexpr bool is_16_bit_float(DType dtype) noexcept { return dtype == DType::float16 || dtype == DType::bfloat16; }

/// The same for types known at run time.
constexpr DType sum_type(DType dtype) noexcept { return is_16_bit_float(dtype) ? DType::float32 : dtype; }

}  // namespace dflow::detail
