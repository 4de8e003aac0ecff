#pragma once

#include <dflow/base/files/file_systems.hpp>
#include <dflow/data/from.hpp>
#include <dflow/io/csv.hpp>
#include <dflow/io/csv_columns.hpp>
#include <dflow/io/records/record_file.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace dflow::data {

/// Images [rows, columns, 1], 0 to 1, and their classes, as `read_mnist` reads them. The directory holds the files of
/// MNIST or other files of its form; `part` is "train" or "t10k". Blocks: all images are in memory afterwards.
///
/// Errors: as `read_mnist`.
Dataset<std::tuple<Tensor<float>, Tensor<std::int32_t>>> from_idx(FileSystem& files, const std::string& directory,
                                                                  std::string_view part = "train");
/// The same from the machine's own files.
Dataset<std::tuple<Tensor<float>, Tensor<std::int32_t>>> from_idx(const std::string& directory,
                                                                  std::string_view part = "train");

/// The rows of a table of numbers, [columns] each, as `read_csv` reads them. Blocks: all rows are in memory
/// afterwards.
///
/// Errors: as `read_csv`.
Dataset<Tensor<float>> from_csv(FileSystem& files, const std::string& path, const CsvOptions& options = {});
Dataset<Tensor<float>> from_csv(const std::string& path, const CsvOptions& options = {});
/// Some columns of a table, which may hold text: a tuple of scalars for each row, or for one column a scalar. The
/// columns are read as `read_csv_columns` reads them. Blocks: they are in memory afterwards.
///
/// ```cpp
/// auto houses = df::data::from_csv<float, std::string>(files, "houses.csv", {"price", "city"});
/// ```
/// Errors: as `read_csv_columns`.
template <CsvElement... Ts>
  requires(sizeof...(Ts) > 0)
auto from_csv(FileSystem& files, const std::string& path, const std::array<CsvColumn, sizeof...(Ts)>& columns,
              const CsvOptions& options = {.has_header = true}) {
  return std::apply([](const auto&... read) { return from_tensors(read...); },
                    read_csv_columns<Ts...>(files, path, columns, options));
}
template <CsvElement... Ts>
  requires(sizeof...(Ts) > 0)
auto from_csv(const std::string& path, const std::array<CsvColumn, sizeof...(Ts)>& columns,
              const CsvOptions& options = {.has_header = true}) {
  return from_csv<Ts...>(*machine_files(), path, columns, options);
}

/// The records of TFRecord files, one file after the other, as they are read. Memory is one record and a buffer,
/// however large the files are. A restored iterator goes on at its place in its file, without reading the bytes before
/// it. A compressed file can only be unpacked from its beginning, so the next read after a restore unpacks it up to
/// that place. The state knows files by their names, not by their directories.
///
/// ```cpp
/// auto examples = df::data::from_records({"train-0.tfrecord", "train-1.tfrecord"}).shuffle(1024).map(parse).batch(32);
/// ```
/// A `files` that is a reference outlives the dataset and its iterators; a pointer is kept.
/// Errors: InvalidArgument without a path or with a null `files`. Reading an element has the errors of `RecordReader`,
/// which name the path. Restoring an iterator throws DataLoss for a place that no file has. If `ignore_errors` follows,
/// reading goes on after a record whose content is damaged with the next record, and after any other error with the
/// next file.
Dataset<std::string> from_records(std::shared_ptr<FileSystem> files, std::vector<std::string> paths,
                                  const RecordReaderOptions& options = {});
Dataset<std::string> from_records(FileSystem& files, std::vector<std::string> paths,
                                  const RecordReaderOptions& options = {});
/// The same from the machine's own files.
Dataset<std::string> from_records(std::vector<std::string> paths, const RecordReaderOptions& options = {});

struct TextLineOptions {
  std::uint64_t skip_header_lines = 0;  ///< left out at the beginning of each file
};

/// The lines of text files, one file after the other, as they are read, without their ends: LF, or CR LF. The last line
/// of a file may lack its end. A file may be gzip-compressed. Memory, restored iterators and `files` are as for
/// `from_records`.
///
/// ```cpp
/// auto words = df::data::from_text_lines({"a.txt", "b.txt.gz"}).filter([](const auto& line) { return line != ""; });
/// ```
/// Errors: InvalidArgument without a path or with a null `files`. Reading an element throws the errors of FileSystem,
/// DataLoss for a damaged gzip file, Unimplemented for any gzip file in a library built without zlib, and
/// ResourceExhausted for a line of more than 2^30 bytes; each names the path. Restoring an iterator throws DataLoss for
/// a place that no file has. If `ignore_errors` follows, reading goes on after an error with the next file.
Dataset<std::string> from_text_lines(std::shared_ptr<FileSystem> files, std::vector<std::string> paths,
                                     const TextLineOptions& options = {});
Dataset<std::string> from_text_lines(FileSystem& files, std::vector<std::string> paths,
                                     const TextLineOptions& options = {});
/// The same from the machine's own files.
Dataset<std::string> from_text_lines(std::vector<std::string> paths, const TextLineOptions& options = {});

}  // namespace dflow::data
