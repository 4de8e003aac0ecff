#pragma once

#include <dflow/base/checked.hpp>
#include <dflow/op/expr.hpp>
#include <dflow/ops/array/reshape.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace dflow {

namespace detail {

/// The open dimension of `dims` beside a 0, for an x without elements. It is the quotient of both sides without their
/// zeros, so that [0, 3] becomes [0, -1] as [0, 3]. Rounded down: any number leaves the tensor without elements.
std::int64_t open_dim_beside_zero(const InferContext& context, const SmallIntegers& dims) {
  const auto product_of_positive = [&](std::span<const std::int64_t> all) {
    SmallIntegers positive;
    for (const std::int64_t dim : all) {
      if (dim > 0) positive.push_back(dim);
    }
    const std::optional<std::int64_t> product = try_product(positive.span());
    if (!product) context.fail(str_cat("shape ", dims_to_string(all), " has dimensions that cannot be multiplied"));
    return *product;
  };
  return product_of_positive(context.input(0).dims()) / product_of_positive(dims.span());
}

/// `dims` with its -1 replaced, as far as x is known.
PartialShape reshaped_dims(const InferContext& context, SmallIntegers dims) {
  const PartialShape& x = context.input(0);
  const auto wanted = [&] { return dims_to_string(dims.span()); };
  if (dims.size() > max_rank) context.fail(str_cat("the shape has ", dims.size(), " dimensions, more than ", max_rank));
  int open = -1;
  SmallIntegers known_dims;
  for (int i = 0; i < dims.size(); ++i) {
    if (dims[i] < -1) context.fail(str_cat("dimension ", i, " of the new shape is ", dims[i]));
    if (dims[i] >= 0) {
      known_dims.push_back(dims[i]);
    } else if (open >= 0) {
      context.fail(str_cat("the new shape ", wanted(), " leaves more than one dimension open"));
    } else {
      open = i;
    }
  }
  const std::optional<std::int64_t> known = try_product(known_dims.span());
  if (!known) context.fail("the new shape has more elements than can be counted");
  const std::optional<std::int64_t> total = x.num_elements();
  if (total && open >= 0) {
    if (*total == 0 && *known == 0) {
      dims[open] = open_dim_beside_zero(context, dims);
      return PartialShape(dims.span());
    }
    if (*known == 0 || *total % *known != 0) {
      context.fail(str_cat("the ", *total, " elements of shape ", x.to_string(),
                           " do not decide the open dimension of ", wanted()));
    }
    dims[open] = *total / *known;
  } else if (total && *total != *known) {
    context.fail(
        str_cat("shape ", x.to_string(), " of ", *total, " elements cannot become ", wanted(), " of ", *known));
  }
  return PartialShape(dims.span());
}

/// x in its own shape again: the gradient of all reshaping ops.
AnyOutput reshape_like(const Expr& dy, const Expr& x) { return build<Reshape>({dy, shape_of(x)}); }

}  // namespace detail

void Reshape::infer(InferContext& context) {
  const PartialShape shape = context.with_rank(1, 1);
  if (const std::optional<detail::SmallIntegers> dims = detail::known_integers(context, 1)) {
    context.set_output(0, detail::reshaped_dims(context, *dims));
  } else if (const std::optional<PartialShape> known = context.value_as_shape(1)) {
    context.set_output(0, *known);
  } else if (shape[0] != dynamic && shape[0] <= max_rank) {
    context.set_output(0, PartialShape::unknown(static_cast<int>(shape[0])));
  }
}

void Reshape::gradient(GradientContext& context) {
  context.set_dx(0, detail::reshape_like(context.dy(), context.input(0)));
}

void ExpandDims::infer(InferContext& context) {
  const PartialShape& dim = context.input(1);
  if (dim.has_rank() && (dim.rank() > 1 || (dim.rank() == 1 && dim[0] != 1 && dim[0] != dynamic))) {
    context.fail(str_cat("dim must be a scalar, got shape ", dim.to_string()));
  }
  const PartialShape& x = context.input(0);
  if (!x.has_rank()) return;
  if (x.rank() == max_rank) context.fail(str_cat("a tensor has at most ", max_rank, " dimensions"));
  const std::optional<detail::SmallIntegers> value = detail::known_integers(context, 1);
  if (!value || value->size() != 1) return context.set_output(0, PartialShape::unknown(x.rank() + 1));
  context.set_output(0, x.inserted(context.normalize_axis((*value)[0], x.rank() + 1), 1));
}

void ExpandDims::gradient(GradientContext& context) {
  context.set_dx(0, detail::reshape_like(context.dy(), context.input(0)));
}

void Squeeze::infer(InferContext& context) {
  const PartialShape& x = context.input(0);
  if (!x.has_rank()) return;
  const std::vector<std::int64_t>& listed = context.attrs<Squeeze>().squeeze_dims;
  std::uint32_t dropped = 0;
  for (const std::int64_t axis : listed) dropped |= 1u << context.normalize_axis(axis, x.rank());
  detail::SmallIntegers kept;
  for (int i = 0; i < x.rank(); ++i) {
    if ((dropped >> i & 1u) != 0 && x[i] != 1 && x[i] != dynamic) {
      context.fail(str_cat("dimension ", i, " of shape ", x.to_string(), " is ", x[i], ", not 1"));
    }
    if (listed.empty() && x[i] == dynamic) return;  // it may be a 1
    const bool drops = listed.empty() ? x[i] == 1 : (dropped >> i & 1u) != 0;
    if (!drops) kept.push_back(x[i]);
  }
  context.set_output(0, PartialShape(kept.span()));
}

void Squeeze::gradient(GradientContext& context) {
  context.set_dx(0, detail::reshape_like(context.dy(), context.input(0)));
}

AnyOutput detail::any_reshape(const AnyOutput& x, const IndexList& shape, const At& at) {
  return build<Reshape>({x, shape.edge(graph_of({&x, 1}, Reshape::name, at), at)}, {}, at);
}

AnyOutput detail::any_expand_dims(const AnyOutput& x, std::int32_t axis, const At& at) {
  GraphStore& graph = graph_of({&x, 1}, ExpandDims::name, at);
  return build<ExpandDims>({x, int32_constant(graph, axis, {.where = at.where})}, {}, at);
}

}  // namespace dflow
