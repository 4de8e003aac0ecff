#pragma once

#include <dflow/graph/step_graph.hpp>

namespace dflow {

/// Looks at the Recvs that the program has built. A Recv would wait for ever if nothing in the step sends to it, or
/// if its sender waits for it. Errors: InvalidArgument, naming the Recv and the line where it was built.
void check_receives(const StepGraph& graph);

}  // namespace dflow
