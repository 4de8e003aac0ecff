#pragma once

#include <dflow/base/file_system.hpp>
#include <dflow/core/tensor.hpp>

#include <string>
#include <string_view>

namespace dflow {

/// A table of numbers, comma between columns and a line per row: [rows, columns]. The last line may lack its end; lines
/// may end in CR LF; empty lines are skipped.
///
/// Errors: DataLoss, naming the line, for a field that is no finite number or a row of another length than the first.
Tensor<float> parse_csv(std::string_view text);

/// The same from a file, which may be gzip-compressed. Blocks.
///
/// Errors: also those of `FileSystem`; the message names the path.
Tensor<float> read_csv(FileSystem& files, const std::string& path);

}  // namespace dflow

#if defined(DFLOW_HEADER_ONLY)
#include <dflow/io/csv.ipp>
#endif
