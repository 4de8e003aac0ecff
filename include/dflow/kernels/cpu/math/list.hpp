#pragma once

/// The kernels of the family's ops.

#include <dflow/kernels/cpu/elementwise/library_code.hpp>
#include <dflow/kernels/cpu/math/batch_matmul.hpp>
#include <dflow/kernels/cpu/math/broadcast.hpp>
#include <dflow/kernels/cpu/math/cast.hpp>
#include <dflow/kernels/cpu/math/complex.hpp>
#include <dflow/kernels/cpu/math/matmul.hpp>
#include <dflow/kernels/cpu/math/select.hpp>
#include <dflow/ops/math/list.hpp>
