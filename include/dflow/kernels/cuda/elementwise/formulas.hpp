#pragma once

#include <dflow/op/formula.hpp>

namespace dflow::cuda {

// What ops compute of each element that have no expression of their own; in a chain they take inputs of one shape, or
// as it says.

/// Of a condition and two numbers, one of these.
const Formula* select_formula() noexcept;
/// The first number as the result's element type.
const Formula* cast_formula() noexcept;
/// The sum, along the last dimension, of a tensor and a vector.
const Formula* bias_formula() noexcept;
/// The sum of so many; null for none, and for more than a kernel takes.
const Formula* sum_formula(int num_inputs) noexcept;

}  // namespace dflow::cuda
