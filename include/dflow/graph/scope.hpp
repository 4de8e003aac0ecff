#pragma once

#include <utility>

namespace dflow {

class GraphStore;

/// Ends a scope of a graph (device, name, control dependencies, colocation) when it is destroyed. Scopes nest: guards end
/// in the reverse order of their making, as local variables do.
///
/// Thread safety: belongs to the thread that builds the graph.
class [[nodiscard]] ScopeGuard {
 public:
  explicit ScopeGuard(GraphStore* graph) noexcept : graph_(graph) {}
  ScopeGuard(ScopeGuard&& other) noexcept : graph_(std::exchange(other.graph_, nullptr)) {}
  ScopeGuard& operator=(ScopeGuard&&) = delete;
  ~ScopeGuard();

 private:
  GraphStore* graph_;
};

}  // namespace dflow
