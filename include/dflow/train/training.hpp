#pragma once

#include <dflow/base/status.hpp>
#include <dflow/graph/output.hpp>

#include <source_location>

namespace dflow {

/// Whether a layer works as in training: known now, or an edge that each step is fed.
///
/// Thread safety: a value type.
/// Errors: InvalidArgument for an empty edge.
class Training {
 public:
  explicit Training(bool is_training) : is_training_(is_training) {}
  // NOLINTNEXTLINE(google-explicit-constructor): the edge says it all
  Training(const Output<bool>& edge, std::source_location where = std::source_location::current()) : edge_(edge) {
    if (!is_edge()) throw_error(Status::invalid_argument("Training: the edge is an empty Output").with_location(where));
  }

  bool is_edge() const noexcept { return edge_.is_valid(); }
  bool is_always() const noexcept { return !is_edge() && is_training_; }
  bool is_never() const noexcept { return !is_edge() && !is_training_; }
  /// The edge, if `is_edge()`.
  const AnyOutput& edge() const noexcept { return edge_; }

 private:
  bool is_training_ = false;
  AnyOutput edge_;
};

}  // namespace dflow
