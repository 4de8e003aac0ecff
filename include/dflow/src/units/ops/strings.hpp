#pragma once

/// Bodies of the ops of family strings.

#include <dflow/ops/strings/base64.ipp>
#include <dflow/ops/strings/string_hash.ipp>
#include <dflow/ops/strings/string_join.ipp>
#include <dflow/ops/strings/string_number.ipp>
#include <dflow/ops/strings/string_split.ipp>
#include <dflow/ops/strings/substr.ipp>
