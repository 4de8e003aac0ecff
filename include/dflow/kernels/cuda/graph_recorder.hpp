#pragma once

#include <dflow/kernels/contract/work_recorder.hpp>
#include <dflow/kernels/cuda/memory/cuda_memory.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace dflow::cuda {

namespace detail {
struct LaunchedGraph;
}  // namespace detail

/// Captures the work that stretches of kernels issue into CUDA graphs, and launches the graphs instead of running the
/// kernels.
///
/// - A stretch is captured when it has run `runs_before` times with inputs of the same shapes, and the same elements
///   in host memory; each stretch is captured for up to four sets of shapes. If something cannot be captured, or has
///   changed too often, the kernels of the stretch are run as ever.
/// - A graph reads an input where it was when it was captured. If an input is elsewhere the next time, it is copied
///   from then on to a block of the graph's own. It writes its outputs to blocks of its own. The blocks are handed
///   out as long as nobody has kept one for longer than a step. From then on that output is copied out.
/// - No kernel that is captured writes into an input.
/// - All graphs of the GPU share the memory for intermediate values (`CudaAllocator`).
///
/// Thread safety: safe. A stretch that is being captured or launched by one thread is run by its kernels in another.
class GraphRecorder final : public WorkRecorder {
 public:
  struct Options {
    /// Negative: nothing is captured.
    int runs_before = 2;
    std::size_t min_nodes = 3;
    /// At this number, the graphs whose last launch is longest ago are given up. Threads that capture at once may
    /// exceed it by one graph each.
    std::size_t max_graphs = 256;
  };
  struct Counts {
    std::uint64_t captured = 0;
    std::uint64_t launched = 0;
    std::uint64_t refused = 0;  ///< captures that came to nothing
    std::size_t alive = 0;
  };

  /// `memory` must outlive it, and it all records.
  GraphRecorder(CudaMemory& memory, std::string device_name, Options options);
  ~GraphRecorder() override;

  std::size_t min_nodes() const noexcept override { return options_.min_nodes; }
  std::unique_ptr<Record> record(Stretch stretch) override;
  /// Gives up all graphs that are not in use just now, and so the memory that is set aside for them.
  void release() noexcept;
  Counts counts() const noexcept;

 private:
  struct Graph;
  class GraphRecord;

  void bury(std::shared_ptr<detail::LaunchedGraph> graph) noexcept;
  void bury_waiting() noexcept;
  void make_room() noexcept;

  CudaMemory& memory_;
  const std::string device_name_;
  const Options options_;
  std::atomic<std::uint64_t> captured_{0}, launched_{0}, refused_{0};
  std::atomic<std::uint64_t> clock_{0};  ///< counts launches, to find the graph that was not used for longest
  std::atomic<std::size_t> alive_{0};
  mutable std::mutex mutex_;
  std::vector<GraphRecord*> records_;
  std::vector<std::shared_ptr<detail::LaunchedGraph>> dying_;  ///< until this thread captures no more
};

}  // namespace dflow::cuda
