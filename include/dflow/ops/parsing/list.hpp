#pragma once

#include <dflow/base/type_list.hpp>
#include <dflow/ops/parsing/decode_csv.hpp>
#include <dflow/ops/parsing/decode_json_example.hpp>
#include <dflow/ops/parsing/decode_raw.hpp>
#include <dflow/ops/parsing/parse_example.hpp>
#include <dflow/ops/parsing/parse_sequence_example.hpp>

namespace dflow {

/// The family's ops in the standard table.
using ParsingOps =
    TypeList<DecodeRaw, DecodeCsv, DecodeJsonExample, ParseExample, ParseSingleExample, ParseSingleSequenceExample>;

}  // namespace dflow
