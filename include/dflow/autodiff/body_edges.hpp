#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/graph/output.hpp>
#include <dflow/ops/control/functional.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace dflow::detail {

/// Restores the parts of the shape that may have been lost on the way.
AnyOutput with_shape(const AnyOutput& x, const PartialShape& shape);

/// Gives the body of a gradient the edges that it reads from bodies of functions. The gradient stands outside of them.
///
/// Thread safety: builds; see Graph.
class BodyGradientEdges : public GraphStore::ForeignEdges {
 public:
  NodeId function(std::size_t i) const { return functions_.at(i); }
  std::size_t num_functions() const noexcept { return functions_.size(); }
  const GraphStore::Function& parts(std::size_t i) const { return parts_.at(i); }

  /// Until the guard goes, all nodes built in the body that was begun read the functions' bodies through this object.
  /// `iteration`: for a loop, the iteration of the loop that the body reads.
  [[nodiscard]] ScopeGuard enter(const AnyOutput& iteration = {});

  /// Edges that leave the body that is being built.
  AnyOutput seen(const AnyOutput& edge) {
    return graph_.is_inside(body_.function, edge.node().function) ? edge : bring(edge);
  }

  AnyOutput bring(const AnyOutput& edge) override;
  std::size_t depth() const noexcept override { return 1 + (outer_ == nullptr ? 0 : outer_->depth()); }
  std::size_t count_call() noexcept override { return outer_ == nullptr ? ++num_calls_ : outer_->count_call(); }

 protected:
  explicit BodyGradientEdges(GraphStore& graph) : graph_(graph) {}

  void add(NodeId function, GraphStore::Function parts);
  /// Builds the edge that stands for an edge of the functions' bodies, in the body that was begun.
  virtual AnyOutput build_kept(const AnyOutput& edge) = 0;
  /// The edge that stands for an edge of no body.
  virtual AnyOutput bring_other(const AnyOutput& edge) = 0;
  /// The element of a list that has the value of `edge`.
  AnyOutput element(const AnyOutput& list, const AnyOutput& number, const AnyOutput& edge);

  GraphStore& graph_;
  std::shared_ptr<GraphStore::ForeignEdges> outer_;
  AnyOutput iteration_;

 private:
  AnyOutput make(const AnyOutput& edge);

  std::vector<NodeId> functions_;
  std::vector<GraphStore::Function> parts_;
  std::size_t num_calls_ = 0;  ///< of the outermost
  GraphStore::Scope body_;
  std::map<std::pair<NodeId, std::int32_t>, AnyOutput> brought_;
};

/// The edges of the bodies that a call runs: the call keeps their values.
class KeptEdges final : public BodyGradientEdges {
 public:
  /// Errors: InvalidArgument for functions that the call cannot run.
  KeptEdges(GraphStore& graph, NodeId call);

  const Node& node() const { return graph_.node(call_); }
  /// The edges in the call's body that its captures stand for. Empty: they stand for its inputs.
  std::span<const Endpoint> captured() const noexcept { return captured_; }
  /// How many iterations the loop has had, for nodes built in the current scope.
  AnyOutput count();
  /// The list that the tape of that name gives (`TapeEdges`), for nodes built in the current scope.
  AnyOutput tape(const std::string& name);

 private:
  AnyOutput build_kept(const AnyOutput& edge) override;
  AnyOutput bring_other(const AnyOutput& edge) override;
  void add(const std::string& name);
  template <class O>
  AnyOutput build_beside(KeptValueAttrs attrs, const TypeArgs& types);
  AnyOutput out_of_call(const AnyOutput& edge);

  const NodeId call_;
  std::vector<Endpoint> captured_;
};

/// The edges of the body of a function that calls itself, for the gradient of all its calls. A node of the function's
/// own body, the tape, lists the values that the gradient reads. Each call keeps its tape, and gives it to the call of
/// the gradient. The tapes of the calls in the body are among the values. So nothing is computed again: random numbers
/// are those that were drawn, and effects happen once.
class TapeEdges final : public BodyGradientEdges {
 public:
  /// The function is the one that `of` calls. `tape`: the list, an argument of the gradient.
  TapeEdges(GraphStore& graph, const KeptEdges& of, AnyOutput tape);

  /// A name for the tape of that function.
  static std::string new_name(GraphStore& graph, NodeId function);
  /// Builds the tape, of all edges that have been read.
  void build_tape(const std::string& name);

 private:
  AnyOutput build_kept(const AnyOutput& edge) override;
  /// The gradient stands beside the function, and sees what the function sees.
  AnyOutput bring_other(const AnyOutput& edge) override { return edge; }

  const AnyOutput tape_;
  std::vector<Endpoint> kept_;
};

}  // namespace dflow::detail
