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

// What typed builders of functions, branches and loops call, whatever the types of edges.

/// What a function gives: edges, and what runs with every call.
struct BodyResults {
  std::vector<AnyOutput> edges;
  std::vector<Operation> targets;
};

using BuildBody = FunctionRef<BodyResults(std::span<const AnyOutput> arguments)>;

/// A branch for each name; `build_it` builds that of a number. With a bool `which`, two: the first for true. Errors:
/// InvalidArgument for results that differ in number or element types.
BuiltNode any_branch(const AnyOutput& which, const std::vector<std::string>& branch_names,
                     FunctionRef<BodyResults(std::size_t branch)> build_it, std::string_view name, const At& at);
/// "branch_0", "branch_1", ...
std::vector<std::string> numbered_branches(std::size_t n);

/// A function that was built, as its callers know it.
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
  /// Of one whose body is being built, and calls it: what is said of its results.
  std::vector<PartialShape> result_shapes = {};
  bool is_open = false;
  bool is_inlined = false;  ///< its calls are, whatever the function says

  /// The results have the shapes that the arguments' give them. Errors: InvalidArgument for arguments of other shapes
  /// than were declared, or that the body does not take.
  BuiltNode call(std::span<const AnyOutput> arguments, const At& at) const;
};

/// No shapes: nothing is known of them. Errors: InvalidArgument for shapes that are neither none nor as many as the
/// element types.
FunctionHandle define_function(GraphStore& graph, std::string_view name, std::vector<DType> types,
                               std::vector<PartialShape> shapes, BuildBody build_it, const At& at,
                               FunctionBegin::Attrs attrs = {});

/// What is known of a function that calls itself before its body is built.
struct Recursion {
  std::vector<DType> argument_types;
  std::vector<PartialShape> argument_shapes;  ///< none: nothing is known of them
  std::vector<DType> result_types;
  std::vector<PartialShape> result_shapes;  ///< as those of the arguments
  std::vector<Endpoint> captures = {};      ///< in their order; what the body reads besides is found
};
using BuildRecursion = FunctionRef<BodyResults(const FunctionHandle& self, std::span<const AnyOutput> arguments)>;

/// Builds the body again where it reads what was not known before. Errors: InvalidArgument for shapes that are neither
/// none nor as many as the element types, results of other element types or shapes, and a body that reads something
/// else each time it is built.
FunctionHandle define_recursion(GraphStore& graph, std::string_view name, Recursion known, BuildRecursion build_it,
                                const At& at);

/// The same under this name, from the graph's root, and in its collection "functions". Errors: AlreadyExists where the
/// graph has a node or a name scope of that name.
FunctionHandle register_function(GraphStore& graph, std::string_view name, std::vector<DType> types,
                                 std::vector<PartialShape> shapes, BuildBody build_it, const At& at,
                                 FunctionBegin::Attrs attrs = {});

/// A function that is there, whoever built it. Errors: NotFound if there is none of that name; InvalidArgument if it is
/// not finished, or its arguments and results are not of these element types (`invalid`: of any).
FunctionHandle find_function(GraphStore& graph, std::string_view name, std::span<const DType> argument_types,
                             std::span<const DType> result_types, const At& at);

/// A function without arguments, called where it is built.
BuiltNode any_call(GraphStore& graph, BuildBody build_it, std::string_view name, const At& at,
                   FunctionBegin::Attrs attrs = {});

struct LoopOptions {
  std::span<const PartialShape> shapes = {};  ///< of the variables in all iterations; none: those of their first values
  std::int64_t parallel_iterations = 10;
  std::int64_t max_kept_bytes = -1;
  // What errors say: "KIND: VARIABLE 0 ...", where 0 is the first that a user knows.
  std::string_view kind = "while_loop";
  std::string_view variable = "variable";
  std::size_t num_unnamed = 0;  ///< variables before it
};

/// Errors: InvalidArgument for a condition that is no bool [], and for variables whose next value is of another element
/// type or may have another shape.
BuiltNode any_loop(std::span<const AnyOutput> initial, BuildBody condition, BuildBody body, const LoopOptions& options,
                   const At& at);

}  // namespace dflow::detail
