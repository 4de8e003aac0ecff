// expect: static.assert.*static PartialShape infer.const Attrs&, PartialShape
#include <dflow/dflow.hpp>

struct Scale : dflow::Op<"Scale", dflow::FloatTypes> {
  static dflow::PartialShape infer(const dflow::PartialShape& x) { return x; }
};

auto scale(const dflow::Output<float>& x) { return dflow::apply<Scale>(x); }
