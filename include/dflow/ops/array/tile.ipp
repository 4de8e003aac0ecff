#pragma once

#include <dflow/base/checked.hpp>
#include <dflow/op/expr.hpp>
#include <dflow/ops/array/concat.hpp>
#include <dflow/ops/array/reshape.hpp>
#include <dflow/ops/array/slice.hpp>
#include <dflow/ops/array/tile.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/ops/reduction/reduce.hpp>

#include <algorithm>
#include <array>
#include <optional>

namespace dflow {

void Tile::infer(InferContext& context) {
  const PartialShape multiples = context.with_rank(1, 1);
  if (multiples[0] > max_rank)
    context.fail(str_cat("multiples has ", multiples[0], " entries, more than a tensor has dimensions"));
  PartialShape x = context.input(0);
  if (multiples[0] != dynamic) x = context.with_rank(0, static_cast<int>(multiples[0]));
  const std::optional<detail::SmallIntegers> known = detail::known_integers(context, 1);
  if (!x.has_rank()) return;
  static_cast<void>(context.merge_dim(multiples[0], x.rank()));
  if (!known) return context.set_output(0, PartialShape::unknown(x.rank()));
  detail::SmallIntegers dims;
  for (int i = 0; i < x.rank(); ++i) {
    if ((*known)[i] < 0) context.fail(str_cat("multiples[", i, "] = ", (*known)[i], " is negative"));
    const std::array<std::int64_t, 2> factors{(*known)[i], std::max<std::int64_t>(x[i], 0)};
    const std::optional<std::int64_t> product = try_product(factors);
    if (!product) context.fail(str_cat("dimension ", i, " becomes too large to be counted"));
    dims.push_back(x[i] == dynamic && (*known)[i] != 0 ? dynamic : *product);
  }
  context.set_output(0, PartialShape(dims.span()));
}

namespace detail {

/// The product of entries [begin, end) of an int32 vector, as a vector of one entry.
AnyOutput product_of_dims(GraphStore& graph, const AnyOutput& dims, int begin, int end) {
  if (const std::optional<SmallIntegers> known = constant_integers(dims)) {
    const auto entries = known->span().subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
    if (const std::optional<std::int64_t> product = try_product(entries);
        product && std::in_range<std::int32_t>(*product)) {
      return int32_constant(graph, std::array<std::int64_t, 1>{*product});
    }
  }
  const AnyOutput part = any_slice(dims, {begin}, {end - begin}, {});
  return any_reshape(build<Prod>({part, int32_constant(graph, 0)}), {1}, {});
}

}  // namespace detail

/// The sum over the repeats, one dimension after the other, the last one first.
void Tile::gradient(GradientContext& context) {
  GraphStore& graph = context.graph();
  const Expr x = context.input(0), dy = context.dy();
  const PartialShape& tiled = context.output(0).shape();
  if (!tiled.has_rank()) context.fail("neither the rank of the tensor nor the number of multiples is known");
  const AnyOutput multiples = detail::cast_to(context.input(1), DType::int32);
  const std::optional<detail::SmallIntegers> known = detail::constant_integers(context.input(1));
  const AnyOutput x_dims = shape_of(x), y_dims = shape_of(dy);
  const int rank = tiled.rank();
  AnyOutput sum = dy;
  for (int i = rank; i-- > 0;) {
    if (known && (*known)[i] == 1) continue;
    const std::array<AnyOutput, 3> dims{detail::product_of_dims(graph, y_dims, 0, i),
                                        known ? detail::int32_constant(graph, std::array<std::int64_t, 1>{(*known)[i]})
                                              : detail::any_slice(multiples, {i}, {1}, {}),
                                        detail::product_of_dims(graph, x_dims, i, rank)};
    sum = build<Sum>({build<Reshape>({sum, detail::any_concat(0, dims)}), detail::int32_constant(graph, 1)});
  }
  context.set_dx(0, build<Reshape>({sum, x_dims}));
}

AnyOutput detail::any_tile(const AnyOutput& x, const IndexList& multiples, const At& at) {
  return build<Tile>({x, multiples.edge(graph_of({&x, 1}, Tile::name, at), at)}, {}, at);
}

}  // namespace dflow
