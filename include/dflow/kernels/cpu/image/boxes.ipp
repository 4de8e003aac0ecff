#pragma once

#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/cpu/image/boxes.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace dflow::cpu {

namespace detail {

/// Red, green, blue and opacity of the boxes, one after the other: TensorFlow's.
inline constexpr std::array<std::array<float, 4>, 10> box_colors{{{1, 1, 0, 1},
                                                                  {0, 0, 1, 1},
                                                                  {1, 0, 0, 1},
                                                                  {0, 1, 0, 1},
                                                                  {0.5f, 0, 0.5f, 1},
                                                                  {0.5f, 0.5f, 0, 1},
                                                                  {0.5f, 0, 0, 1},
                                                                  {0, 0, 0.5f, 1},
                                                                  {0, 1, 1, 1},
                                                                  {1, 0, 1, 1}}};

/// The pixel at a share of an extent. Far outside, and for a number that is none, it is one outside.
inline std::int64_t pixel_of_share(float share, std::int64_t extent) {
  const float pixel = share * static_cast<float>(extent - 1);
  if (!(pixel > -1)) return -1;
  return pixel < static_cast<float>(extent) ? static_cast<std::int64_t>(pixel) : extent;
}

/// One image [height, width, channels] of pixels of `bytes` bytes.
struct PixelCanvas {
  std::byte* pixels;
  std::int64_t height, width;
  std::size_t bytes;

  void draw(std::int64_t row, std::int64_t column, const void* color) const {
    std::memcpy(pixels + static_cast<std::size_t>(row * width + column) * bytes, color, bytes);
  }
};

inline void draw_box(const PixelCanvas& canvas, const float* box, const void* color) {
  if (!(box[0] <= box[2] && box[1] <= box[3])) return;
  const std::int64_t top = pixel_of_share(box[0], canvas.height), bottom = pixel_of_share(box[2], canvas.height);
  const std::int64_t left = pixel_of_share(box[1], canvas.width), right = pixel_of_share(box[3], canvas.width);
  if (top >= canvas.height || bottom < 0 || left >= canvas.width || right < 0) return;
  const std::int64_t first_row = std::max<std::int64_t>(top, 0), last_row = std::min(bottom, canvas.height - 1);
  const std::int64_t first = std::max<std::int64_t>(left, 0), last = std::min(right, canvas.width - 1);
  for (std::int64_t column = first; column <= last; ++column) {
    if (top >= 0) canvas.draw(top, column, color);
    if (bottom < canvas.height) canvas.draw(bottom, column, color);
  }
  for (std::int64_t row = first_row; row <= last_row; ++row) {
    if (left >= 0) canvas.draw(row, left, color);
    if (right < canvas.width) canvas.draw(row, right, color);
  }
}

}  // namespace detail

void draw_bounding_boxes(KernelContext& context) {
  const Shape shape = dflow::detail::inferred_shape(context);
  const AnyTensor images = context.input(0);
  const Tensor<float>& boxes = context.input<float>(1);
  AnyTensor& y = context.allocate_output(0, shape);
  if (shape.num_elements() == 0) return;
  const std::int64_t count = boxes.dim(1), channels = shape.dim(3);
  const std::size_t bytes = static_cast<std::size_t>(channels) * size_of(y.dtype());
  // The colours as pixels of the images.
  std::array<std::byte, sizeof(double) * 4 * detail::box_colors.size()> colors;
  visit_dtype<FloatTypes>(y.dtype(), [&]<class T>() {
    for (std::size_t i = 0; i < detail::box_colors.size(); ++i) {
      for (std::size_t c = 0; c < 4; ++c) {
        const T value(channels == 1 ? 1.0f : detail::box_colors[i][c]);
        std::memcpy(colors.data() + (i * 4 + c) * sizeof(T), &value, sizeof(T));
      }
    }
  });
  const std::size_t color_bytes = 4 * size_of(y.dtype());
  const std::size_t image_bytes = static_cast<std::size_t>(shape.dim(1) * shape.dim(2)) * bytes;
  const auto* const from = static_cast<const std::byte*>(images.raw_data());
  auto* const to = static_cast<std::byte*>(y.raw_data());
  const double ns = 0.1 * static_cast<double>(image_bytes) +
                    2.0 * static_cast<double>(count) * static_cast<double>(shape.dim(1) + shape.dim(2));
  context.pool().parallel_for(shape.dim(0), ns, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t image = begin; image < end; ++image) {
      const detail::PixelCanvas canvas{to + static_cast<std::size_t>(image) * image_bytes, shape.dim(1), shape.dim(2),
                                       bytes};
      std::memcpy(canvas.pixels, from + static_cast<std::size_t>(image) * image_bytes, image_bytes);
      for (std::int64_t i = 0; i < count; ++i) {
        const auto color = static_cast<std::size_t>(i) % detail::box_colors.size();
        detail::draw_box(canvas, boxes.data() + (image * count + i) * 4, colors.data() + color * color_bytes);
      }
    }
  });
}

void non_max_suppression(KernelContext& context, float iou_threshold) {
  const Tensor<float>&boxes = context.input<float>(0), &scores = context.input<float>(1);
  const Tensor<std::int32_t>& most = context.input<std::int32_t>(2);
  const bool are_boxes = boxes.rank() == 2 && boxes.dim(1) == 4 && scores.rank() == 1 && scores.dim(0) == boxes.dim(0);
  if (!are_boxes || most.rank() != 0 || *most.data() < 0) dflow::detail::refuse_shapes(context);
  const std::vector<std::int32_t> taken = dflow::detail::boxes_apart(boxes, scores, *most.data(), iou_threshold);
  Tensor<std::int32_t>& y = context.allocate_output<std::int32_t>(0, {static_cast<std::int64_t>(taken.size())});
  std::ranges::copy(taken, y.begin());
}

}  // namespace dflow::cpu
