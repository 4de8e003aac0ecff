#pragma once

/// The kernels of the family's ops.

#include <dflow/kernels/cpu/parsing/decode_csv.hpp>
#include <dflow/kernels/cpu/parsing/decode_raw.hpp>
#include <dflow/kernels/cpu/parsing/parse_example.hpp>
#include <dflow/ops/parsing/list.hpp>
