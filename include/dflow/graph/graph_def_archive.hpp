#pragma once

/// Public: the binary file of a graph.

#include <dflow/base/files/file_system.hpp>
#include <dflow/graph/graph_def.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace dflow {

/// The binary form: magic, CRC-32C of the rest, version, then the fields in order, little-endian, lengths as varints.
///
/// Errors: InvalidArgument for a tensor that cannot be saved (resource handles, quantised elements); OutOfRange for
/// more than `GraphDef::max_listed_shapes`.
std::string to_binary(const GraphDef& def);

/// Reads the output of `to_binary`. Before any allocation, every length is checked against the remaining bytes, and
/// lists of shapes against `GraphDef::max_listed_shapes`.
///
/// Errors: DataLoss if the bytes are cut short or damaged. InvalidArgument if they are no graph, or a graph of a newer
/// version. OutOfRange past that limit and the limits of a ByteReader.
GraphDef from_binary(std::span<const std::byte> bytes);
GraphDef from_binary(std::string_view bytes);

/// Write and read files: JSON (graph/graph_def_json.hpp) if the path ends in ".json", else binary. They block.
///
/// Errors: as above, and the errors of the file system.
void save_graph(FileSystem& files, const std::string& path, const GraphDef& def);
GraphDef load_graph(FileSystem& files, const std::string& path);

}  // namespace dflow
