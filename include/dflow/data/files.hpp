#pragma once

#include <dflow/base/files/file_system.hpp>
#include <dflow/data/dataset.hpp>
#include <dflow/io/csv.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>

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

}  // namespace dflow::data

#if defined(DFLOW_HEADER_ONLY)
#include <dflow/data/files.ipp>
#endif
