#pragma once

#include <dflow/base/type_list.hpp>
#include <dflow/ops/strings/base64.hpp>
#include <dflow/ops/strings/string_hash.hpp>
#include <dflow/ops/strings/string_join.hpp>
#include <dflow/ops/strings/string_number.hpp>
#include <dflow/ops/strings/string_split.hpp>
#include <dflow/ops/strings/substr.hpp>

namespace dflow {

/// The family's ops in the standard table.
using StringsOps =
    TypeList<StringJoin, ReduceJoin, StringToNumber, AsString, StringSplit, StringSplitV2, StringToHashBucketFast,
             StringToHashBucketStrong, StringToHashBucket, Substr, StringLength, EncodeBase64, DecodeBase64>;

}  // namespace dflow
