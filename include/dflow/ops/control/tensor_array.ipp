#pragma once

#include <dflow/ops/control/tensor_array.hpp>
#include <dflow/ops/math/cast.hpp>

#include <limits>
#include <vector>

namespace dflow::detail {

AnyOutput shape_to_ask_for(GraphStore& graph, const PartialShape& shape) {
  if (!shape.has_rank()) return any_constant(graph, Tensor<std::int32_t>(-1), {});
  std::vector<std::int32_t> dims;
  for (const std::int64_t dim : shape.dims()) {
    const bool fits = dim <= std::numeric_limits<std::int32_t>::max();
    dims.push_back(fits ? static_cast<std::int32_t>(dim) : -1);
  }
  return any_constant(graph, Tensor<std::int32_t>(Shape{static_cast<std::int64_t>(dims.size())}, dims), {});
}
AnyOutput shape_to_ask_for(const AnyOutput& list, std::string_view op, const At& at) {
  GraphStore& graph = graph_of({&list, 1}, op, at);
  return shape_to_ask_for(graph, list.shape());
}

AnyOutput any_array(const AnyOutput& size, const PartialShape& element_shape, const At& at) {
  return build<TensorListReserve>({size}, {.element_shape = element_shape}, at);
}

AnyOutput any_array_read(const AnyOutput& list, const AnyOutput& index, DType dtype, const At& at) {
  return build<TensorListGetItem>({list, index, shape_to_ask_for(list, TensorListGetItem::name, at)}, {}, at,
                                  two_types(dtype, index.dtype()));
}

AnyOutput any_array_stack(const AnyOutput& list, DType dtype, const At& at) {
  return build<TensorListStack>({list, shape_to_ask_for(list, TensorListStack::name, at)}, {}, at, one_type(dtype));
}

AnyOutput any_array_gather(const AnyOutput& list, const AnyOutput& indices, DType dtype, const At& at) {
  return build<TensorListGather>({list, indices, shape_to_ask_for(list, TensorListGather::name, at)}, {}, at,
                                 one_type(dtype));
}

AnyOutput any_array_scatter(const AnyOutput& x, const AnyOutput& indices, const At& at) {
  const AnyOutput any_size =
      any_constant(graph_of({&x, 1}, TensorListScatter::name, at), Tensor<std::int32_t>::full({}, -1), {});
  return build<TensorListScatter>({x, indices, any_size}, {}, at);
}

AnyOutput any_array_concat(const AnyOutput& list, DType dtype, const At& at) {
  const AnyOutput shape = shape_to_ask_for(list, TensorListConcatV2::name, at);
  const AnyOutput none = any_constant(*list.graph(), Tensor<std::int64_t>(Shape{0}), {});
  return build<TensorListConcatV2>({list, shape, none}, {}, at, one_type(dtype)).output(0);
}

AnyOutput any_array_split(const AnyOutput& x, const AnyOutput& lengths, const At& at) {
  GraphStore& graph = graph_of({&x, 1}, TensorListSplit::name, at);
  const bool is_narrow = lengths.is_valid() && lengths.dtype() != DType::int64;
  const AnyOutput wide = is_narrow ? cast_to(lengths, DType::int64) : lengths;
  return build<TensorListSplit>({x, shape_to_ask_for(graph, PartialShape::unknown()), wide}, {}, at);
}

}  // namespace dflow::detail
