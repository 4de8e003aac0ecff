#pragma once

#include <dflow/base/type_list.hpp>
#include <dflow/ops/array/bitcast.hpp>
#include <dflow/ops/array/concat.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/array/fill.hpp>
#include <dflow/ops/array/gather.hpp>
#include <dflow/ops/array/gather_nd.hpp>
#include <dflow/ops/array/like.hpp>
#include <dflow/ops/array/one_hot.hpp>
#include <dflow/ops/array/reshape.hpp>
#include <dflow/ops/array/reverse.hpp>
#include <dflow/ops/array/shape.hpp>
#include <dflow/ops/array/slice.hpp>
#include <dflow/ops/array/strided_slice.hpp>
#include <dflow/ops/array/tile.hpp>
#include <dflow/ops/array/transpose.hpp>
#include <dflow/ops/array/unique.hpp>
#include <dflow/ops/array/where.hpp>

namespace dflow {

/// The family's ops in the standard table.
using ArrayOps =
    TypeList<Const, Placeholder, PlaceholderWithDefault, ZerosLike, OnesLike, Identity, StopGradient, ShapeOf, RankOf,
             SizeOf, Reshape, ExpandDims, Squeeze, Fill, Range, OneHot, Slice, StridedSlice, StridedSliceGrad, Pad,
             Concat, ConcatOffset, Split, Pack, Unpack, Transpose, InvertPermutation, ReverseSequence, Tile, Bitcast,
             Gather, GatherNd, ScatterNd, Where, ListDiff, Unique, UniqueWithCounts>;

}  // namespace dflow
