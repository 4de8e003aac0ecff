#pragma once

#include <dflow/base/clock.hpp>
#include <dflow/base/duration.hpp>
#include <dflow/base/files/file_system.hpp>
#include <dflow/base/lifetime.hpp>
#include <dflow/graph/graph.hpp>
#include <dflow/ops/state/variable.hpp>
#include <dflow/session/session.hpp>
#include <dflow/train/saving/checkpoint_state.hpp>
#include <dflow/train/saving/saved_state.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dflow::train {

struct SaverOptions {
  /// Most checkpoints to keep, counting only checkpoints in the directory that its state names; older ones are
  /// removed. 0: all.
  int max_to_keep = 5;
  /// Keeps a checkpoint for good, instead of removing it, if it was saved this long after the last one kept for good,
  /// or, without one, after the saver first read the state of the directory.
  std::optional<Duration> keep_every = {};
  /// Each task writes its own variables, into files that all tasks see; false: one task writes all variables.
  bool sharded = true;
  /// Also saves the positions of all random ops that the graph has now, so that a resumed run draws the numbers that
  /// would have come. Skips nodes in the graph's collection "not_saved", for example the nodes of first values of a
  /// partitioned variable's parts.
  bool random_streams = true;
  /// Also saves contents of queues and accumulators, positions of readers, and the replicas that have left barriers
  /// and clocks. Skips nodes in the graph's collection "not_saved".
  bool queues = true;
  /// Also saves this state of the saving process: positions of iterators, `saved_iterator("batches", batches)`.
  std::vector<SavedState> states = {};
  /// This process's view of the files that the tasks write, for the state file and for removals: give the session or
  /// its servers the same files. Null: the machine's files.
  std::shared_ptr<FileSystem> files = nullptr;
  /// Dates checkpoints; null: the machine's clock.
  std::shared_ptr<Clock> clock = nullptr;
};

/// A variable, and its name in checkpoints.
struct SavedVariable {
  std::string name;
  AnyVariable variable;
};

/// A part of a model: a list in braces, or a vector. `{.queues = false}` is not a part: it means options.
///
/// Thread safety: a value type.
class SavedVariables {
 public:
  SavedVariables(std::initializer_list<SavedVariable> variables) : variables_(variables) {}
  SavedVariables(std::vector<SavedVariable> variables) : variables_(std::move(variables)) {}

  const std::vector<SavedVariable>& variables() const noexcept { return variables_; }

 private:
  std::vector<SavedVariable> variables_;
};

/// Saves variables, random streams and queues while training goes on, and restores them. A run that was interrupted
/// then goes on as an undisturbed run would, bit for bit.
///
/// ```cpp
/// df::train::Saver saver(graph);  // when the model is built, the optimizer's variables too
/// saver.save(session, "/models/digits", step);
/// if (auto latest = df::train::latest_checkpoint("/models")) saver.restore(session, *latest);
/// ```
///
/// It adds its nodes once, each beside the variables: with a session on a cluster each task writes its own shard. A
/// variable is saved as it was before or after an update. If steps run meanwhile, some variables may have an update
/// that others do not have. Checkpoints have the format of io/checkpoint/ (docs/checkpoint-format.md): a loss of
/// power or a full disk at any moment leaves the existing checkpoints. One saver at a time writes checkpoints of a
/// name.
///
/// The parts of a partitioned variable are slices of one tensor with the variable's name, as in TensorFlow. A
/// checkpoint can therefore be restored into another number of parts, or into one variable.
///
/// Thread safety: one thread at a time; steps of the session may run meanwhile. All functions that take a session
/// block. Errors: InvalidArgument for no variables, and for two variables or states of one name.
class Saver {
 public:
  /// Saves all variables that the graph has now, under their names, and the additions of the options.
  explicit Saver(Graph& graph, SaverOptions options = {}, std::source_location where = std::source_location::current());
  /// Saves only the given variables, under the given names, without streams and queues: for a part of a model, or for
  /// a model with other names. Parts of a partitioned variable share a name; a part with a name of its own is a
  /// tensor of its own.
  Saver(Graph& graph, const SavedVariables& saved, SaverOptions options = {},
        std::source_location where = std::source_location::current());
  ~Saver();
  Saver(const Saver&) = delete;
  Saver& operator=(const Saver&) = delete;

  /// Saves to "PREFIX-STEP", or "PREFIX", and returns that path; replaces a checkpoint that was there. The
  /// directory's state file then names the checkpoint, and older ones are removed. The first save that succeeds
  /// removes the leftovers of interrupted saves.
  ///
  /// Errors: FailedPrecondition, naming it, for a variable without a value; errors of the file system,
  /// ResourceExhausted for a full disk; DataLoss for an unreadable state file; errors of a step. After an error, the
  /// old checkpoint of that name, if there was one, or the new one is there, never a part of one. The session and the
  /// saver go on.
  std::string save(Session& session, const std::string& prefix, std::optional<std::int64_t> step = {});

  /// Sets variables, streams, queues and states to the checkpoint's values. Reads everything before it sets anything.
  /// A Saver of variables alone also reads TensorFlow's checkpoints of version 1 or 2, and npz and safetensors files
  /// (docs/files.md); `load_weights` also changes layouts.
  ///
  /// Errors: NotFound, naming it, for a missing checkpoint or variable; InvalidArgument for another type or shape, or
  /// for a queue that cannot hold its saved elements; DataLoss for a damaged file. Also errors of the file system, of
  /// a step, and of `SavedState::restore`.
  void restore(Session& session, const std::string& path);

  /// Blocks. `latest_checkpoint` of a directory, in this saver's files.
  std::optional<std::string> latest(const std::string& directory) const;
  /// The checkpoints that later saves may remove, the oldest first.
  const std::vector<std::string>& checkpoints() const noexcept { return paths_; }
  /// For hooks, which do not own the saver.
  Reference<Saver> reference() { return {*this, lifetime_}; }

 private:
  struct Item;
  struct Nodes;

  void add_queues(std::vector<Item>& items);
  void build(std::vector<Item> items, std::source_location where);
  void check_names(const std::vector<Item>& items, std::source_location where) const;
  template <class Part>
  void check_parts(std::string_view name, std::span<const Part* const> parts, std::source_location where) const;
  std::vector<std::pair<std::string, std::vector<const Item*>>> by_device(const std::vector<Item>& items) const;
  Operation build_save(std::span<const Item* const> members, std::size_t shard, std::size_t num_shards);
  std::vector<AnyOutput> build_read(std::span<const Item* const> members);
  void build_restore(const std::vector<std::pair<const Item*, std::vector<AnyOutput>>>& values,
                     const std::vector<Operation>& reads);
  std::vector<std::function<void()>> read_states(Session& session, const Feed& prefix);
  void read_state(const std::string& directory);
  void write_state() const;
  void note_saved(const std::string& path);
  void remove_what_is_due() noexcept;
  void remove_leftovers(const std::string& prefix) noexcept;
  void remove_shards(const std::string& shard_prefix, const std::string& path) noexcept;
  bool has_shard_indices(const std::string& shard_prefix) const noexcept;
  double now_seconds() const;

  GraphStore& graph_;
  SaverOptions options_;
  std::unique_ptr<Nodes> nodes_;
  std::string directory_;           ///< of `paths_`
  std::vector<std::string> paths_;  ///< the oldest first
  std::vector<double> times_;       ///< when each was saved: seconds since 1970
  std::vector<std::string> due_;    ///< to be removed once a state without them is written
  double last_kept_ = 0;
  bool may_have_leftovers_ = true;
  Lifetime lifetime_;
};

}  // namespace dflow::train
