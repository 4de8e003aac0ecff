#pragma once

#include <cstdint>

namespace dflow {

/// How the units of a plan are scheduled.
enum class InterOp : std::uint8_t {
  automatic,   ///< parallel where most of the work is in kernels too small for all threads
  sequential,  ///< one frozen order in the thread that runs the step; kernels still split their work
  parallel,    ///< independent units at once
};

}  // namespace dflow
