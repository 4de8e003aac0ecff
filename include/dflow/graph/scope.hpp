#pragma once

#include <cstdint>
#include <memory>
#include <utility>

namespace dflow {

class GraphStore;

namespace detail {
class ScopeStack;
}

/// Ends a scope of a graph (device, name, control dependencies, colocation) when it is destroyed: that scope and no
/// other. If an outer scope ends before an inner one, the inner scope keeps the settings it took over.
///
/// Thread safety: belongs to the thread that builds the graph. May outlive the graph.
class [[nodiscard]] ScopeGuard {
 public:
  ScopeGuard(ScopeGuard&& other) noexcept = default;
  ScopeGuard& operator=(ScopeGuard&&) = delete;
  ~ScopeGuard();

 private:
  friend class GraphStore;
  ScopeGuard(std::shared_ptr<detail::ScopeStack> scopes, std::uint64_t scope) noexcept
      : scopes_(std::move(scopes)), scope_(scope) {}

  std::shared_ptr<detail::ScopeStack> scopes_;
  std::uint64_t scope_;
};

}  // namespace dflow
