#pragma once

#include <dflow/base/checked.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/op/expr.hpp>
#include <dflow/ops/array/fill.hpp>
#include <dflow/ops/array/like.hpp>
#include <dflow/ops/array/shape.hpp>
#include <dflow/ops/math/binary.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/ops/math/compare.hpp>
#include <dflow/ops/math/select.hpp>
#include <dflow/ops/reduction/reduce.hpp>

#include <array>
#include <cmath>
#include <cstddef>
#include <initializer_list>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

namespace dflow {

void Fill::infer(InferContext& context) {
  static_cast<void>(context.with_rank(1, 0));
  detail::infer_shape_argument(context);
}

void Fill::gradient(GradientContext& context) { context.set_dx(1, detail::sum_of_all(context.dy())); }

namespace detail {

template <class T>
std::int64_t count_range(T start, T limit, T delta) {
  if constexpr (std::is_integral_v<T>) {
    if (delta == 0) throw_error(Status::invalid_argument("the range's delta is 0"));
    // Differences are taken without a sign, so that none overflows.
    using Unsigned = std::uint64_t;
    if (delta > 0 ? start > limit : start < limit) {
      throw_error(Status::invalid_argument(str_cat("a range from ", start, " by ", delta, " does not reach ", limit)));
    }
    const Unsigned distance = delta > 0 ? static_cast<Unsigned>(limit) - static_cast<Unsigned>(start)
                                        : static_cast<Unsigned>(start) - static_cast<Unsigned>(limit);
    const Unsigned step = delta > 0 ? static_cast<Unsigned>(delta) : Unsigned{0} - static_cast<Unsigned>(delta);
    const Unsigned count = distance / step + (distance % step == 0 ? 0 : 1);
    if (count > static_cast<Unsigned>(std::numeric_limits<std::int64_t>::max())) {
      throw_error(Status::invalid_argument("the range has more elements than can be counted"));
    }
    return static_cast<std::int64_t>(count);
  } else {
    const auto from = static_cast<double>(start), to = static_cast<double>(limit), by = static_cast<double>(delta);
    if (by == 0) throw_error(Status::invalid_argument("the range's delta is 0"));
    if (!(by > 0 ? from <= to : from >= to)) {
      throw_error(Status::invalid_argument(str_cat("a range from ", from, " by ", by, " does not reach ", to)));
    }
    // Rounded to T, as limit was: the exact quotient of the floats 0.3 and 0.1 leaves room for a fourth element, 0.3.
    // If T does not hold every whole number, that would lose elements.
    auto steps = static_cast<double>(T(T(limit - start) / delta));
    if (!(steps < std::exp2(std::numeric_limits<T>::digits))) steps = (to - from) / by;
    double count = std::ceil(steps);
    if (count == 0 && from != to && std::isfinite(by)) count = 1;  // the quotient was too small for T
    if (!(count < 0x1p53)) throw_error(Status::invalid_argument(str_cat("the range would have ", count, " elements")));
    return static_cast<std::int64_t>(count);
  }
}

}  // namespace detail

std::int64_t detail::range_size(const AnyTensor& start, const AnyTensor& limit, const AnyTensor& delta) {
  return visit_dtype<RealTypes>(start.dtype(), [&]<class T>() {
    return count_range(Tensor<T>::of(start).scalar(), Tensor<T>::of(limit).scalar(), Tensor<T>::of(delta).scalar());
  });
}

void Range::infer(InferContext& context) {
  for (int i = 0; i < 3; ++i) static_cast<void>(context.with_rank(i, 0));
  const AnyTensor *start = context.value(0), *limit = context.value(1), *delta = context.value(2);
  std::int64_t size = dynamic;
  if (start != nullptr && limit != nullptr && delta != nullptr) {
    try {
      size = detail::range_size(*start, *limit, *delta);
    } catch (const Error& error) {
      context.fail(std::string(error.status().message()));
    }
  }
  context.set_output(0, {size});
}

AnyOutput detail::any_fill(GraphStore& graph, const IndexList& dims, AnyTensor value, const At& at) {
  const AnyOutput scalar = any_constant(graph, std::move(value), {.where = at.where});
  return build<Fill>({dims.edge(graph, at), scalar}, {}, at);
}

AnyOutput detail::counting(const AnyOutput& n, const At& at) {
  GraphStore& graph = *n.graph();
  return build<Range>({int32_constant(graph, 0, at), n, int32_constant(graph, 1, at)}, {}, at);
}

AnyOutput detail::any_select(const std::array<AnyOutput, 3>& inputs, const At& at) {
  std::array<AnyOutput, 3> same = inputs;
  const auto is_scalar = [](const AnyOutput& edge) { return edge.shape().has_rank() && edge.shape().rank() == 0; };
  bool all_valid = true;
  for (const AnyOutput& input : inputs) all_valid = all_valid && input.is_valid() && !input.is_dangling();
  if (all_valid) {
    const bool t_is_scalar = is_scalar(inputs[1]), e_is_scalar = is_scalar(inputs[2]);
    const AnyOutput& like = !t_is_scalar ? inputs[1] : !e_is_scalar ? inputs[2] : inputs[0];
    const At here{.where = at.where};
    for (std::size_t i = 1; i < 3 && !is_scalar(like); ++i) {
      if (is_scalar(inputs[i])) same[i] = build<Fill>({shape_of(like), inputs[i]}, {}, here);
    }
  }
  return build<Select>(std::span<const AnyOutput>(same), {}, at);
}

AnyOutput detail::any_linspace(const AnyOutput& start, const AnyOutput& stop, const AnyOutput& num, const At& at) {
  GraphStore& graph = graph_of(std::initializer_list<AnyOutput>{start, stop, num}, "LinSpace", at);
  const Composite place(graph, at.where);
  const Expr count = cast_to(num, DType::int32), first = widened(start), end = widened(stop);
  const Expr last = count - 1, i = counting(count);
  const AnyOutput steps = build<Maximum>({last, scalar_like(last, 1)});
  const Expr step = (end - first) / Expr(cast_to(steps, first.dtype()));
  const AnyOutput inner = first + Expr(cast_to(i, first.dtype())) * step;
  // A single value is the first one.
  const AnyOutput value_of_last = any_select({build<Greater>({last, scalar_like(last, 0)}), end, first}, {});
  return cast_or_name(any_select({build<Less>({i, last}), inner, value_of_last}, {}), start.dtype(), at);
}

}  // namespace dflow
