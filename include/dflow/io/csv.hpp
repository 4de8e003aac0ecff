#pragma once

/// Public: tables of numbers from CSV files.

#include <dflow/base/files/file_system.hpp>
#include <dflow/core/tensor.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dflow {

struct CsvOptions {
  /// The first line holds the columns' names.
  bool has_header = false;
  char separator = ',';  ///< not a double quote and not the end of a line
};

/// A table of numbers and, if it has a header, the names of its columns.
struct CsvTable {
  std::vector<std::string> names;  ///< by column; empty without a header
  Tensor<float> values;            ///< [rows, columns]
  std::string path;                ///< of the file that it was read from, else empty

  /// Errors: NotFound if no column has that name; the message names the path and the columns.
  std::int64_t index_of(std::string_view name) const;
  /// [rows], copied. Errors: as `index_of`.
  Tensor<float> column(std::string_view name) const;
};

/// A table of numbers, a line per row: [rows, columns]. By RFC 4180 the last line may lack its end, and a field may
/// stand in double quotes; two double quotes inside it stand for one. Beyond RFC 4180, lines end in LF, CR LF or CR;
/// spaces around a field, a '+' before a number, and a byte-order mark count for nothing; empty lines are skipped.
///
/// ```cpp
/// const df::Tensor<float> table = df::parse_csv("x, y\n1, \"2\"\n+3, 4\n", {.has_header = true});
/// const df::Tensor<float> x = df::columns(table, 0, 1);  // [[1], [3]]
/// ```
/// A number becomes the nearest float: whole numbers are exact up to 2^24, so larger ids lose digits.
///
/// Errors: DataLoss, with line and field, for a field that is no finite number, a quote that does not end, and a row
/// of another length than the first; DataLoss for UTF-16; InvalidArgument for a separator that cannot be one.
Tensor<float> parse_csv(std::string_view text, const CsvOptions& options = {});
/// The same with the columns' names.
CsvTable parse_csv_table(std::string_view text, const CsvOptions& options = {.has_header = true});

/// The same from a file, which may be gzip-compressed. Blocks.
///
/// Errors: also the errors of `FileSystem`, and DataLoss for a file without any row below its header; the message names
/// the path.
Tensor<float> read_csv(FileSystem& files, const std::string& path, const CsvOptions& options = {});
CsvTable read_csv_table(FileSystem& files, const std::string& path, const CsvOptions& options = {.has_header = true});

/// The columns [begin, end) of table [rows, columns]: [rows, end - begin], copied.
///
/// Errors: InvalidArgument unless the table is a matrix and 0 <= begin <= end <= columns.
Tensor<float> columns(const Tensor<float>& table, std::int64_t begin, std::int64_t end);
/// One column, [rows], copied.
Tensor<float> column(const Tensor<float>& table, std::int64_t index);

}  // namespace dflow
