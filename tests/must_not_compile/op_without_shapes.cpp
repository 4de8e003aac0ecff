// expect: static.assert.*an op that is not elementwise says its shapes
#include <dflow/dflow.hpp>

struct Scale : dflow::Op<"Scale", dflow::FloatTypes> {};

auto scale(const dflow::Output<float>& x) { return dflow::apply<Scale>(x); }
