#pragma once

#include <dflow/kernels/cuda/elementwise/formulas.hpp>
#include <dflow/ops/internal/elementwise_chain.hpp>

#include <array>
#include <utility>

namespace dflow::cuda {

namespace detail {

/// A formula with this many arguments, its first steps. It needs no rounding except at the end; `types` are all that
/// a chain knows.
inline Formula formula_of_arguments(int num_arguments, std::uint32_t types) {
  Formula formula;
  for (int i = 0; i < num_arguments; ++i) {
    formula.steps.push_back({.operation = Formula::Operation::argument, .a = i});
  }
  formula.num_arguments = num_arguments;
  formula.types = types;
  formula.rounds_once = true;
  return formula;
}

inline std::int32_t add_step(Formula& formula, const Formula::Step& step) {
  formula.steps.push_back(step);
  return formula.result = static_cast<std::int32_t>(formula.steps.size()) - 1;
}

inline constexpr std::uint32_t numbers_and_truths = dtype_mask<concat_t<RealTypes, TypeList<bool>>>;

}  // namespace detail

const Formula* select_formula() noexcept {
  static const Formula formula = [] {
    Formula made = detail::formula_of_arguments(3, detail::numbers_and_truths);
    detail::add_step(made, {.operation = Formula::Operation::choose, .a = 0, .b = 1, .c = 2});
    made.rounds_once = false;
    made.shapes = Formula::Shapes::same;
    return made;
  }();
  return &formula;
}

const Formula* cast_formula() noexcept {
  static const Formula formula = [] {
    Formula made = detail::formula_of_arguments(1, detail::numbers_and_truths);
    detail::add_step(made, {.operation = Formula::Operation::convert, .a = 0});
    made.rounds_once = false;
    return made;
  }();
  return &formula;
}

const Formula* bias_formula() noexcept {
  static const Formula formula = [] {
    Formula made = detail::formula_of_arguments(2, dtype_mask<RealTypes>);
    detail::add_step(made, {.operation = Formula::Operation::add, .a = 0, .b = 1});
    made.shapes = Formula::Shapes::last_dimension;
    return made;
  }();
  return &formula;
}

const Formula* sum_formula(int num_inputs) noexcept {
  static const auto formulas = [] {
    std::array<Formula, max_chain_inputs> made;
    for (int n = 1; n <= max_chain_inputs; ++n) {
      Formula formula = detail::formula_of_arguments(n, dtype_mask<RealTypes>);
      formula.result = 0;
      for (std::int32_t i = 1; i < n; ++i) {
        detail::add_step(formula, {.operation = Formula::Operation::add, .a = formula.result, .b = i});
      }
      formula.shapes = Formula::Shapes::same;
      made[static_cast<std::size_t>(n) - 1] = std::move(formula);
    }
    return made;
  }();
  return num_inputs < 1 || num_inputs > max_chain_inputs ? nullptr
                                                         : &formulas[static_cast<std::size_t>(num_inputs) - 1];
}

}  // namespace dflow::cuda
