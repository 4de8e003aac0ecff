#pragma once

#include <cstdint>
#include <vector>

namespace dflow::bench {

/// The sizes of Inception-v3's layers for images of 299 x 299 and 1,000 classes (Szegedy et al. 2015,
/// arXiv:1512.00567; the widths are from TensorFlow's inception_v3), in the order of the computation on one device.
/// Batch normalisation without a scale follows each convolution. There are 23,817,352 parameters, and 3.3 million of
/// the auxiliary head, which only training has.
class InceptionV3 {
 public:
  struct Layer {
    std::int64_t weights = 0;  ///< parameters
    std::int64_t offsets = 0;
    double multiplications = 0;  ///< of an image, forwards
  };

  InceptionV3() {
    stem();
    for (const int projected : {32, 64, 64}) mixed_35(projected);
    reduce_35();
    for (const int inner : {128, 160, 160, 192}) mixed_17(inner);
    auxiliary_head();
    reduce_17();
    for (int i = 0; i < 2; ++i) mixed_8();
    convolution(1, 1, 2048, 1000, 1);
  }

  const std::vector<Layer>& layers() const noexcept { return layers_; }

 private:
  /// A convolution of rows x columns, from input channels to output channels; the result is side x side.
  void convolution(int rows, int columns, int from, int to, int side) {
    const std::int64_t weights = std::int64_t{rows} * columns * from * to;
    layers_.push_back({weights, to, static_cast<double>(weights) * side * side});
    channels_ = to;
  }
  /// Concatenates a module's branches side by side.
  void concatenate(int channels) { channels_ = channels; }

  void stem() {
    convolution(3, 3, 3, 32, 149);
    convolution(3, 3, 32, 32, 147);
    convolution(3, 3, 32, 64, 147);
    convolution(1, 1, 64, 80, 73);
    convolution(3, 3, 80, 192, 71);
  }
  void mixed_35(int projected) {
    const int from = channels_;
    convolution(1, 1, from, 64, 35);
    convolution(1, 1, from, 48, 35);
    convolution(5, 5, 48, 64, 35);
    convolution(1, 1, from, 64, 35);
    convolution(3, 3, 64, 96, 35);
    convolution(3, 3, 96, 96, 35);
    convolution(1, 1, from, projected, 35);
    concatenate(64 + 64 + 96 + projected);
  }
  void reduce_35() {
    const int from = channels_;
    convolution(3, 3, from, 384, 17);
    convolution(1, 1, from, 64, 35);
    convolution(3, 3, 64, 96, 35);
    convolution(3, 3, 96, 96, 17);
    concatenate(384 + 96 + from);
  }
  void mixed_17(int inner) {
    const int from = channels_;
    convolution(1, 1, from, 192, 17);
    convolution(1, 1, from, inner, 17);
    convolution(1, 7, inner, inner, 17);
    convolution(7, 1, inner, 192, 17);
    convolution(1, 1, from, inner, 17);
    convolution(7, 1, inner, inner, 17);
    convolution(1, 7, inner, inner, 17);
    convolution(7, 1, inner, inner, 17);
    convolution(1, 7, inner, 192, 17);
    convolution(1, 1, from, 192, 17);
    concatenate(4 * 192);
  }
  void auxiliary_head() {
    const int from = channels_;
    convolution(1, 1, from, 128, 5);
    convolution(5, 5, 128, 768, 1);
    convolution(1, 1, 768, 1000, 1);
    concatenate(from);
  }
  void reduce_17() {
    const int from = channels_;
    convolution(1, 1, from, 192, 17);
    convolution(3, 3, 192, 320, 8);
    convolution(1, 1, from, 192, 17);
    convolution(1, 7, 192, 192, 17);
    convolution(7, 1, 192, 192, 17);
    convolution(3, 3, 192, 192, 8);
    concatenate(320 + 192 + from);
  }
  void mixed_8() {
    const int from = channels_;
    convolution(1, 1, from, 320, 8);
    convolution(1, 1, from, 384, 8);
    convolution(1, 3, 384, 384, 8);
    convolution(3, 1, 384, 384, 8);
    convolution(1, 1, from, 448, 8);
    convolution(3, 3, 448, 384, 8);
    convolution(1, 3, 384, 384, 8);
    convolution(3, 1, 384, 384, 8);
    convolution(1, 1, from, 192, 8);
    concatenate(320 + 2 * 384 + 2 * 384 + 192);
  }

  std::vector<Layer> layers_;
  int channels_ = 0;
};

}  // namespace dflow::bench
