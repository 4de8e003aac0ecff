#pragma once

#include <dflow/graph/node.hpp>

#include <array>
#include <atomic>
#include <cstddef>

namespace dflow {

/// A list of nodes that grows at its end and never moves a node: blocks of 64, 128, 256, ... nodes.
///
/// Thread safety: one thread at a time changes it; any number of others read the nodes below `size()` meanwhile,
/// without a lock. A node is written before the size that covers it is published, and not after.
class NodeList {
 public:
  NodeList() = default;
  NodeList(const NodeList&) = delete;
  NodeList& operator=(const NodeList&) = delete;
  ~NodeList();

  /// The nodes that everybody may read.
  std::size_t size() const noexcept { return published_.load(std::memory_order_acquire); }
  /// All published nodes, and the nodes appended since the last `publish`, for the thread that appends.
  std::size_t num_appended() const noexcept { return appended_; }
  /// Precondition: i < size(), or i < num_appended() on the thread that appends.
  const Node& operator[](std::size_t i) const noexcept {
    const std::size_t block = block_of(i);
    return blocks_[block][i - first_in(block)];
  }

  /// Makes room, so that the next `append` cannot fail.
  void reserve_one();
  /// Precondition: `reserve_one` has been called since the last `append`.
  void append(Node&& node) noexcept;
  /// Lets everybody read all appended nodes.
  void publish() noexcept { published_.store(appended_, std::memory_order_release); }
  /// Destroys the nodes from `first` on. Precondition: first >= size().
  void drop_from(std::size_t first) noexcept;

 private:
  static constexpr std::size_t first_block = 64;
  static constexpr std::size_t max_blocks = 26;  // 2^32 nodes

  static std::size_t block_of(std::size_t i) noexcept;
  static std::size_t first_in(std::size_t block) noexcept { return (first_block << block) - first_block; }

  std::array<Node*, max_blocks> blocks_{};
  std::size_t appended_ = 0;
  std::atomic<std::size_t> published_{0};
};

inline std::size_t NodeList::block_of(std::size_t i) noexcept {
  const auto blocks = static_cast<unsigned long long>(i / first_block + 1);
  return static_cast<std::size_t>(63 - __builtin_clzll(blocks));
}

}  // namespace dflow
