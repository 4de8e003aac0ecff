#pragma once

#include <dflow/ops/strings/string_hash.hpp>

namespace dflow {

namespace detail {
void infer_buckets(InferContext& context, std::int64_t num_buckets) {
  if (num_buckets < 1) context.fail(str_cat("num_buckets is ", num_buckets, ", and must be at least 1"));
  context.set_output(0, context.input(0));
}
}  // namespace detail

void StringToHashBucketFast::infer(InferContext& context) {
  detail::infer_buckets(context, context.attrs<StringToHashBucketFast>().num_buckets);
}

void StringToHashBucketStrong::infer(InferContext& context) {
  const Attrs& attrs = context.attrs<StringToHashBucketStrong>();
  if (attrs.key.size() != 2) context.fail(str_cat("the key has ", attrs.key.size(), " numbers, and must have 2"));
  detail::infer_buckets(context, attrs.num_buckets);
}

void StringToHashBucket::infer(InferContext& context) {
  detail::infer_buckets(context, context.attrs<StringToHashBucket>().num_buckets);
}

Output<std::int64_t> string_to_hash_bucket_fast(const Output<std::string>& texts, std::int64_t num_buckets,
                                                const At& at) {
  return Output<std::int64_t>::unchecked(build<StringToHashBucketFast>({texts}, {.num_buckets = num_buckets}, at));
}

Output<std::int64_t> string_to_hash_bucket_strong(const Output<std::string>& texts, std::int64_t num_buckets,
                                                  const std::array<std::uint64_t, 2>& key, const At& at) {
  return Output<std::int64_t>::unchecked(build<StringToHashBucketStrong>(
      {texts},
      {.num_buckets = num_buckets, .key = {static_cast<std::int64_t>(key[0]), static_cast<std::int64_t>(key[1])}}, at));
}

Output<std::int64_t> string_to_hash_bucket(const Output<std::string>& texts, std::int64_t num_buckets, const At& at) {
  return Output<std::int64_t>::unchecked(build<StringToHashBucket>({texts}, {.num_buckets = num_buckets}, at));
}

}  // namespace dflow
