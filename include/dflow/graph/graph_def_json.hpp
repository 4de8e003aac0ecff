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

/// Reads what `to_json` wrote or a person edited, members in any order. Those that are unknown are errors, so that a
/// misspelt one is noticed, and so are those that stand twice; names of types and attributes are taken as they stand.
/// "seed", "collections" and what is empty may be left out, but for a node's "name" and "op".
///
/// Errors: InvalidArgument that names the line and the offset of what is no JSON (RFC 8259), or the members and items
/// that lead to what is no graph, one of more than `GraphDef::max_nodes` nodes, or lists of more than
/// `GraphDef::max_listed_shapes` shapes. Text that nests deeper than a graph does is refused where it does.
GraphDef from_json(std::string_view text);

}  // namespace dflow
