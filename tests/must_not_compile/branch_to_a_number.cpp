// expect: static.assert.*a body returns an edge, .* df::constant\(graph, 1.0f\) is the edge of a number
#include <dflow/ops/control/cond.hpp>

void branch(const dflow::Output<bool>& condition, const dflow::Output<float>& x) {
  dflow::cond(
      condition, [&] { return x; }, [] { return 0.0f; });
}
