#pragma once

#include <dflow/base/files/file_system.hpp>
#include <dflow/data/dataset.hpp>
#include <dflow/io/csv.hpp>
#include <dflow/io/records/record_file.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace dflow::data {

/// Images [rows, columns, 1], 0 to 1, and their classes: the files of MNIST and others of its form in a directory, as
/// `read_mnist` reads them; `part` is "train" or "t10k". Blocks: all of them are in memory then.
///
/// Errors: those of `read_mnist`.
Dataset<std::tuple<Tensor<float>, Tensor<std::int32_t>>> from_idx(FileSystem& files, const std::string& directory,
                                                                  std::string_view part = "train");
/// The same of the machine's files.
Dataset<std::tuple<Tensor<float>, Tensor<std::int32_t>>> from_idx(const std::string& directory,
                                                                  std::string_view part = "train");

/// The rows of a table of numbers, [columns] each, as `read_csv` reads them. Blocks: all of them are in memory then.
///
/// Errors: those of `read_csv`.
Dataset<Tensor<float>> from_csv(FileSystem& files, const std::string& path, const CsvOptions& options = {});
Dataset<Tensor<float>> from_csv(const std::string& path, const CsvOptions& options = {});

/// The records of TFRecord files, one file after the other, as they are read: memory is one record and a buffer,
/// whatever the files hold. An iterator that is restored goes on at its place in its file, without reading what is
/// before; a compressed file is unpacked from its beginning to there when the next record is read, since its
/// compression has no other place to begin at. Files are known by their names, not by their directories.
///
/// ```cpp
/// auto examples = df::data::from_records({"train-0.tfrecord", "train-1.tfrecord"}).shuffle(1024).map(parse).batch(32);
/// ```
/// `files` outlives the dataset and its iterators.
/// Errors: InvalidArgument without a path. When an element is read, those of `RecordReader`, which name the path; when
/// an iterator is restored, DataLoss for a place that no file has.
Dataset<std::string> from_records(FileSystem& files, std::vector<std::string> paths,
                                  const RecordReaderOptions& options = {});
/// The same of the machine's files.
Dataset<std::string> from_records(std::vector<std::string> paths, const RecordReaderOptions& options = {});

}  // namespace dflow::data
