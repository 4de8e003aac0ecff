#pragma once

#include <cstdint>

namespace dflow {

/// How the units of a plan are scheduled.
enum class InterOp : std::uint8_t {
  automatic,   ///< sequential where the graph offers no parallel work worth another thread
  sequential,  ///< one frozen order in the thread that runs the step; kernels still split their work
  parallel,    ///< independent units at once
};

}  // namespace dflow
