#pragma once

#include <dflow/ops/strings/string_op.hpp>

#include <array>
#include <string>
#include <vector>

namespace dflow {

/// The bucket that each text falls into, elementwise, by FarmHash's Fingerprint64.
struct StringToHashBucketFast : TextOp<"StringToHashBucketFast"> {
  struct Attrs {
    std::int64_t num_buckets = 1;
  };
  using Inputs = In<std::string>;
  using Outputs = Out<std::int64_t>;
  static void infer(InferContext& context);
};

/// The same by SipHash under a key of two numbers.
struct StringToHashBucketStrong : TextOp<"StringToHashBucketStrong"> {
  struct Attrs {
    std::int64_t num_buckets = 1;
    std::vector<std::int64_t> key = {0, 0};
  };
  using Inputs = In<std::string>;
  using Outputs = Out<std::int64_t>;
  static void infer(InferContext& context);
};

/// The same by TensorFlow's Hash64, which is slower than the first and no safer.
struct StringToHashBucket : TextOp<"StringToHashBucket"> {
  struct Attrs {
    std::int64_t num_buckets = 1;
  };
  using Inputs = In<std::string>;
  using Outputs = Out<std::int64_t>;
  static void infer(InferContext& context);
};

/// texts [d0, ..., dn] to buckets of the same shape in [0, num_buckets). The buckets are the same in every process and
/// in TensorFlow. Anybody can make texts that fall into one bucket.
///
/// Errors: InvalidArgument if num_buckets is below 1.
Output<std::int64_t> string_to_hash_bucket_fast(const Output<std::string>& texts, std::int64_t num_buckets,
                                                const At& at = {});

/// The same, but nobody can make texts that fall into one bucket without knowing `key`.
Output<std::int64_t> string_to_hash_bucket_strong(const Output<std::string>& texts, std::int64_t num_buckets,
                                                  const std::array<std::uint64_t, 2>& key, const At& at = {});

/// The buckets of TensorFlow's oldest op of the three.
Output<std::int64_t> string_to_hash_bucket(const Output<std::string>& texts, std::int64_t num_buckets,
                                           const At& at = {});

}  // namespace dflow
