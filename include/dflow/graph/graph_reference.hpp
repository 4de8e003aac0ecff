#pragma once

#include <atomic>
#include <cstdint>

namespace dflow {

class GraphStore;

namespace detail {

/// The place where handles look for their graph. A later graph takes it over when the graph is gone, and it is never
/// freed. So a handle that has outlived its graph may still read the number here, which is not its graph's any more.
struct GraphAnchor {
  std::atomic<std::uint64_t> number{0};  ///< `GraphStore::number` of the graph that is here; 0: none
  GraphStore* graph = nullptr;
  GraphAnchor* next_free = nullptr;
};

[[noreturn]] void throw_graph_is_gone();

}  // namespace detail

/// Refers to a graph and does not keep it alive. It knows whether the graph is gone. As small as two pointers.
///
/// Thread safety: a value type. One thread must not use it while another one destroys the graph.
class GraphReference {
 public:
  GraphReference() = default;
  /// Precondition: `graph` lives, or is null.
  explicit GraphReference(const GraphStore* graph) noexcept;

  bool is_empty() const noexcept { return anchor_ == nullptr; }
  /// Whether the graph is gone.
  bool is_dangling() const noexcept {
    return anchor_ != nullptr && anchor_->number.load(std::memory_order_relaxed) != number_;
  }
  /// Null if it is empty. Errors: InvalidArgument if the graph is gone.
  GraphStore* get() const {
    if (anchor_ == nullptr) return nullptr;
    if (is_dangling()) [[unlikely]]
      detail::throw_graph_is_gone();
    return anchor_->graph;
  }
  /// Whether it refers to `graph`, and not to a graph that was at the same address before. Precondition: `graph`
  /// lives, or is null.
  bool is_of(const GraphStore* graph) const noexcept;

  friend bool operator==(const GraphReference&, const GraphReference&) = default;

 private:
  detail::GraphAnchor* anchor_ = nullptr;
  std::uint64_t number_ = 0;  ///< `GraphStore::number`
};

}  // namespace dflow
