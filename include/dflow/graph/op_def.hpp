#pragma once

#include <dflow/core/dtype.hpp>
#include <dflow/graph/attr_value.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace dflow {

class InferContext;
class GradientContext;

/// One input or output of an op's signature.
struct ArgDef {
  enum class Kind : std::uint8_t {
    fixed,       ///< one edge of element type `dtype`
    param,       ///< one edge of the node's type parameter `param`
    param_list,  ///< any number of edges of type parameter `param`
    any_list,    ///< any number of edges of any element types
  };
  Kind kind = Kind::fixed;
  DType dtype = DType::invalid;
  std::uint8_t param = 0;

  constexpr bool is_list() const noexcept { return kind == Kind::param_list || kind == Kind::any_list; }
};

/// One type parameter of an op: its attribute name ("T", "SrcT") and a bit per allowed element type.
struct TypeParamDef {
  std::string_view name;
  std::uint32_t allowed = 0;

  constexpr bool allows(DType dtype) const noexcept { return (allowed >> static_cast<unsigned>(dtype)) & 1u; }
};

/// Everything the graph needs to know about an op, folded by the compiler from the op's struct (`op_def<Op>`).
///
/// Thread safety: immutable.
struct OpDef {
  std::string_view name;
  std::span<const TypeParamDef> type_params;
  std::span<const ArgDef> inputs;   ///< at most one of them is a list
  std::span<const ArgDef> outputs;  ///< at most one of them is a list
  std::span<const AttrField> attr_fields;
  std::shared_ptr<void> (*make_attrs)() = nullptr;  ///< default attributes
  /// Length of the list output; null where no output is a list.
  std::int64_t (*output_list_size)(const void* attrs) = nullptr;
  void (*infer)(InferContext&) = nullptr;
  /// Null where the op has no gradient: an error when one is asked for.
  void (*gradient)(GradientContext&) = nullptr;
  /// The op's output does not depend smoothly on its inputs (Shape, ArgMax, comparisons): gradients stop there.
  bool gradient_stops = false;
  /// Keeps state or has an effect: never folded, merged, or run more than once in a step.
  bool is_stateful = false;

  std::size_t num_fixed_inputs() const noexcept {
    std::size_t count = 0;
    for (const ArgDef& arg : inputs) count += arg.is_list() ? 0 : 1;
    return count;
  }
  bool has_list_input() const noexcept { return num_fixed_inputs() != inputs.size(); }
};

}  // namespace dflow
