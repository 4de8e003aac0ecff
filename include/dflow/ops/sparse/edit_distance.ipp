#pragma once

#include <dflow/ops/sparse/edit_distance.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace dflow {

void EditDistance::infer(InferContext& context) {
  using Extents = std::optional<std::vector<std::int64_t>>;
  const std::array<Extents, 2> shapes{context.value_as_integers(2), context.value_as_integers(5)};
  std::int64_t rank = dynamic;
  for (const int first : {0, 3}) {
    const std::int64_t count = context.with_rank(first + 1, 1)[0];
    const PartialShape indices = context.merge(context.input(first), PartialShape{count, dynamic});
    rank = context.merge_dim(context.merge_dim(rank, indices[1]), context.with_rank(first + 2, 1)[0]);
  }
  if (rank == dynamic) return;
  if (rank < 2 || rank > max_rank) {
    context.fail(str_cat("sparse tensors of sequences have a rank from 2 to ", max_rank, ", got ", rank));
  }
  std::vector<std::int64_t> dims(static_cast<std::size_t>(rank - 1), 0);
  for (const Extents& shape : shapes) {
    for (std::size_t i = 0; shape && i < shape->size(); ++i) {
      if ((*shape)[i] < 0) {
        const std::string_view side = &shape == shapes.data() ? "hypothesis" : "truth";
        context.fail(str_cat(side, "_shape[", i, "] = ", (*shape)[i], " is negative"));
      }
    }
    for (std::size_t i = 0; i < dims.size(); ++i) {
      dims[i] = !shape || dims[i] == dynamic ? dynamic : std::max(dims[i], (*shape)[i]);
    }
  }
  context.set_output(0, PartialShape(std::span<const std::int64_t>(dims)));
}

}  // namespace dflow
