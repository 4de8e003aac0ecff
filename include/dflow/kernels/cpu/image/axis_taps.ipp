#pragma once

#include <dflow/kernels/cpu/image/axis_taps.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>

namespace dflow::cpu {

namespace detail {

// Positions and weights are computed in float, step by step as TensorFlow does, so that pixels are taken from the same
// places.

/// The distance of two output pixels in the input.
inline float pixel_step(bool align_corners, std::int64_t in, std::int64_t out) {
  if (align_corners && out > 1) return static_cast<float>(in - 1) / static_cast<float>(out - 1);
  return static_cast<float>(in) / static_cast<float>(out);
}

inline float position_of(const ResizeAttrs& attrs, float step, std::int64_t i) {
  if (attrs.half_pixel_centers) return (static_cast<float>(i) + 0.5f) * step - 0.5f;
  return static_cast<float>(i) * step;
}

inline std::int64_t inside(std::int64_t i, std::int64_t in) { return std::clamp<std::int64_t>(i, 0, in - 1); }

inline void add_tap(AxisTaps& taps, std::int64_t input, float weight) {
  taps.inputs.push_back(input);
  taps.weights.push_back(weight);
}

inline void add_nearest(AxisTaps& taps, const ResizeAttrs& attrs, float step, std::int64_t i, std::int64_t in) {
  const float position = (static_cast<float>(i) + (attrs.half_pixel_centers ? 0.5f : 0.0f)) * step;
  const float nearest = attrs.align_corners ? std::round(position) : std::floor(position);
  add_tap(taps, inside(static_cast<std::int64_t>(nearest), in), 1);
}

inline void add_line(AxisTaps& taps, const ResizeAttrs& attrs, float step, std::int64_t i, std::int64_t in) {
  const float position = position_of(attrs, step, i), floor = std::floor(position);
  const float t = position - floor;
  add_tap(taps, inside(static_cast<std::int64_t>(floor), in), 1 - t);
  add_tap(taps, inside(static_cast<std::int64_t>(std::ceil(position)), in), t);
}

/// The weight of a pixel at distance x in [0, 2], of Keys's cubic convolution.
inline float cubic_weight(double a, float x) {
  if (x <= 1) return static_cast<float>(((a + 2) * x - (a + 3)) * x * x + 1);
  return static_cast<float>(((a * x - 5 * a) * x + 8 * a) * x - 4 * a);
}

inline void add_cubic(AxisTaps& taps, const ResizeAttrs& attrs, float step, std::int64_t i, std::int64_t in) {
  constexpr float positions_of_pixel = 1024;
  const float position = position_of(attrs, step, i), floor = std::floor(position);
  const float t = std::nearbyint((position - floor) * positions_of_pixel) / positions_of_pixel;
  const double a = attrs.half_pixel_centers ? -0.5 : -0.75;
  const std::array<float, 4> distances{t + 1, t, 1 - t, 2 - t};
  std::array<float, 4> weights{};
  float sum = 0;
  for (std::size_t k = 0; k < 4; ++k) {
    const std::int64_t at = static_cast<std::int64_t>(floor) - 1 + static_cast<std::int64_t>(k);
    // At a distance of exactly 1 both polynomials are 0.
    if (!attrs.half_pixel_centers || inside(at, in) == at) weights[k] = cubic_weight(a, distances[k]);
    sum += weights[k];
  }
  const bool is_divided = attrs.half_pixel_centers && std::abs(sum) >= 1000 * std::numeric_limits<float>::min();
  for (std::size_t k = 0; k < 4; ++k) {
    const std::int64_t at = static_cast<std::int64_t>(floor) - 1 + static_cast<std::int64_t>(k);
    add_tap(taps, inside(at, in), is_divided ? weights[k] * (1 / sum) : weights[k]);
  }
}

/// The share of input pixel `at` that lies between the positions.
inline float covered(std::int64_t at, float begin, float end) {
  const auto low = static_cast<float>(at), high = static_cast<float>(at + 1);
  return std::min(high, end) - std::max(low, begin);
}

inline void add_area(AxisTaps& taps, float step, std::int64_t i, std::int64_t in) {
  const float begin = static_cast<float>(i) * step, end = static_cast<float>(i + 1) * step;
  const auto stop = static_cast<std::int64_t>(std::ceil(end));
  const auto start = static_cast<std::int64_t>(std::floor(begin));
  for (std::int64_t at = start; at < stop; ++at) {
    const bool is_whole_step = static_cast<float>(at)<begin&& static_cast<float>(at + 1)> end;
    add_tap(taps, inside(at, in), is_whole_step ? step : covered(at, begin, end));
  }
}

}  // namespace detail

AxisTaps axis_taps(ResizeMethod method, const ResizeAttrs& attrs, std::int64_t in, std::int64_t out) {
  AxisTaps taps;
  taps.first.reserve(static_cast<std::size_t>(out) + 1);
  const float step = detail::pixel_step(attrs.align_corners, in, out);
  taps.is_copy = in == out && method != ResizeMethod::bicubic;
  taps.are_lines = method == ResizeMethod::bilinear && !taps.is_copy;
  const bool is_one_pixel = in == 1 && method == ResizeMethod::area;  // the corners of one pixel have no distance
  if (method == ResizeMethod::area && !is_one_pixel && !taps.is_copy) taps.scale = step;
  for (std::int64_t i = 0; i < out; ++i) {
    if (taps.is_copy || is_one_pixel) {
      detail::add_tap(taps, is_one_pixel ? 0 : i, 1);
    } else if (method == ResizeMethod::nearest_neighbor) {
      detail::add_nearest(taps, attrs, step, i, in);
    } else if (method == ResizeMethod::bilinear) {
      detail::add_line(taps, attrs, step, i, in);
    } else if (method == ResizeMethod::bicubic) {
      detail::add_cubic(taps, attrs, step, i, in);
    } else {
      detail::add_area(taps, step, i, in);
    }
    taps.first.push_back(static_cast<std::int64_t>(taps.inputs.size()));
  }
  return taps;
}

AxisTaps transposed(const AxisTaps& taps, std::int64_t in) {
  AxisTaps turned;
  turned.scale = taps.scale;
  turned.is_copy = taps.is_copy;
  turned.first.assign(static_cast<std::size_t>(in) + 1, 0);
  turned.inputs.resize(taps.inputs.size());
  turned.weights.resize(taps.inputs.size());
  for (const std::int64_t input : taps.inputs) ++turned.first[static_cast<std::size_t>(input) + 1];
  for (std::size_t i = 1; i < turned.first.size(); ++i) turned.first[i] += turned.first[i - 1];
  std::vector<std::int64_t> next(turned.first.begin(), turned.first.end() - 1);
  for (std::int64_t i = 0; i < taps.size(); ++i) {
    for (auto t = static_cast<std::size_t>(taps.first[static_cast<std::size_t>(i)]);
         t < static_cast<std::size_t>(taps.first[static_cast<std::size_t>(i) + 1]); ++t) {
      const auto at = static_cast<std::size_t>(next[static_cast<std::size_t>(taps.inputs[t])]++);
      turned.inputs[at] = i;
      turned.weights[at] = taps.weights[t];
    }
  }
  return turned;
}

}  // namespace dflow::cpu
