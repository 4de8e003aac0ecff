#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/op/expr.hpp>
#include <dflow/ops/array/concat.hpp>
#include <dflow/ops/array/like.hpp>
#include <dflow/ops/array/slice.hpp>
#include <dflow/ops/array/strided_slice.hpp>
#include <dflow/ops/control/assertions.hpp>
#include <dflow/ops/image/color.hpp>
#include <dflow/ops/math/binary.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/ops/math/compare.hpp>
#include <dflow/ops/math/select.hpp>
#include <dflow/ops/math/unary.hpp>
#include <dflow/ops/random/random.hpp>
#include <dflow/ops/reduction/reduce.hpp>
#include <dflow/ops/reduction/statistics.hpp>

#include <array>
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dflow {

namespace detail {

[[noreturn]] void throw_no_image(std::string_view op, std::string message, const At& at) {
  throw_error(Status::invalid_argument(std::move(message)).with_node(op, at.name).with_location(at.where));
}

void require_channels(const AnyOutput& images, std::int64_t channels, std::string_view op, const At& at) {
  const PartialShape& shape = images.shape();
  if (!shape.has_rank()) return;
  const std::int64_t last = shape.rank() == 0 ? 0 : shape[shape.rank() - 1];
  if (last != channels && last != dynamic) {
    throw_no_image(op, str_cat("the last dimension of shape ", shape.to_string(), " must be ", channels), at);
  }
}

void require_image_rank(const AnyOutput& images, std::string_view op, const At& at) {
  const PartialShape& shape = images.shape();
  if (shape.has_rank() && shape.rank() < 3) {
    throw_no_image(op, str_cat("shape ", shape.to_string(), " is not [..., height, width, channels]"), at);
  }
}

double largest_integer(DType dtype) {
  return visit_dtype<IntTypes>(dtype, []<class T>() { return static_cast<double>(std::numeric_limits<T>::max()); });
}

/// The images in the type that is computed in, integers scaled to [0, 1].
Expr real_image(const AnyOutput& images) {
  const DType dtype = images.dtype();
  if (dtype == DType::float64 || dtype == DType::float32) return images;
  const Expr real = cast_to(images, DType::float32);
  return is_floating(dtype) ? real : real * (1 / largest_integer(dtype));
}

/// The reverse. A cast to an integer drops the fraction, and takes the nearest integer in range.
AnyOutput image_of_real(const Expr& real, DType to, const At& at) {
  if (is_floating(to)) return cast_or_name(real, to, at);
  return cast_to(real * (largest_integer(to) + 0.5), to, at);
}

/// The channels of images, or three planes as images.
std::array<Expr, 3> planes_of(const AnyOutput& images) {
  const std::vector<AnyOutput> planes = any_unpack(images, 3, -1);
  return {planes[0], planes[1], planes[2]};
}
Expr image_of_planes(const std::array<Expr, 3>& planes, const At& at = {}) {
  const std::array<AnyOutput, 3> edges{planes[0], planes[1], planes[2]};
  return AnyOutput(build<Pack>(std::span<const AnyOutput>(edges), {.axis = -1}, at));
}

Expr clipped(const Expr& x) {
  const AnyOutput above = build<Maximum>({x, scalar_like(x, 0)});
  return AnyOutput(build<Minimum>({above, scalar_like(x, 1)}));
}
Expr chosen(const AnyOutput& condition, const Expr& t, const Expr& e) {
  return AnyOutput(build<Select>({condition, t, e}));
}

/// With divisors of 1 where a quotient is not used, so that gradients stay finite.
std::array<Expr, 3> hsv_of(const std::array<Expr, 3>& rgb) {
  const auto& [r, g, b] = rgb;
  const Expr value = AnyOutput(build<Maximum>({build<Maximum>({r, g}), b}));
  const Expr range = value - Expr(build<Minimum>({build<Minimum>({r, g}), b}));
  const Expr zero = zeros_like(value), one = ones_like(value);
  const AnyOutput is_light = build<Greater>({value, zero}), is_colored = build<Greater>({range, zero});
  const Expr saturation = chosen(is_light, range, zero) / chosen(is_light, value, one);
  const Expr sixth = 1.0 / (chosen(is_colored, range, one) * 6.0);
  const Expr by_green = (b - r) * sixth + 2.0 / 6.0, by_blue = (r - g) * sixth + 4.0 / 6.0;
  const Expr other = chosen(build<Equal>({g, value}), by_green, by_blue);
  const Expr turned = chosen(build<Equal>({r, value}), (g - b) * sixth, other);
  const Expr hue = chosen(is_colored, turned, zero);
  return {chosen(build<Less>({hue, zero}), hue + 1.0, hue), saturation, value};
}

std::array<Expr, 3> rgb_of(const std::array<Expr, 3>& hsv) {
  const auto& [hue, saturation, value] = hsv;
  const Expr sixths = hue * 6.0, rest = 1.0 - saturation;
  const auto distance = [&](double from) { return Expr(AnyOutput(build<Abs>({sixths - from}))); };
  const auto color = [&](const Expr& share) { return (rest + saturation * clipped(share)) * value; };
  return {color(distance(3) - 1.0), color(2.0 - distance(2)), color(2.0 - distance(4))};
}

constexpr std::array<std::string_view, 4> adjustment_names{"adjust_brightness", "adjust_contrast", "adjust_hue",
                                                           "adjust_saturation"};

Expr adjusted(Adjustment adjustment, const Expr& x, const Expr& amount) {
  if (adjustment == Adjustment::brightness) return x + amount;
  if (adjustment == Adjustment::contrast) {
    const AnyOutput axes = int32_constant(*x.graph(), std::array<std::int64_t, 2>{-3, -2});
    const Expr mean = AnyOutput(build<Mean>({x, axes}, {.keep_dims = true}));
    return (x - mean) * amount + mean;
  }
  auto [hue, saturation, value] = hsv_of(planes_of(x));
  if (adjustment == Adjustment::hue) {
    const Expr turned = hue + amount;
    hue = turned - Expr(build<Floor>({turned}));
  } else {
    saturation = clipped(saturation * amount);
  }
  return image_of_planes(rgb_of({hue, saturation, value}));
}

}  // namespace detail

AnyOutput detail::any_convert_image(const AnyOutput& images, DType to, const At& at) {
  GraphStore& graph = graph_of({&images, 1}, "convert_image_dtype", at);
  const Composite place(graph, at.where);
  const DType from = images.dtype();
  if (from == to || (is_floating(from) && is_floating(to))) return cast_or_name(images, to, at);
  if (is_floating(from)) return image_of_real(real_image(images), to, at);
  if (to == DType::float64) return cast_or_name(Expr(cast_to(images, to)) * (1 / largest_integer(from)), to, at);
  if (is_floating(to)) return cast_or_name(real_image(images), to, at);
  const double in = largest_integer(from), out = largest_integer(to);
  if (in > out) return cast_or_name(Expr(images) / ((in + 1) / (out + 1)), to, at);
  const Expr wide = cast_to(images, to);
  return cast_or_name(in == out ? wide : wide * ((out + 1) / (in + 1)), to, at);
}

AnyOutput detail::any_rgb_to_hsv(const AnyOutput& images, const At& at) {
  const Composite place(graph_of({&images, 1}, "rgb_to_hsv", at), at.where);
  require_channels(images, 3, "rgb_to_hsv", at);
  return cast_or_name(image_of_planes(hsv_of(planes_of(real_image(images)))), images.dtype(), at);
}

AnyOutput detail::any_hsv_to_rgb(const AnyOutput& images, const At& at) {
  const Composite place(graph_of({&images, 1}, "hsv_to_rgb", at), at.where);
  require_channels(images, 3, "hsv_to_rgb", at);
  return cast_or_name(image_of_planes(rgb_of(planes_of(real_image(images)))), images.dtype(), at);
}

AnyOutput detail::any_rgb_to_grayscale(const AnyOutput& images, const At& at) {
  GraphStore& graph = graph_of({&images, 1}, "rgb_to_grayscale", at);
  const Composite place(graph, at.where);
  require_channels(images, 3, "rgb_to_grayscale", at);
  const Expr real = real_image(images);
  const AnyOutput weights = any_constant(graph, Tensor<float>({3}, {0.2989f, 0.587f, 0.114f}), {});
  const AnyOutput sum =
      build<Sum>({real * Expr(cast_to(weights, real.dtype())), int32_constant(graph, -1)}, {.keep_dims = true});
  return image_of_real(sum, images.dtype(), at);
}

AnyOutput detail::any_grayscale_to_rgb(const AnyOutput& images, const At& at) {
  const Composite place(graph_of({&images, 1}, "grayscale_to_rgb", at), at.where);
  require_channels(images, 1, "grayscale_to_rgb", at);
  return any_concat(-1, std::array<AnyOutput, 3>{images, images, images}, at);
}

AnyOutput detail::any_per_image_standardization(const AnyOutput& images, const At& at) {
  GraphStore& graph = graph_of({&images, 1}, "per_image_standardization", at);
  const Composite place(graph, at.where);
  require_image_rank(images, "per_image_standardization", at);
  const DType dtype = images.dtype() == DType::float64 ? DType::float64 : DType::float32;
  const Expr x = cast_to(images, dtype);
  const AnyOutput axes = int32_constant(graph, std::array<std::int64_t, 3>{-3, -2, -1});
  const Expr distance = x - Expr(AnyOutput(build<Mean>({x, axes}, {.keep_dims = true})));
  const Expr variance = AnyOutput(build<Mean>({build<Square>({distance}), axes}, {.keep_dims = true}));
  const AnyOutput dims = any_strided_slice(shape_of(x), {-3}, {0}, {}, {.end_mask = 1}, {});
  const Expr count = AnyOutput(build<Prod>({cast_to(dims, dtype), int32_constant(graph, 0)}));
  const AnyOutput floor = 1.0 / count;
  return cast_or_name(distance * Expr(build<Rsqrt>({build<Maximum>({variance, floor})})), dtype, at);
}

AnyOutput detail::any_adjust(Adjustment adjustment, const AnyOutput& images, const AnyOutput& amount, const At& at) {
  const std::string_view name = adjustment_names[static_cast<std::size_t>(adjustment)];
  const Composite place(graph_of({&images, 1}, name, at), at.where);
  if (adjustment == Adjustment::contrast) require_image_rank(images, name, at);
  const bool is_of_color = adjustment == Adjustment::hue || adjustment == Adjustment::saturation;
  if (is_of_color) require_channels(images, 3, name, at);
  if (amount.shape().has_rank() && amount.shape().rank() != 0) {
    throw_no_image(name, str_cat("the amount must be a scalar, got shape ", amount.shape().to_string()), at);
  }
  const Expr real = real_image(images);
  return image_of_real(adjusted(adjustment, real, cast_to(amount, real.dtype())), images.dtype(), at);
}

AnyOutput detail::any_adjust_randomly(Adjustment adjustment, const AnyOutput& images, double low, double high,
                                      std::uint64_t seed, const At& at) {
  const std::string_view name = adjustment_names[static_cast<std::size_t>(adjustment)];
  GraphStore& graph = graph_of({&images, 1}, name, at);
  const Composite place(graph, at.where);
  const bool is_factor = adjustment == Adjustment::contrast || adjustment == Adjustment::saturation;
  if (!(low < high) || (is_factor && low < 0)) {
    throw_no_image(name, str_cat("the amount cannot be drawn from [", low, ", ", high, ")"), at);
  }
  const AnyOutput amount = any_random_uniform(graph, DType::float32, std::vector<std::int64_t>{},
                                              {.minval = low, .maxval = high, .seed = seed}, {.where = at.where});
  return any_adjust(adjustment, images, amount, at);
}

AnyOutput detail::any_adjust_gamma(const AnyOutput& images, const AnyOutput& gamma, const AnyOutput& gain,
                                   const At& at) {
  const Composite place(graph_of({&images, 1}, "adjust_gamma", at), at.where);
  const Expr real = real_image(images);
  const AnyOutput checked =
      any_assert_sign(CheckedSign::non_negative, gamma, "adjust_gamma: gamma is negative", {.where = at.where});
  const Expr power = AnyOutput(build<Pow>({real, cast_to(checked, real.dtype())}));
  return image_of_real(power * Expr(cast_to(gain, real.dtype())), images.dtype(), at);
}

}  // namespace dflow
