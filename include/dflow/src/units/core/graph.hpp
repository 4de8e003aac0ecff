#pragma once

/// Bodies of the core: a part of <dflow/src/core.hpp>.

#include <dflow/graph/append_node.ipp>
#include <dflow/graph/attr_value.ipp>
#include <dflow/graph/frame_layout.ipp>
#include <dflow/graph/graph.ipp>
#include <dflow/graph/graph_store.ipp>
#include <dflow/graph/infer_context.ipp>
#include <dflow/graph/node_list.ipp>
#include <dflow/graph/op_args.ipp>
#include <dflow/graph/step_graph.ipp>
