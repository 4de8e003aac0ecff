// expect: static.assert.*the condition and the body of a while_loop take one edge for each of its variables
#include <dflow/ops/control/while_loop.hpp>

#include <tuple>

void loop(const dflow::Output<bool>& goes_on, const dflow::Output<float>& x) {
  dflow::while_loop([](auto on) { return on; },
                    [](auto on, auto of) {
                      return std::tuple{on, of};
                    },
                    std::tuple{goes_on, x});
}
