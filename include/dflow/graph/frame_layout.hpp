#pragma once

#include <dflow/graph/step_graph.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace dflow {

/// The frame that each node of a step runs in, and the frame it gives its outputs to.
///
/// Thread safety: a value type.
struct FrameLayout {
  struct Frame {
    std::string name;
    std::ptrdiff_t outer = -1;  ///< -1: none, it is the step itself
    StepNodeId first = {};      ///< an Enter of it
    std::size_t num_enters = 0;
    std::int64_t parallel_iterations = 1;
  };
  std::vector<Frame> frames;  ///< the step's own first; each other frame behind the frames around it
  IndexedVector<StepNodeId, std::ptrdiff_t> runs_in;
  IndexedVector<StepNodeId, std::ptrdiff_t> gives_to;
  IndexedVector<StepNodeId, bool> is_everywhere;  ///< a constant, which all frames may read
};

/// Errors: InvalidArgument, naming a node, in three cases. The inputs and control inputs of a node are of different
/// frames. A node leaves a frame outside of all frames. Enters of one frame differ in how many iterations they let
/// run.
FrameLayout lay_out_frames(const StepGraph& step);

}  // namespace dflow
