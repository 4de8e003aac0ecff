#pragma once

#include <dflow/graph/frame_layout.hpp>
#include <dflow/graph/step_graph.hpp>
#include <dflow/kernels/kernel.hpp>
#include <dflow/runtime/plan.hpp>

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace dflow::detail {

/// A part of a graph that passes tensors on alive or dead, compiled for the loop that runs it: each frame has slots and
/// counters of its own, of which an iteration of it has a copy.
///
/// Thread safety: immutable after `compile`.
class FramePlan {
 public:
  using Index = std::int32_t;
  static constexpr Index kept = std::numeric_limits<Index>::max();  ///< as often is read what is never let go
  static constexpr bool is_kept(Index reads) noexcept { return reads > kept / 2; }

  /// What a node's output, or its end (output -1), is waited for by.
  struct Edge {
    Index output = -1;
    Index node = 0;
    Index input = -1;  ///< -1: by a control edge
  };
  struct PlannedNode {
    const Node* node = nullptr;
    OpRole role = OpRole::ordinary;
    const AnyKernel* kernel = nullptr;  ///< null for what the loop does itself
    KernelContext::Wiring wiring;       ///< inputs in the frame it runs in, outputs in the one it gives to
    Index frame = 0;
    Index gives_to = 0;
    Index number = 0;               ///< in its frame
    Index pending = 0;              ///< inputs that change, and control inputs; of a Merge only these
    Index num_data = 0;             ///< of a Merge: inputs in the first iteration
    Index merge = -1;               ///< of a NextIteration: what it leads to
    Index place = -1;               ///< of a NextIteration: among the inputs of that
    bool has_next = false;          ///< a Merge that NextIterations lead to
    bool is_constant = false;       ///< an Enter
    bool is_late_constant = false;  ///< a constant that waits for something
    bool is_trusted = true;
    bool is_expensive = false;  ///< worth another thread
    Index edge_begin = 0;
    Index edge_end = 0;
  };
  struct Frame {
    std::string name;
    Index num_enters = 0;
    std::int64_t parallel_iterations = 1;
    Index num_slots = 0;
    std::vector<Index> pending;  ///< of its nodes, by their numbers
    std::vector<Index> reads;    ///< of its slots; those of constants and fetches are never let go
    std::vector<std::pair<SlotId, AnyTensor>> constants;
    std::vector<SlotId> late;                     ///< of constants that wait for something
    std::vector<std::pair<Index, Index>> merges;  ///< that have an input from the beginning, and its number
  };

  static std::shared_ptr<const FramePlan> compile(const StepGraph& body, const PlanOptions& options);

  std::span<const PlannedNode> nodes() const noexcept { return nodes_; }
  const PlannedNode& node(Index i) const noexcept { return nodes_[static_cast<std::size_t>(i)]; }
  std::span<const Frame> frames() const noexcept { return frames_; }
  const Frame& frame(Index i) const noexcept { return frames_[static_cast<std::size_t>(i)]; }
  std::span<const Edge> edges_of(const PlannedNode& node) const noexcept {
    return std::span(edges_).subspan(static_cast<std::size_t>(node.edge_begin),
                                     static_cast<std::size_t>(node.edge_end - node.edge_begin));
  }
  /// Slots of the outermost frame.
  std::span<const SlotId> feeds() const noexcept { return feeds_; }
  std::span<const SlotId> fetches() const noexcept { return fetches_; }
  /// Nodes that wait for nothing.
  std::span<const Index> first_nodes() const noexcept { return first_; }
  const DeviceContext& device() const noexcept { return *device_; }
  int num_threads() const noexcept { return num_threads_; }

 private:
  friend class FramePlanCompiler;
  FramePlan() = default;

  std::shared_ptr<const void> device_owner_;  // first, so destroyed last
  StepGraph body_;
  const DeviceContext* device_ = nullptr;
  int num_threads_ = 1;
  std::vector<std::unique_ptr<AnyKernel>> kernels_;
  std::vector<std::shared_ptr<AnyKernel>> kept_kernels_;
  std::vector<DeviceConstants::Ref> shared_constants_;
  std::vector<PlannedNode> nodes_;
  std::vector<Frame> frames_;
  std::vector<Edge> edges_;
  std::vector<SlotId> input_slots_;
  std::vector<std::uint8_t> host_outputs_;
  std::vector<SlotId> feeds_;
  std::vector<SlotId> fetches_;
  std::vector<Index> first_;
};

}  // namespace dflow::detail

#if defined(DFLOW_HEADER_ONLY)
#include <dflow/runtime/frames/frame_plan.ipp>
#endif
