#pragma once

/// Bodies of the ops of family array.

#include <dflow/ops/array/bitcast.ipp>
#include <dflow/ops/array/blocks.ipp>
#include <dflow/ops/array/concat.ipp>
#include <dflow/ops/array/constant.ipp>
#include <dflow/ops/array/fill.ipp>
#include <dflow/ops/array/gather.ipp>
#include <dflow/ops/array/gather_nd.ipp>
#include <dflow/ops/array/index_list.ipp>
#include <dflow/ops/array/like.ipp>
#include <dflow/ops/array/one_hot.ipp>
#include <dflow/ops/array/reshape.ipp>
#include <dflow/ops/array/reverse.ipp>
#include <dflow/ops/array/shape.ipp>
#include <dflow/ops/array/slice.ipp>
#include <dflow/ops/array/strided_slice.ipp>
#include <dflow/ops/array/tile.ipp>
#include <dflow/ops/array/transpose.ipp>
#include <dflow/ops/array/unique.ipp>
#include <dflow/ops/array/where.ipp>
