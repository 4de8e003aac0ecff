// expect: static.assert.*what is fed has another element type than the edge
#include <dflow/session/session.hpp>

void feed(dflow::Session& session, const dflow::Output<float>& x) {
  session.run({{x, dflow::Tensor<int>({1}, {2})}}, x);
}
