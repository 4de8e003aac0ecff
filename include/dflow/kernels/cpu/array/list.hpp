#pragma once

/// The kernels of the family's ops.

#include <dflow/kernels/cpu/array/bitcast.hpp>
#include <dflow/kernels/cpu/array/concat.hpp>
#include <dflow/kernels/cpu/array/element_bits.hpp>
#include <dflow/kernels/cpu/array/element_copy.hpp>
#include <dflow/kernels/cpu/array/fill.hpp>
#include <dflow/kernels/cpu/array/gather.hpp>
#include <dflow/kernels/cpu/array/gather_nd.hpp>
#include <dflow/kernels/cpu/array/like.hpp>
#include <dflow/kernels/cpu/array/named_rows.hpp>
#include <dflow/kernels/cpu/array/one_hot.hpp>
#include <dflow/kernels/cpu/array/reshape.hpp>
#include <dflow/kernels/cpu/array/reverse.hpp>
#include <dflow/kernels/cpu/array/shape.hpp>
#include <dflow/kernels/cpu/array/slice.hpp>
#include <dflow/kernels/cpu/array/strided_slice.hpp>
#include <dflow/kernels/cpu/array/tile.hpp>
#include <dflow/kernels/cpu/array/transpose.hpp>
#include <dflow/kernels/cpu/array/unique.hpp>
#include <dflow/kernels/cpu/array/where.hpp>
#include <dflow/ops/array/list.hpp>
