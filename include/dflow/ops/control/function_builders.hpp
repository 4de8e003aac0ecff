#pragma once

#include <dflow/base/function_ref.hpp>
#include <dflow/ops/control/functional.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dflow::detail {

// Functions that the typed builders of functions, branches and loops call, for edges of any type.

/// The results of a function: its edges, and the operations that run with every call.
struct BodyResults {
  std::vector<AnyOutput> edges;
  std::vector<Operation> targets;
};

using BuildBody = FunctionRef<BodyResults(std::span<const AnyOutput> arguments)>;

/// A branch for each name; `build_it` builds the branch of a number. A bool `which` has two branches: the first is for
/// true. Errors: InvalidArgument for results that differ in number or element types.
BuiltNode any_branch(const AnyOutput& which, const std::vector<std::string>& branch_names,
                     FunctionRef<BodyResults(std::size_t branch)> build_it, std::string_view name, const At& at);
/// "branch_0", "branch_1", ...
std::vector<std::string> numbered_branches(std::size_t n);

/// A finished function, as its callers know it.
///
/// Thread safety: a value type; `call` builds.
struct FunctionHandle {
  GraphStore* graph = nullptr;
  NodeId begin;
  std::string name;
  std::vector<DType> argument_types;
  std::vector<PartialShape> argument_shapes;
  std::vector<Endpoint> captures;
  std::vector<DType> result_types;
  /// The declared shapes of the results, while the body is being built and calls the function.
  std::vector<PartialShape> result_shapes = {};
  bool is_open = false;
  bool is_inlined = false;  ///< its calls are inlined, even if the function is not

  /// The results have the shapes that follow from the arguments' shapes. Errors: InvalidArgument for arguments of
  /// other shapes than were declared, or that the body does not take.
  BuiltNode call(std::span<const AnyOutput> arguments, const At& at) const;
};

/// No shapes: all are unknown. Errors: InvalidArgument if the number of shapes is neither zero nor the number of
/// element types.
FunctionHandle define_function(GraphStore& graph, std::string_view name, std::vector<DType> types,
                               std::vector<PartialShape> shapes, BuildBody build_it, const At& at,
                               FunctionBegin::Attrs attrs = {});

/// The facts known of a function that calls itself, before its body is built.
struct Recursion {
  std::vector<DType> argument_types;
  std::vector<PartialShape> argument_shapes;  ///< none: all are unknown
  std::vector<DType> result_types;
  std::vector<PartialShape> result_shapes;  ///< likewise
  std::vector<Endpoint> captures = {};      ///< in their order; other edges that the body reads are found
};
using BuildRecursion = FunctionRef<BodyResults(const FunctionHandle& self, std::span<const AnyOutput> arguments)>;

/// Builds the body again if it reads edges that were not known before. Errors: InvalidArgument if the number of shapes
/// is neither zero nor the number of element types; if results have other element types or shapes; if the body reads
/// something else each time.
FunctionHandle define_recursion(GraphStore& graph, std::string_view name, Recursion known, BuildRecursion build_it,
                                const At& at);

/// The same under this exact name, from the graph's root, and in the graph's collection "functions". Errors:
/// AlreadyExists if the graph has a node or a name scope of that name.
FunctionHandle register_function(GraphStore& graph, std::string_view name, std::vector<DType> types,
                                 std::vector<PartialShape> shapes, BuildBody build_it, const At& at,
                                 FunctionBegin::Attrs attrs = {});

/// A function that the graph already has. Errors: NotFound if there is none of that name; InvalidArgument if it is not
/// finished, or if its arguments and results have other element types (`invalid`: any type).
FunctionHandle find_function(GraphStore& graph, std::string_view name, std::span<const DType> argument_types,
                             std::span<const DType> result_types, const At& at);

/// Builds a function without arguments and calls it in the same place.
BuiltNode any_call(GraphStore& graph, BuildBody build_it, std::string_view name, const At& at,
                   FunctionBegin::Attrs attrs = {});

struct LoopOptions {
  std::span<const PartialShape> shapes = {};  ///< of the variables in all iterations; none: as of their first values
  std::int64_t parallel_iterations = 10;
  std::int64_t max_kept_bytes = -1;
  // For errors, which say "KIND: VARIABLE 0 ...": 0 is the first variable that a user knows.
  std::string_view kind = "while_loop";
  std::string_view variable = "variable";
  std::size_t num_unnamed = 0;  ///< variables before variable 0
};

/// Errors: InvalidArgument if the condition is not a bool [], and if a variable's next value has another element type
/// or may have another shape.
BuiltNode any_loop(std::span<const AnyOutput> initial, BuildBody condition, BuildBody body, const LoopOptions& options,
                   const At& at);

}  // namespace dflow::detail
