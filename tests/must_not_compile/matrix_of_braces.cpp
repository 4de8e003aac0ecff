// expect: use of deleted function|call to deleted function
#include <dflow/ops/array/constant.hpp>

void build(dflow::Graph& graph) { dflow::constant<float>(graph, {{1, 2}, {3, 4}}); }
