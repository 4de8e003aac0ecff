// expect: static.assert.*no kernel of this op can be seen here
#include <dflow/dflow.hpp>

struct Scale : dflow::Op<"Scale", dflow::FloatTypes> {
  using Inputs = dflow::In<dflow::TypeParam<0>>;
  static dflow::PartialShape infer(const Attrs&, const dflow::PartialShape& x) { return x; }
};

void make(const dflow::Graph& graph) {
  dflow::Session session(graph, {.ops = dflow::standard_ops + dflow::ops<Scale>});
}
