// expect: static.assert.*the body of a while_loop returns a tuple of the variables' next values, of their element types
#include <dflow/ops/control/while_loop.hpp>
#include <dflow/ops/math/cast.hpp>

#include <tuple>

void loop(const dflow::Output<bool>& goes_on, const dflow::Output<float>& x) {
  dflow::while_loop([](auto on, auto) { return on; },
                    [](auto on, auto of) {
                      return std::tuple{on, dflow::cast<double>(of)};
                    },
                    std::tuple{goes_on, x});
}
