#pragma once

#include <dflow/ops/strings/string_hash.hpp>

namespace dflow {

namespace detail {
DFLOW_INLINE void infer_buckets(InferContext& context, std::int64_t num_buckets) {
  if (num_buckets < 1) context.fail(str_cat("num_buckets is ", num_buckets, ", and must be at least 1"));
  context.set_output(0, context.input(0));
}
}  // namespace detail

DFLOW_INLINE void StringToHashBucketFast::infer(InferContext& context) {
  detail::infer_buckets(context, context.attrs<StringToHashBucketFast>().num_buckets);
}

DFLOW_INLINE void StringToHashBucketStrong::infer(InferContext& context) {
  const Attrs& attrs = context.attrs<StringToHashBucketStrong>();
  if (attrs.key.size() != 2) context.fail(str_cat("the key has ", attrs.key.size(), " numbers, and must have 2"));
  detail::infer_buckets(context, attrs.num_buckets);
}

DFLOW_INLINE void StringToHashBucket::infer(InferContext& context) {
  detail::infer_buckets(context, context.attrs<StringToHashBucket>().num_buckets);
}

}  // namespace dflow
