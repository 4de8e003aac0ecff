#pragma once

#include <dflow/base/files/file_system.hpp>
#include <dflow/core/any_tensor.hpp>

#include <cstdint>
#include <string>

namespace dflow {

/// Where the keys and values of a table stand in a text file. A line ends with a line feed or with the file. A
/// carriage return before the line feed is left out.
struct TableFileFormat {
  static constexpr std::int64_t whole_line = -2;
  static constexpr std::int64_t line_number = -1;

  std::int64_t key_index = whole_line;  ///< a column, counted from 0, the whole line or its number
  std::int64_t value_index = line_number;
  std::int64_t max_lines = -1;  ///< so many lines are read, and must be there; -1: all
  char delimiter = '\t';        ///< of columns
  std::int64_t offset = 0;      ///< added to numbers of lines, which are counted from 0
};

struct TableEntries {
  AnyTensor keys;    ///< [n]
  AnyTensor values;  ///< [n]
};

/// Blocks. Its memory is at most a few times the size of the file. Columns are int32, int64, float, double or string;
/// whole lines are string, numbers of lines int64.
/// Errors: the errors of FileSystem. InvalidArgument, naming file and line, for an empty line, a line with too few
/// columns, or a column that is no number of the type. InvalidArgument for a file with fewer lines than `max_lines`,
/// and for another element type. OutOfRange for a file without lines.
TableEntries read_table_file(FileSystem& files, const std::string& path, const TableFileFormat& format, DType key,
                             DType value);

}  // namespace dflow
