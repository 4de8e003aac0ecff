// expect: static.assert.*a kernel is called as
#include <dflow/dflow.hpp>

/// An op that scales x; its kernel forgets the output.
struct Scale : dflow::Op<"Scale", dflow::FloatTypes> {
  static dflow::PartialShape infer(const Attrs&, const dflow::PartialShape& x) { return x; }
};

template <class T>
struct dflow::Kernel<Scale, dflow::Cpu, T> {
  void operator()(KernelContext&, const Tensor<T>&) const {}
};

void make(const dflow::Graph& graph) {
  dflow::Session session(graph, {.ops = dflow::standard_ops + dflow::ops<Scale>});
}
