#pragma once

/// The kernels of the family's ops.

#include <dflow/kernels/cpu/io/files.hpp>
#include <dflow/kernels/cpu/io/reader.hpp>
#include <dflow/ops/io/list.hpp>
