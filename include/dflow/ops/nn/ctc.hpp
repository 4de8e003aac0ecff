#pragma once

#include <dflow/op/build.hpp>
#include <dflow/ops/sparse_output.hpp>

#include <cstdint>
#include <tuple>

namespace dflow {

/// What TensorFlow's ops of connectionist temporal classification compute with.
using CtcTypes = TypeList<float, double>;

/// Connectionist temporal classification: inputs [max_time, batch, classes], logits; labels_indices [n, 2] and
/// labels_values [n], a sparse matrix with a row of labels for each item of the batch; sequence_length [batch]. Gives
/// the loss of each item, [batch], and its gradient by the inputs.
struct CTCLoss : StandardOp<"CTCLoss", CtcTypes> {
  struct Attrs {
    bool preprocess_collapse_repeated = false;  ///< a run of one label becomes one label before anything else
    bool ctc_merge_repeated = true;             ///< a run of one class in a path stands for one label
  };
  using Inputs = In<T, std::int64_t, std::int32_t, std::int32_t>;
  using Outputs = Out<T, T>;
  static void infer(InferContext& context);
  static void gradient(GradientContext& context);
};

/// The negative logarithm of the probability of the labels of each item, summed over all paths of classes that stand
/// for them (Graves et al. 2006, ICML; TensorFlow's ctc_loss).
///
/// inputs: [max_time, batch, classes], float or double, logits: the op takes their softmax. The last class is the
/// blank. labels: rows of classes below the blank; blanks at the end of a row are left out. sequence_length: int32
/// [batch], in [0, max_time]. Gives the losses, [batch]. Time steps behind the end of a sequence count for nothing, and
/// their gradient is 0. Probabilities are computed in double with exponents of their own, so that no path is lost,
/// however small. A loss is infinite if no path stands for the labels, such as a repeated label without a time step
/// for the blank between; its gradient then is the softmax. A logit that is not a number makes the item's loss and
/// gradient not a number. There is no gradient of second order.
///
/// ```cpp
/// auto loss = df::reduce_mean(df::ctc_loss(logits, labels, lengths));   // labels: df::SparseOutput<std::int32_t>
/// ```
/// Errors: InvalidArgument if the shapes do not fit. In the step, InvalidArgument with the position for a label or a
/// length out of range, a label behind a blank, indices that are not in the order of rows and columns, and an item with
/// more labels than time steps.
template <class A, class B>
  requires Accepts<CTCLoss, A, Output<std::int64_t>, Output<std::int32_t>, B>
Output<ElementFor<CTCLoss, A, Output<std::int64_t>, Output<std::int32_t>, B>> ctc_loss(
    const A& inputs, const SparseOutput<std::int32_t>& labels, const B& sequence_length, CTCLoss::Attrs attrs = {},
    const At& at = {}) {
  return std::get<0>(apply<CTCLoss>(inputs, labels.indices, labels.values, sequence_length, attrs, at));
}

}  // namespace dflow
