#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/op/expr.hpp>
#include <dflow/ops/array/concat.hpp>
#include <dflow/ops/array/fill.hpp>
#include <dflow/ops/array/reshape.hpp>
#include <dflow/ops/array/shape.hpp>
#include <dflow/ops/array/slice.hpp>
#include <dflow/ops/control/check.hpp>
#include <dflow/ops/math/batch_matmul.hpp>
#include <dflow/ops/math/compare.hpp>
#include <dflow/ops/math/select.hpp>
#include <dflow/ops/math/unary.hpp>
#include <dflow/ops/nn/softmax.hpp>
#include <dflow/train/recurrent/attention.hpp>
#include <dflow/train/variables/layer_builder.hpp>

#include <array>

namespace dflow {

namespace detail {

std::int64_t memory_columns(const AnyOutput& memory, const At& at) {
  if (!memory.is_valid()) reject_layer("attention", "the memory is an empty Output", at);
  const PartialShape& shape = memory.shape();
  if (!shape.has_rank() || shape.rank() != 3 || shape.dim(2) == dynamic) {
    reject_layer(
        "attention",
        str_cat("the memory needs three dimensions and a known number of columns, its shape is ", shape.to_string()),
        at);
  }
  return shape.dim(2);
}

std::int64_t output_columns(const AnyOutput& output, const At& at) {
  return known_channels(output, 2, 2, "attention", at);
}

AnyOutput beside(const AnyOutput& x, const AnyOutput& context, const At& at) {
  if (!x.is_valid()) reject_layer("attention", "the input is an empty Output", at);
  const Composite place(*x.graph(), at.where);
  return any_concat(1, std::array{x, context});
}

AnyOutput attention_rows(const AnyOutput& keys, const AnyOutput& query, const At& at) {
  const Composite place(*keys.graph(), at.where);
  const AnyOutput sum = build<Tanh>({Expr(keys) + Expr(any_expand_dims(query, 1, {}))});
  return any_reshape(sum, IndexList{-1, keys.shape().dim(2)}, {});
}

AnyOutput attention_context(const AnyOutput& scores, const AnyOutput& memory, const AnyOutput& memory_length,
                            const At& at) {
  GraphStore& graph = *memory.graph();
  const Composite place(graph, at.where);
  const AnyOutput extents = any_slice(shape_of(memory), {0}, {2}, {});
  AnyOutput each = build<Reshape>({scores, extents});
  if (memory_length.is_valid()) {
    const AnyOutput time = any_reshape(any_slice(extents, {1}, {1}, {}), IndexList(Shape{}), {});
    const AnyOutput position = any_expand_dims(counting(time, {}), 0, {});
    const AnyOutput is_seen = build<Less>({position, any_expand_dims(memory_length, 1, {})});
    each = build<Select>({is_seen, each, zeros_like(each) - 6e4});  // also finite in 16 bits
  }
  const AnyOutput weights = any_expand_dims(AnyOutput(build<Softmax>({each})), 1, {});
  const AnyOutput mean = build<BatchMatMul>({weights, memory});
  const PartialShape& shape = memory.shape();
  const AnyOutput context = any_reshape(mean, IndexList{-1, shape.dim(2)}, {});
  return build<EnsureShape>({context}, {.shape = {shape.dim(0), shape.dim(2)}});
}

}  // namespace detail

}  // namespace dflow
