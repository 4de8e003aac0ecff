#pragma once

/// The kernels of the family's ops.

#include <dflow/kernels/cpu/strings/base64.hpp>
#include <dflow/kernels/cpu/strings/string_hash.hpp>
#include <dflow/kernels/cpu/strings/string_join.hpp>
#include <dflow/kernels/cpu/strings/string_number.hpp>
#include <dflow/kernels/cpu/strings/string_split.hpp>
#include <dflow/kernels/cpu/strings/substr.hpp>
#include <dflow/kernels/cpu/strings/text_loop.hpp>
#include <dflow/ops/strings/list.hpp>
