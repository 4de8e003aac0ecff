#pragma once

#include <dflow/data/files.hpp>
#include <dflow/data/from.hpp>
#include <dflow/io/labelled_images.hpp>

namespace dflow::data {

DFLOW_INLINE Dataset<std::tuple<Tensor<float>, Tensor<std::int32_t>>> from_idx(FileSystem& files,
                                                                               const std::string& directory,
                                                                               std::string_view part) {
  const LabelledImages read = read_mnist(files, directory, part);
  return from_tensors(read.images, read.labels);
}
DFLOW_INLINE Dataset<std::tuple<Tensor<float>, Tensor<std::int32_t>>> from_idx(const std::string& directory,
                                                                               std::string_view part) {
  PosixFileSystem files;
  return from_idx(files, directory, part);
}

DFLOW_INLINE Dataset<Tensor<float>> from_csv(FileSystem& files, const std::string& path, const CsvOptions& options) {
  return from_tensors(read_csv(files, path, options));
}
DFLOW_INLINE Dataset<Tensor<float>> from_csv(const std::string& path, const CsvOptions& options) {
  PosixFileSystem files;
  return from_csv(files, path, options);
}

}  // namespace dflow::data
