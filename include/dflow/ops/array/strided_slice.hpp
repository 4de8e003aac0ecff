#pragma once

#include <dflow/op/build.hpp>
#include <dflow/ops/array/index_list.hpp>

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <source_location>
#include <span>
#include <string_view>

namespace dflow {

/// Bit i of a mask is about entry i of begin, end and strides, as in TensorFlow.
struct StridedSliceAttrs {
  std::int64_t begin_mask = 0;        ///< begin is ignored: the range starts at its end of the dimension
  std::int64_t end_mask = 0;          ///< end is ignored: the range goes on to the end of the dimension
  std::int64_t ellipsis_mask = 0;     ///< the entry stands for all dimensions that no other entry names; one at most
  std::int64_t new_axis_mask = 0;     ///< the entry makes a new dimension of 1
  std::int64_t shrink_axis_mask = 0;  ///< the entry is the position `begin`; the result lacks its dimension
};

/// Every strides[i]-th element of the input from begin[i] up to but without end[i], along each dimension i.
struct StridedSlice : StandardOp<"StridedSlice", AllTypes, IndexTypes> {
  using Attrs = StridedSliceAttrs;
  using Inputs = In<T, U, U, U>;
  static constexpr std::array<std::string_view, 2> type_names{"T", "Index"};
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// A tensor of shape input 0, with input 4 at the places that a StridedSlice of it reads, and zeros (false) elsewhere.
struct StridedSliceGrad : StandardOp<"StridedSliceGrad", PlainTypes, IndexTypes> {
  using Attrs = StridedSliceAttrs;
  using Inputs = In<U, U, U, U, T>;
  static constexpr std::array<std::string_view, 2> type_names{"T", "Index"};
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// One end of a range, or its stride: a number, a scalar edge, or `{}` for the default.
class SliceBound {
 public:
  SliceBound() = default;
  template <std::integral I>
    requires(!std::same_as<I, bool>)
  SliceBound(I value, std::source_location where = std::source_location::current())  // NOLINT: meant to convert
      : number_(detail::to_index(value, where)), is_given_(true) {}
  SliceBound(const Output<std::int32_t>& edge) : edge_(edge), is_given_(true) {}  // NOLINT: meant to convert
  SliceBound(const Output<std::int64_t>& edge) : edge_(edge), is_given_(true) {}  // NOLINT: meant to convert

  bool is_given() const noexcept { return is_given_; }
  std::int64_t number() const noexcept { return number_; }
  const AnyOutput& edge() const noexcept { return edge_; }

 private:
  std::int64_t number_ = 0;
  AnyOutput edge_;
  bool is_given_ = false;
};

/// A range of positions along one dimension, as `slice` makes it.
struct SliceRange {
  SliceBound begin, end, stride;
};

/// The positions begin, begin + stride, ... before `end`, as NumPy's `begin:end:stride`. A negative begin or end counts
/// from behind, and a range beyond the dimension is cut. `{}` is the end of the dimension where the walk begins or
/// stops: `slice({}, {}, -1)` is `::-1`, and `slice()` is `:`.
inline SliceRange slice(SliceBound begin, SliceBound end, SliceBound stride = {}) { return {begin, end, stride}; }
inline SliceRange slice() { return {}; }

struct Ellipsis {};
struct NewAxis {};
/// All dimensions that no other index names.
inline constexpr Ellipsis ellipsis{};
/// A new dimension of 1.
inline constexpr NewAxis new_axis{};

/// One index of a slice: a position (a number or a scalar edge), a range, `ellipsis`, or `new_axis`.
class SliceIndex {
 public:
  enum class Kind { position, range, others, added };

