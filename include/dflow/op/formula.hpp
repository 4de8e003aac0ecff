#pragma once

#include <dflow/core/dtype.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dflow {

/// The computation of an elementwise op on one element of each input: its recorded expression (`op/symbol.hpp`). Each
/// step takes numbers made by earlier steps. One formula serves all element types; its values are truths, or numbers
/// of the type that the expression is evaluated in.
///
/// Thread safety: a value type.
struct Formula {
  enum class Operation : std::uint8_t {
    argument,  ///< number `a` of the op's inputs
    constant,
    truth,  ///< `whole` is 0 or 1
    // From truths and two numbers.
    choose,  ///< a ? b : c, of two numbers or of two truths
    // From numbers to truths.
    less,
    less_equal,
    equal,
    not_equal,
    // From numbers to numbers.
    negate,
    add,
    subtract,
    multiply,
    divide,
    maximum,
    minimum,
    remainder,
    power,
    absolute,
    exp,
    log,
    log1p,
    expm1,
    sqrt,
    sin,
    cos,
    tan,
    tanh,
    sinh,
    cosh,
    atan,
    erf,
    erfc,
    floor,
    ceil,
    rint,
    lgamma,
    // From a number or truth to the element type of the result.
    convert,
  };

  struct Step {
    Operation operation = Operation::constant;
    bool is_whole = false;  ///< of a constant: it is `whole`, else `real`
    std::int32_t a = -1, b = -1, c = -1;
    std::int64_t whole = 0;
    double real = 0;
  };

  /// The shapes that the inputs must have. For other shapes the op's own kernel computes, or reports the error.
  enum class Shapes : std::uint8_t {
    broadcast,       ///< any that broadcast together
    same,            ///< one shape
    last_dimension,  ///< of a rank of at least 2, and a vector along its last dimension
  };

  std::vector<Step> steps;
  std::int32_t result = -1;  ///< the step that gives it
  std::int32_t num_arguments = 1;
  std::uint32_t types = 0;   ///< a bit for each element type that it holds for
  bool gives_truth = false;  ///< the op yields bool
  bool rounds_once = false;  ///< floats of 16 bits are computed in float, the result is rounded; else each step is
  Shapes shapes = Shapes::broadcast;

  bool holds_for(DType dtype) const noexcept { return in_mask(dtype, types); }
};

constexpr bool is_truth(Formula::Operation operation) noexcept {
  return operation == Formula::Operation::truth ||
         (operation >= Formula::Operation::less && operation <= Formula::Operation::not_equal);
}

}  // namespace dflow
