#pragma once

#include <dflow/base/function_ref.hpp>
#include <dflow/base/shared_part.hpp>
#include <dflow/train/optimizer.hpp>
#include <dflow/train/saving/saver.hpp>

#include <concepts>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace dflow::train {

/// Trains one model on several devices in step, without parameter servers: each replica has the variables on its own
/// device and computes gradients of its part of the batch; their mean, by `all_reduce`, updates the variables of each.
///
/// ```cpp
/// df::train::MirroredReplicas mirrored(df::train::Adam(1e-3f), {"/gpu:0", "/gpu:1"});
/// auto train = mirrored.minimize(graph, [&](std::size_t replica) { return loss_of(images[replica]); });
/// df::Session session(graph);
/// session.run(df::initialize_variables(graph));
/// session.run(mirrored.mirror());
/// session.run({{images[0], x0}, {images[1], x1}}, train);
/// ```
/// One process runs all replicas in one step; devices may be of other tasks ("/job:worker/task:1"). With losses that
/// are means of as many examples each, steps are those of one replica on the whole batch, but for the order in which
/// sums are added. The replicas' variables stay equal, bit for bit, where their devices compute updates alike.
///
/// Variables that are not trained, moving averages say, are each replica's own after `mirror`. The scale of a
/// `LossScaleOptimizer` is one of all.
///
/// Thread safety: `minimize` builds, see Graph; the rest is const.
/// Errors: InvalidArgument unless there are devices; FailedPrecondition from what needs a `minimize` before it, and
/// from a second one.
class MirroredReplicas {
 public:
  template <std::derived_from<Optimizer> O>
  MirroredReplicas(O optimizer, std::vector<std::string> devices)
      : MirroredReplicas(std::make_shared<const O>(std::move(optimizer)), std::move(devices)) {}
  MirroredReplicas(std::shared_ptr<const Optimizer> optimizer, std::vector<std::string> devices);

  /// One step of all replicas. `model(replica)` is called once for each, on its device, and builds its loss; what it
  /// builds for the second one has names that begin with "replica_1/", variables of variable scopes included. Variables
  /// that it makes are the replica's; its `regularization_loss` is of what it has made and of what was there before.
  /// After an error nothing that was built is left.
  ///
  /// Errors: InvalidArgument if the replicas' variables differ in number, order, name (but for the numbers that make
  /// names unique), element type, shape or whether they are trained, if there are none to train, if a loss depends on
  /// one in some replicas only, or if `options.variables` names some; those of the model and the optimizer.
  template <class Model>
    requires std::convertible_to<std::invoke_result_t<Model&, std::size_t>, AnyOutput>
  Operation minimize(Graph& graph, Model&& model, const MinimizeOptions& options = {}, const At& at = {}) {
    return build(
        graph, [&](std::size_t replica) -> AnyOutput { return model(replica); }, options, at);
  }

  std::size_t num_replicas() const noexcept { return devices_.size(); }
  /// The replicas' losses, each on its device.
  const std::vector<AnyOutput>& losses() const;
  /// The mean of the losses, on the first replica's device.
  const AnyOutput& loss() const;
  /// Gives the variables of the other replicas, slots of optimizers included, the values that those of the first have:
  /// to be run when variables have been initialised or restored, before the first step.
  const Operation& mirror() const;
  /// The variables that the graph has now, but for those of other replicas than the first, of whichever model: what a
  /// Saver is to be given, so that a checkpoint has one copy, which a model of one replica can restore.
  std::vector<SavedVariable> saved_variables() const;

 private:
  struct Built;
  const Built& built() const;
  Operation build(Graph& graph, FunctionRef<AnyOutput(std::size_t)> model, const MinimizeOptions& options,
                  const At& at);

  SharedPart<const Optimizer> optimizer_;
  std::vector<std::string> devices_;
  SharedPart<const Built> built_;
};

}  // namespace dflow::train
