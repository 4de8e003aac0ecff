#pragma once

/// Public: the JSON form of a graph.

#include <dflow/base/config.hpp>
#include <dflow/graph/graph_def.hpp>

#include <string>
#include <string_view>

namespace dflow {

/// The JSON form, for people: names of element types, attributes by kind, tensors with their values (base64 when they
/// are large), 64-bit integers exact.
///
/// ```json
/// {"name": "y", "op": "MatMul", "types": {"T": "float"}, "inputs": ["x", "w"],
///  "attrs": {"transpose_b": {"bool": true}}}
/// ```
/// Text that is not valid UTF-8, or begins with "base64:", is written as "base64:..."; reals that are not finite stand
/// as text under "float_text".
///
/// Errors: InvalidArgument for a tensor that cannot be saved (resource handles, quantised elements); OutOfRange for
/// more than `GraphDef::max_listed_shapes`.
std::string to_json(const GraphDef& def);

/// Reads a text that `to_json` wrote or a person edited, members in any order. Unknown members are errors, so that a
/// misspelt one is noticed, and so are members that stand twice. Names of types and attributes are taken as they stand.
/// "seed", "collections" and empty members may be left out, but for a node's "name" and "op".
///
/// Errors: InvalidArgument. For a text that is no JSON (RFC 8259) it names the line and the offset. For a text that is
/// no graph it names the members and items that lead to the fault. More than `GraphDef::max_nodes` nodes, or lists of
/// more than `GraphDef::max_listed_shapes` shapes, are no graph either. Text that nests deeper than a graph does is
/// refused at that depth.
GraphDef from_json(std::string_view text);

}  // namespace dflow
