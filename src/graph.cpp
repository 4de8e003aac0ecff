#include <dflow/graph/attr_value.ipp>
#include <dflow/graph/graph.ipp>
#include <dflow/graph/infer_context.ipp>
