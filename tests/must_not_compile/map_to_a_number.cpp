// expect: static.assert.*the function returns an edge or a std::tuple of edges
#include <dflow/ops/control/row_loops.hpp>

void numbers(const dflow::Output<float>& x) {
  dflow::map([](auto) { return 3; }, x);
}
