#pragma once

#include <dflow/session/compiled_step.hpp>
#include <dflow/session/step_cache_options.hpp>

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

namespace dflow {

/// Compiled steps by signature, bounded. Steps that were used only once go first, then the steps used longest ago.
/// Therefore a program that builds a node for each run does not push out the step that it trains with. A step that is
/// in use, or held by a PreparedStep, lives on outside.
///
/// Thread safety: safe.
class StepCache {
 public:
  explicit StepCache(const StepCacheOptions& options) : options_(options) {}

  std::shared_ptr<CompiledStep> find(const std::string& signature);
  /// Returns the step that is kept under the signature: `step`, or the step of another thread that was quicker.
  std::shared_ptr<CompiledStep> insert(std::string signature, std::shared_ptr<CompiledStep> step);
  std::size_t size() const;
  /// Frees the memory of runs that are not under way.
  void release_idle_memory();

 private:
  struct Entry {
    std::string signature;
    std::shared_ptr<CompiledStep> step;
    std::size_t num_nodes = 0;
    bool was_run_again = false;
  };
  using Order = std::list<Entry>;  ///< the one used last in front
  struct Segment {
    Order order;
    std::size_t num_nodes = 0;
  };

  Segment& segment_of(const Entry& entry) { return entry.was_run_again ? run_again_ : run_once_; }
  void drop_last(Segment& segment, Order& dropped);
  void trim(Segment& segment, std::size_t max_nodes, std::size_t keep, Order& dropped);
  void trim_to_max_steps(Order& dropped);

  const StepCacheOptions options_;
  mutable std::mutex mutex_;
  Segment run_once_;
  Segment run_again_;
  std::unordered_map<std::string, Order::iterator> found_;
};

}  // namespace dflow