  template <std::integral I>
    requires(!std::same_as<I, bool>)
  SliceIndex(I position, std::source_location where = std::source_location::current())  // NOLINT: meant to convert
      : SliceIndex(Kind::position, {SliceBound(position, where), {}, {}}, where) {}
  SliceIndex(const Output<std::int32_t>& position,  // NOLINT: meant to convert
             std::source_location where = std::source_location::current())
      : SliceIndex(Kind::position, {position, {}, {}}, where) {}
  SliceIndex(const Output<std::int64_t>& position,  // NOLINT: meant to convert
             std::source_location where = std::source_location::current())
      : SliceIndex(Kind::position, {position, {}, {}}, where) {}
  SliceIndex(const SliceRange& range,  // NOLINT: meant to convert
             std::source_location where = std::source_location::current())
      : SliceIndex(Kind::range, range, where) {}
  SliceIndex(Ellipsis, std::source_location where = std::source_location::current())  // NOLINT: meant to convert
      : SliceIndex(Kind::others, {}, where) {}
  SliceIndex(NewAxis, std::source_location where = std::source_location::current())  // NOLINT: meant to convert
      : SliceIndex(Kind::added, {}, where) {}

  Kind kind() const noexcept { return kind_; }
  const SliceRange& range() const noexcept { return range_; }
  const std::source_location& where() const noexcept { return where_; }

 private:
  SliceIndex(Kind kind, const SliceRange& range, const std::source_location& where)
      : range_(range), where_(where), kind_(kind) {}

  SliceRange range_;
  std::source_location where_;
  Kind kind_;
};

namespace detail {

/// A strided slice in terms of its input's dimensions.
struct StridedBox {
  SmallIntegers begin, stride, size;  ///< one for each dimension of the input; `dynamic` where a size is unknown
  PartialShape shape;                 ///< of the result
};
/// begin, end and strides, as far as they are known.
struct StridedSliceBounds {
  std::optional<SmallIntegers> begin, end, strides;
};
/// x has a rank. Errors: InvalidArgument for bounds and masks that x does not fit.
StridedBox strided_box(const PartialShape& x, int count, const StridedSliceBounds& bounds,
                       const StridedSliceAttrs& masks);

/// The box in x of a node whose begin, end and strides are the inputs from `first` on, as far as it is known.
std::optional<StridedBox> inferred_box(const InferContext& context, const PartialShape& x, int first,
                                       const StridedSliceAttrs& masks);

/// Indices as the inputs and attributes of an op.
struct StridedSliceInputs {
  AnyOutput begin, end, strides;
  StridedSliceAttrs masks;
};
/// Errors: InvalidArgument, naming the op, for more indices than a tensor can take.
StridedSliceInputs strided_slice_inputs(GraphStore& graph, std::span<const SliceIndex> indices, std::string_view op,
                                        const At& at);

AnyOutput any_strided_slice(const AnyOutput& x, std::span<const SliceIndex> indices, const At& at);
AnyOutput any_strided_slice(const AnyOutput& x, const IndexList& begin, const IndexList& end, const IndexList& strides,
                            const StridedSliceAttrs& masks, const At& at);

}  // namespace detail

/// The part of x that the indices name, from the first dimension on; dimensions behind the last index are whole. An
/// index is a position, which drops its dimension, a range `slice(begin, end, stride)`, `ellipsis`, or `new_axis`.
/// TensorFlow's StridedSlice. `x(...)` is the same.
///
/// ```cpp
/// auto y = x(df::slice(1, -1, 2), df::ellipsis, df::new_axis, 0);  // [8, 5, 6, 7] becomes [3, 5, 6, 1]
/// ```
/// Errors: InvalidArgument for a position outside of its dimension, a stride of 0, two ellipses, or more positions and
/// ranges than x has dimensions; in the step if these are known only there.
template <AllowedFor<StridedSlice> T>
Output<T> strided_slice(const Output<T>& x, std::initializer_list<SliceIndex> indices, const At& at = {}) {
  return Output<T>::unchecked(detail::any_strided_slice(x, indices, at));
}
/// The op itself, with TensorFlow's masks. begin, end, strides: [n]; no strides are ones.
template <AllowedFor<StridedSlice> T>
Output<T> strided_slice(const Output<T>& x, const IndexList& begin, const IndexList& end, const IndexList& strides = {},
                        const StridedSliceAttrs& masks = {}, const At& at = {}) {
  return Output<T>::unchecked(detail::any_strided_slice(x, begin, end, strides, masks, at));
}

/// What a call of an edge is: `x(first, more...)`.
template <Element T, class... More>
Output<T> slice_at(const Output<T>& x, const SliceIndex& first, const More&... more) {
  return strided_slice(x, {first, SliceIndex(more)...}, {.where = first.where()});
}

}  // namespace dflow
