#pragma once

#include <dflow/op/build.hpp>

#include <concepts>
#include <type_traits>

/// The common parts of the library's elementwise ops. No header of ops is below this header.
namespace dflow {

using FloatOrComplexTypes = concat_t<FloatTypes, ComplexTypes>;
using SignedNumberTypes = concat_t<SignedRealTypes, ComplexTypes>;

namespace detail {

/// Unsigned arithmetic at least as wide as int: overflow wraps around instead of being undefined.
template <std::integral T>
using Wrapping = std::common_type_t<std::make_unsigned_t<T>, unsigned>;

/// Fails unless all inputs agree in shape. The output has the same shape.
void infer_same_shape(InferContext& context);

}  // namespace detail

/// An elementwise op of the library that does not broadcast: its inputs have one shape. Gradients in one pass use it.
template <FixedString Name, class AllowedTypes>
struct SameShapeElementwiseOp : StandardElementwiseOp<Name, AllowedTypes> {
  static constexpr bool broadcasts = false;
  static void infer(InferContext& context) { detail::infer_same_shape(context); }
};

}  // namespace dflow
