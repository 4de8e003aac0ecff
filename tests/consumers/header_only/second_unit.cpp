#include <dflow/dflow.hpp>

// Uses the library here too, so that this unit emits the bodies and the linker has to merge them.
float second_unit() {
  dflow::Graph graph;
  dflow::Session session(graph);
  return session.run(dflow::constant(graph, 1.0f)).scalar();
}
