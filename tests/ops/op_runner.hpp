#pragma once

#include "oracle.hpp"

#include <dflow/graph/graph.hpp>
#include <dflow/session/session.hpp>

#include <memory>
#include <source_location>
#include <vector>

namespace dflow::testing {

enum class InputsAs {
  feeds,        ///< placeholders of unknown shape: everything is checked when the step runs
  known_feeds,  ///< placeholders of the tensors' shapes
  constants,    ///< constants: everything may be checked and folded early
};

/// A case's op in a graph of its own, ready to run.
struct BuiltCase {
  Graph graph;
  std::vector<Feed> feeds;
  std::vector<AnyOutput> inputs;   ///< edges of the case's inputs; for a variable, the edge that reads it
  std::vector<AnyOutput> outputs;  ///< the edges to compare; for an update op the reads of its variables, after it ran
  std::vector<Operation> before;   ///< initialisers of variables, to be run first
  std::vector<Operation> updates;  ///< the update itself, to be run before the outputs are read

  BuiltCase() : graph(GraphOptions{.seed = 7}) {}
  BuiltCase(const BuiltCase&) = delete;
};

/// Builds the case's op for element type `t`, all of it at one line of the program. It throws the builder's errors,
/// and std::runtime_error for an op that is not in the standard table.
std::unique_ptr<BuiltCase> build_case(const OracleCase& oracle_case, DType t, InputsAs inputs_as,
                                      const std::vector<std::string>& device_of_input = {},
                                      std::source_location where = std::source_location::current());

/// Runs a built case in `session` and returns its outputs.
std::vector<AnyTensor> run_case(const BuiltCase& built, Session& session);

/// An attribute of an oracle case as the graph holds it; a tensor under test gets element type `t`.
AttrValue attr_from_json(const nlohmann::json& value, AttrKind kind, DType t);

}  // namespace dflow::testing
