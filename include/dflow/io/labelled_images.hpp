#pragma once

/// Public: grey images and their classes, from the files of MNIST.

#include <dflow/base/files/file_system.hpp>
#include <dflow/core/tensor.hpp>

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace dflow {

/// Grey images with the class of each.
struct LabelledImages {
  Tensor<float> images;         ///< [n, height, width, 1], 0 to 1
  Tensor<std::int32_t> labels;  ///< [n]

  std::int64_t size() const { return labels.num_elements(); }
};

/// The MNIST images "<part>-images-idx3-ubyte" and labels "<part>-labels-idx1-ubyte" in a directory, each
/// gzip-compressed (then with ".gz") or not; `part` is "train" or "t10k". The names may also be those of Kaggle's
/// archive, "<part>-images.idx3-ubyte" and "<part>-labels.idx1-ubyte". Blocks.
///
/// Errors: NotFound if neither form of a file exists; DataLoss if one is damaged, or the counts differ.
LabelledImages read_mnist(FileSystem& files, const std::string& directory, std::string_view part);

/// Images of the UCI optical-recognition set as a CSV: 64 values 0 to 16 of an 8x8 image, then the digit. Blocks.
///
/// Errors: as `read_csv`; DataLoss for rows of another length, a pixel that is not 0 to 16 or a digit that is none.
LabelledImages read_digits(FileSystem& files, const std::string& path);

/// The images [begin, end), sharing their elements.
/// The first argument is no `{}`, which is the begin of a range of positions (`ops/array/strided_slice.hpp`).
template <std::same_as<LabelledImages> Images>
LabelledImages slice(const Images& images, std::int64_t begin, std::int64_t end) {
  return {images.images.slice(begin, end), images.labels.slice(begin, end)};
}

}  // namespace dflow
