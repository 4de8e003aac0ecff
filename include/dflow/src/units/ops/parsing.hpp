#pragma once

/// Bodies of the ops of family parsing.

#include <dflow/ops/parsing/decode_csv.ipp>
#include <dflow/ops/parsing/decode_json_example.ipp>
#include <dflow/ops/parsing/decode_raw.ipp>
#include <dflow/ops/parsing/feature_shapes.ipp>
#include <dflow/ops/parsing/parse_example.ipp>
#include <dflow/ops/parsing/parse_sequence_example.ipp>
