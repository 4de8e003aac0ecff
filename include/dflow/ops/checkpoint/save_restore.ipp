#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/ops/checkpoint/save_restore.hpp>

#include <cstddef>

namespace dflow {

namespace detail {

/// prefix [], names [n], slices [n]
void infer_checkpoint_names(InferContext& context, std::size_t num_tensors) {
  static_cast<void>(context.with_rank(0, 0));
  const PartialShape list{static_cast<std::int64_t>(num_tensors)};
  static_cast<void>(context.merge(context.input(1), list));
  static_cast<void>(context.merge(context.input(2), list));
}

}  // namespace detail

void SaveV2::infer(InferContext& context) {
  const Attrs& attrs = context.attrs<SaveV2>();
  detail::infer_checkpoint_names(context, attrs.dtypes.size());
  if (attrs.shard < 0 || attrs.shard >= attrs.num_shards) {
    context.fail(str_cat("there is no shard ", attrs.shard, " of ", attrs.num_shards));
  }
}

void RestoreV2::infer(InferContext& context) {
  const Attrs& attrs = context.attrs<RestoreV2>();
  detail::infer_checkpoint_names(context, attrs.dtypes.size());
  if (attrs.shapes.empty()) return;
  if (attrs.shapes.size() != attrs.dtypes.size()) {
    context.fail(str_cat(attrs.shapes.size(), " shapes for ", attrs.dtypes.size(), " tensors"));
  }
  for (std::size_t i = 0; i < attrs.shapes.size(); ++i) context.set_output(static_cast<int>(i), attrs.shapes[i]);
}

void MergeV2Checkpoints::infer(InferContext& context) { static_cast<void>(context.with_rank(1, 0)); }

}  // namespace dflow
