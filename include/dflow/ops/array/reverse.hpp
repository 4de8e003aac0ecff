#pragma once

#include <dflow/op/build.hpp>
#include <dflow/ops/array/index_list.hpp>
#include <dflow/ops/array/slice.hpp>

#include <initializer_list>

namespace dflow {

/// The first lengths[b] positions along `seq_dim` of each slice b along `batch_dim` in the opposite order, the others
/// as they are.
struct ReverseSequence : StandardOp<"ReverseSequence", AllTypes, IndexTypes> {
  struct Attrs {
    std::int64_t seq_dim = 0;
    std::int64_t batch_dim = 0;
  };
  using Inputs = In<T, U>;
  static constexpr std::array<std::string_view, 2> type_names{"T", "Tlen"};
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// What stands around a tensor that `mirror_pad` surrounds, for [a, b, c] with 2 at each end.
enum class Mirror {
  reflect,    ///< the elements beside its ends, these left out: c b [a b c] b a
  symmetric,  ///< its elements from its ends on: b a [a b c] c b
};

namespace detail {
AnyOutput any_reverse(const AnyOutput& x, const IndexList& axes, const At& at);
AnyOutput any_mirror_pad(const AnyOutput& x, std::initializer_list<PadWidth> paddings, Mirror mirror, const At& at);
}  // namespace detail

/// x with the order of its elements reversed along the axes: `reverse(images, 2)` flips each image of NHWC. A negative
/// axis counts from behind. TensorFlow's Reverse and ReverseV2, as a StridedSlice with strides of -1.
///
/// Errors: InvalidArgument if an axis is outside of [-rank, rank), an axis repeats, or the axes are an edge.
template <Element T>
Output<T> reverse(const Output<T>& x, const IndexList& axes, const At& at = {}) {
  return Output<T>::unchecked(detail::any_reverse(x, axes, at));
}

/// x: [...], lengths: [x.dim(batch_dim)] gives the shape of x. Slice b along `batch_dim` has its first lengths[b]
/// positions along `seq_dim` reversed; the rest, which is padding as a rule, stays.
///
/// ```cpp
/// auto backwards = df::reverse_sequence(words, lengths, {.seq_dim = 1});  // words: [batch, time, ...]
/// ```
/// Errors: InvalidArgument if the two dimensions are the same one or outside of [-rank, rank), or lengths has another
/// shape; in the step for a length that is negative or larger than the dimension.
template <class A, class B>
  requires Accepts<ReverseSequence, A, B>
Output<ElementFor<ReverseSequence, A, B>> reverse_sequence(const A& x, const B& lengths,
                                                           const ReverseSequence::Attrs& dims, const At& at = {}) {
  return apply<ReverseSequence>(x, lengths, dims, at);
}

/// x surrounded by its own mirror images: `mirror_pad(x, {{1, 1}, {2, 2}}, df::Mirror::reflect)` makes [h, w] to
/// [h + 2, w + 4]. TensorFlow's MirrorPad, and its gradient MirrorPadGrad, as slices, reversals and concatenations.
///
/// Errors: InvalidArgument unless there is one pair per dimension of x, none of it negative, and none larger than the
/// dimension (less 1 for `reflect`); in the step if the dimension is known only there.
template <Element T>
Output<T> mirror_pad(const Output<T>& x, std::initializer_list<PadWidth> paddings, Mirror mirror, const At& at = {}) {
  return Output<T>::unchecked(detail::any_mirror_pad(x, paddings, mirror, at));
}

}  // namespace dflow
