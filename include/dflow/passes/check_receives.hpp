#pragma once

#include <dflow/graph/step_graph.hpp>

namespace dflow {

/// Looks at the Recvs that the program has built: one that nothing in the step sends to would wait for ever, and so
/// would one whose sender waits for it. Errors: InvalidArgument, naming the Recv and the line where it was built.
void check_receives(const StepGraph& graph);

}  // namespace dflow
