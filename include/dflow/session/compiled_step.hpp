#pragma once

#include <dflow/graph/output.hpp>
#include <dflow/runtime/device.hpp>
#include <dflow/runtime/step.hpp>

#include <memory>
#include <mutex>
#include <vector>

namespace dflow {

/// What a step's signature (feeds, fetches, targets) was compiled to: one plan per device that takes part.
///
/// Thread safety: safe; runs take their memory from a pool of idle steps.
class CompiledStep {
 public:
  struct Part {
    Device* device = nullptr;
    std::shared_ptr<Allocator> allocator;  ///< the device's, kept by what is fetched
    std::shared_ptr<const Plan> plan;
    std::vector<std::size_t> feeds;    ///< which of the step's feeds each feed of the plan is
    std::vector<std::size_t> fetches;  ///< which of the step's fetches each fetch of the plan is
  };
  /// The memory of one run: a Step per part.
  struct Memory {
    std::vector<std::shared_ptr<Step>> steps;
  };

  std::vector<AnyOutput> feed_edges;
  std::vector<OutputInfo> feed_info;
  std::vector<Part> parts;

  std::unique_ptr<Memory> take_memory();
  void give_back(std::unique_ptr<Memory> memory, bool has_failed) noexcept;

  /// Throws InvalidArgument unless the tensors have the element types and fit the shapes of the fed edges.
  void check_feeds(std::span<const AnyTensor> tensors) const;

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Memory>> idle_;
};

}  // namespace dflow
