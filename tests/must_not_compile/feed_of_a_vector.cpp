// expect: static.assert.*a std::vector<T> by df::borrow
#include <dflow/session/session.hpp>

#include <vector>

void feed(dflow::Session& session, const dflow::Output<float>& x, const std::vector<float>& values) {
  session.run({{x, values}}, x);
}
