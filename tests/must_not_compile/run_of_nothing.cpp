// expect: static.assert.*this step fetches and runs nothing
#include <dflow/session/session.hpp>

void run(dflow::Session& session, const dflow::Output<float>& x) { auto value = session.run({{x, 1.0f}}); }
