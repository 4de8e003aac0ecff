#pragma once

#include <dflow/graph/graph_def.hpp>
#include <dflow/graph/op_def.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace dflow::testing {

/// A graph around one node of an op, "call", drawn by chance: element types, attributes, shapes, values, feeding nodes.
/// Many calls are nearly valid, made from one of the oracle's cases, so that they get past the checks; many are not.
struct RandomCall {
  std::string op;
  std::uint64_t seed = 0;
  GraphDef def;
  std::vector<std::pair<std::string, AnyTensor>> feeds;
  std::vector<std::string> variables;  ///< "NAME", with nodes "NAME_assign" and "NAME_read" beside it
  std::vector<std::string> edges;      ///< data inputs; gradients are taken with respect to them
  std::vector<std::string> on_second;  ///< nodes that the second session has on another device
  int mode = 0;                        ///< how the second session differs from the first, see run_random_call
  bool draws_its_seed = false;         ///< a random op with results that differ by design

  /// Everything that is needed to build it again.
  std::string to_string() const;
};

/// The same call for the same op and seed, on every machine.
RandomCall random_call(const OpDef& op, std::uint64_t seed);

struct RandomCallOutcome {
  std::string fault;       ///< the event that must not happen; empty if there was none
  bool has_value = false;  ///< the call gave a value and no error
  bool has_gradient = false;
};

/// Runs the call, its gradients and their gradients in two sessions that must agree. Each stage gives a value in both,
/// the same to the bit, or an Error. An Error of Internal or Unknown is a fault: nothing in the library may throw an
/// error for which it has no word.
RandomCallOutcome run_random_call(const RandomCall& call);

}  // namespace dflow::testing
