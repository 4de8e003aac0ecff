#pragma once

/// Bodies of the CPU kernels of family strings. A table instantiates the kernels that it names.

#include <dflow/kernels/contract/library_kernel.hpp>
#include <dflow/kernels/cpu/strings/base64.ipp>
#include <dflow/kernels/cpu/strings/list.hpp>
#include <dflow/kernels/cpu/strings/string_hash.ipp>
#include <dflow/kernels/cpu/strings/string_join.ipp>
#include <dflow/kernels/cpu/strings/string_number.ipp>
#include <dflow/kernels/cpu/strings/string_split.ipp>
#include <dflow/kernels/cpu/strings/substr.ipp>
