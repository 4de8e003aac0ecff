#pragma once

#include <dflow/io/csv.hpp>
#include <dflow/io/idx.hpp>
#include <dflow/io/labelled_images.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

namespace dflow {

namespace detail {

/// `name` and `kind` are joined by '-' as in the original, or by '.' as in Kaggle's archive, where a directory may have
/// the original name. The first of the files that exists, or the original name if there is none.
std::string path_of_idx(FileSystem& files, const std::string& directory, const std::string& name,
                        std::string_view kind) {
  for (const std::string_view joint : {"-", "."}) {
    for (const std::string_view suffix : {"", ".gz"}) {
      std::string path = join_path(directory, str_cat(name, joint, kind, suffix));
      if (files.exists(path) && !files.is_directory(path)) return path;
    }
  }
  return join_path(directory, str_cat(name, "-", kind));
}

Tensor<std::uint8_t> read_idx_bytes(FileSystem& files, const std::string& directory, const std::string& name,
                                    std::string_view kind, int rank) {
  const std::string path = path_of_idx(files, directory, name, kind);
  const AnyTensor tensor = read_idx(files, path);
  if (tensor.dtype() != DType::uint8 || tensor.rank() != rank) {
    throw_error(Status::data_loss(str_cat(path, ": expected bytes of rank ", rank, ", got ", dtype_name(tensor.dtype()),
                                          tensor.shape().to_string())));
  }
  return Tensor<std::uint8_t>(tensor);
}

}  // namespace detail

LabelledImages read_mnist(FileSystem& files, const std::string& directory, std::string_view part) {
  const auto pixels = detail::read_idx_bytes(files, directory, str_cat(part, "-images"), "idx3-ubyte", 3);
  const auto classes = detail::read_idx_bytes(files, directory, str_cat(part, "-labels"), "idx1-ubyte", 1);
  if (pixels.dim(0) != classes.dim(0)) {
    throw_error(Status::data_loss(str_cat(directory, ": ", pixels.dim(0), " images and ", classes.dim(0), " labels")));
  }
  LabelledImages result{Tensor<float>(pixels.shape().appended(1)), Tensor<std::int32_t>(classes.shape())};
  for (std::int64_t i = 0; i < pixels.num_elements(); ++i) {
    result.images.data()[i] = static_cast<float>(pixels.data()[i]) * (1.0f / 255.0f);
  }
  std::copy(classes.begin(), classes.end(), result.labels.begin());
  return result;
}

LabelledImages read_digits(FileSystem& files, const std::string& path) {
  constexpr std::int64_t side = 8, pixels = side * side;
  const Tensor<float> table = read_csv(files, path);
  if (table.dim(1) != pixels + 1) {
    throw_error(Status::data_loss(str_cat(path, ": expected ", pixels + 1, " columns, got ", table.dim(1))));
  }
  const std::int64_t count = table.dim(0);
  LabelledImages result{Tensor<float>({count, side, side, 1}), Tensor<std::int32_t>({count})};
  for (std::int64_t i = 0; i < count; ++i) {
    const float* row = table.data() + i * (pixels + 1);
    for (std::int64_t p = 0; p < pixels; ++p) {
      if (!(row[p] >= 0.0f && row[p] <= 16.0f)) {
        throw_error(Status::data_loss(str_cat(path, ": row ", i + 1, " has the pixel ", row[p], ", not 0 to 16")));
      }
      result.images.data()[i * pixels + p] = row[p] * (1.0f / 16.0f);
    }
    const float digit = row[pixels];
    if (!(digit >= 0.0f && digit <= 9.0f && std::floor(digit) == digit)) {
      throw_error(Status::data_loss(str_cat(path, ": row ", i + 1, " has no digit")));
    }
    result.labels.data()[i] = static_cast<std::int32_t>(digit);
  }
  return result;
}

}  // namespace dflow
