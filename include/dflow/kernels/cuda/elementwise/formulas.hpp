#pragma once

#include <dflow/op/formula.hpp>

namespace dflow::cuda {

// Formulas for each element, of ops that have no expression of their own. In a chain they take inputs of one shape,
// unless the comment says otherwise.

/// Takes a condition and two numbers, and returns one of the numbers.
const Formula* select_formula() noexcept;
/// The first number as the result's element type.
const Formula* cast_formula() noexcept;
/// The sum, along the last dimension, of a tensor and a vector.
const Formula* bias_formula() noexcept;
/// The sum of this many inputs; null for none, and for more than a kernel takes.
const Formula* sum_formula(int num_inputs) noexcept;

}  // namespace dflow::cuda
