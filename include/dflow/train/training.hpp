#pragma once

#include <dflow/graph/output.hpp>

namespace dflow {

/// Whether a layer works as in training: known now, or an edge that each step is fed.
///
/// Thread safety: a value type.
class Training {
 public:
  explicit Training(bool is_training) : is_training_(is_training) {}
  Training(const Output<bool>& edge) : edge_(edge) {}  // NOLINT(google-explicit-constructor)

  bool is_edge() const noexcept { return edge_.is_valid(); }
  bool is_always() const noexcept { return !is_edge() && is_training_; }
  bool is_never() const noexcept { return !is_edge() && !is_training_; }
  /// Where `is_edge()`.
  const AnyOutput& edge() const noexcept { return edge_; }

 private:
  bool is_training_ = false;
  AnyOutput edge_;
};

}  // namespace dflow
