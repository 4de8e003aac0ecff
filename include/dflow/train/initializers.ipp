#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/io/checkpoint/parts/checkpoint_slice.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/array/fill.hpp>
#include <dflow/ops/random/random.hpp>
#include <dflow/train/initializers.hpp>

#include <algorithm>
#include <cmath>

namespace dflow::init {

namespace detail {

struct Fans {
  double in = 1;
  double out = 1;
};

Fans fans_of(const Shape& shape) {
  const int rank = shape.rank();
  if (rank == 0) return {};
  if (rank == 1) return {static_cast<double>(shape.dim(0)), static_cast<double>(shape.dim(0))};
  const auto window = static_cast<double>(shape.num_elements(0, rank - 2));
  return {window * static_cast<double>(shape.dim(rank - 2)), window * static_cast<double>(shape.dim(rank - 1))};
}

}  // namespace detail

Initializer constant(double value) {
  return [value](GraphStore& graph, DType dtype, const Shape& shape) {
    const AnyTensor scalar = visit_dtype<RealTypes>(
        dtype, [&]<class T>() -> AnyTensor { return Tensor<T>::full({}, static_cast<T>(value)); });
    return dflow::detail::any_fill(graph, IndexList(shape), scalar, {});
  };
}
Initializer zeros() { return constant(0); }
Initializer ones() { return constant(1); }

Initializer uniform(double minval, double maxval, std::uint64_t seed) {
  return [=](GraphStore& graph, DType dtype, const Shape& shape) {
    return dflow::detail::any_random_uniform(graph, dtype, IndexList(shape),
                                             {.minval = minval, .maxval = maxval, .seed = seed}, {});
  };
}
Initializer normal(double stddev, std::uint64_t seed) {
  return [=](GraphStore& graph, DType dtype, const Shape& shape) {
    return dflow::detail::any_random_normal(graph, dtype, IndexList(shape), {.stddev = stddev, .seed = seed}, {});
  };
}
Initializer truncated_normal(double stddev, std::uint64_t seed) {
  return [=](GraphStore& graph, DType dtype, const Shape& shape) {
    return dflow::detail::any_truncated_normal(graph, dtype, IndexList(shape), {.stddev = stddev, .seed = seed}, {});
  };
}
Initializer glorot_uniform(std::uint64_t seed) {
  return [=](GraphStore& graph, DType dtype, const VariablePart& part) {
    const detail::Fans fans = detail::fans_of(part.whole);
    const double limit = std::sqrt(6.0 / std::max(1.0, fans.in + fans.out));
    return uniform(-limit, limit, seed).of_part(graph, dtype, part);
  };
}
Initializer he_normal(std::uint64_t seed) {
  return [=](GraphStore& graph, DType dtype, const VariablePart& part) {
    // A normal number cut off at two standard deviations has 0.87962566 of its standard deviation.
    const double stddev = std::sqrt(2.0 / std::max(1.0, detail::fans_of(part.whole).in)) / 0.87962566103423978;
    return truncated_normal(stddev, seed).of_part(graph, dtype, part);
  };
}
Initializer value(const AnyTensor& tensor) {
  return [tensor](GraphStore& graph, DType dtype, const VariablePart& part) {
    if (tensor.dtype() != dtype || tensor.shape() != part.whole) {
      throw_error(Status::invalid_argument(str_cat("init::value: the value is ", dtype_name(tensor.dtype()),
                                                   tensor.shape().to_string(), ", the variable ", dtype_name(dtype),
                                                   part.whole.to_string())));
    }
    const CheckpointSlice slice{part.whole, part.begin, part.shape};
    return dflow::detail::any_constant(graph, part.shape == part.whole ? tensor : slice.cut_from(tensor), {});
  };
}

}  // namespace dflow::init
