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

/// Trains one model on several devices in step, without parameter servers. Each replica has the variables on its own
/// device and computes gradients for its part of the batch. The mean of the gradients, by `all_reduce`, updates the
/// variables of each replica.
///
/// ```cpp
/// df::train::MirroredReplicas mirrored(df::train::Adam(1e-3f), {"/gpu:0", "/gpu:1"});
/// auto train = mirrored.minimize(graph, [&](std::size_t replica) { return loss_of(images[replica]); });
/// df::Session session(graph);
/// session.run(df::initialize_variables(graph));
/// session.run(mirrored.mirror());
/// session.run({{images[0], x0}, {images[1], x1}}, train);
/// ```
/// One process runs all replicas in one step; devices may belong to other tasks ("/job:worker/task:1"). If each loss
/// is a mean over equally many examples, a step equals a step of one replica on the whole batch, except for the order
/// of sums. The replicas' variables stay equal, bit for bit, if their devices compute updates alike.
///
/// After `mirror`, each replica has its own copy of variables that are not trained, for example moving averages. All
/// replicas share the scale of a `LossScaleOptimizer`.
///
/// Thread safety: `minimize` builds, see Graph; the rest is const.
/// Errors: InvalidArgument without devices; FailedPrecondition from functions that need a `minimize` first, and from
/// a second `minimize`.
class MirroredReplicas {
 public:
  template <std::derived_from<Optimizer> O>
  MirroredReplicas(O optimizer, std::vector<std::string> devices)
      : MirroredReplicas(std::make_shared<const O>(std::move(optimizer)), std::move(devices)) {}
  MirroredReplicas(std::shared_ptr<const Optimizer> optimizer, std::vector<std::string> devices);

  /// One step of all replicas. Calls `model(replica)` once for each replica, on its device, to build the replica's
  /// loss. Names of the second replica's nodes begin with "replica_1/", also for variables of variable scopes. A
  /// replica owns the variables that its model makes. Its `regularization_loss` covers the terms that its model made
  /// and the terms that were there before. After an error, no built nodes are left.
  ///
  /// Errors: InvalidArgument if the replicas' variables differ in number, order, name (except the numbers that make
  /// names unique), element type, shape or whether they are trained. InvalidArgument also without variables to train,
  /// if a loss depends on a variable in some replicas only, or if `options.variables` names variables. Also the
  /// errors of the model and the optimizer.
  template <class Model>
    requires std::convertible_to<std::invoke_result_t<Model&, std::size_t>, AnyOutput>
  Operation minimize(Graph& graph, Model&& model, const MinimizeOptions& options = {}, const At& at = {}) {
    return build(
        graph, [&](std::size_t replica) -> AnyOutput { return model(replica); }, options, at);
  }

  std::size_t num_replicas() const noexcept { return devices_.size(); }
  /// The loss of each replica, on its device.
  const std::vector<AnyOutput>& losses() const;
  /// The mean of the losses, on the first replica's device.
  const AnyOutput& loss() const;
  /// Copies the values of the first replica's variables, slots of optimizers included, to the other replicas. Run it
  /// after variables were initialised or restored, before the first step.
  const Operation& mirror() const;
  /// The variables that the graph has now, without the copies of replicas other than the first, for all models. Give
  /// them to a Saver: the checkpoint then has one copy, and a model of one replica can restore it.
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
