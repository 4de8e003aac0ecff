#pragma once

#include <dflow/base/clock.hpp>
#include <dflow/base/duration.hpp>
#include <dflow/base/files/file_system.hpp>
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
  /// Older checkpoints are removed, of those that the directory's state names in that directory; 0: none is.
  int max_to_keep = 5;
  /// Of those that would be removed one is kept for good each time so much has passed since the last one was saved.
  std::optional<Duration> keep_every = {};
  /// Each task writes the variables it holds, into files that all tasks see; else one task writes all.
  bool sharded = true;
  /// Also how far the random ops that the graph has now have come, so that a resumed run draws the numbers that would
  /// have come; but for the nodes of the graph's collection "not_saved", as those of the first values of a partitioned
  /// variable's parts are.
  bool random_streams = true;
  /// Also what queues and accumulators hold, where readers are, and who has left barriers and clocks, but for the nodes
  /// of the graph's collection "not_saved".
  bool queues = true;
  /// Also this, of the process that saves: the positions of iterators, `saved_iterator("batches", batches)`.
  std::vector<SavedState> states = {};
  /// What this process sees of the files that the tasks write, for the state file and for what is removed; null: the
  /// machine's.
  std::shared_ptr<FileSystem> files = nullptr;
  /// When a checkpoint was saved; null: the machine's.
  std::shared_ptr<Clock> clock = nullptr;
};

/// A variable, and the name it has in checkpoints.
struct SavedVariable {
  std::string name;
  AnyVariable variable;
};

/// A part of a model: a list in braces, or a vector. It is no `{.queues = false}`, which are options.
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

/// Saves variables, random streams and queues while training goes on, and restores them, so that a run that was
/// interrupted goes on as if it had not been, bit for bit.
///
/// ```cpp
/// df::train::Saver saver(graph);  // when the model is built, the optimizer's variables too
/// saver.save(session, "/models/digits", step);
/// if (auto latest = df::train::latest_checkpoint("/models")) saver.restore(session, *latest);
/// ```
///
/// It adds its nodes once, each where the variables are: with a session on a cluster each task writes its own shard.
/// A variable is saved as it was before or after an update; of steps that run meanwhile some variables may have an
/// update that others have not. Checkpoints are core/checkpoint/'s (docs/checkpoint-format.md): a loss of power or a
/// full disk at any moment leaves those that were there. One saver at a time writes checkpoints of a name.
///
/// The parts of a partitioned variable are slices of one tensor of its name, so that a checkpoint is restored into
/// another number of parts, or into one variable, as TensorFlow's are.
///
/// Thread safety: one thread at a time; steps of the session may run meanwhile. All functions that take a session
/// block. Errors: InvalidArgument for no variables, and for two of one name, states included.
class Saver {
 public:
  /// All variables that the graph has now, under their names, and what else the options say.
  explicit Saver(Graph& graph, SaverOptions options = {}, std::source_location where = std::source_location::current());
  /// These alone, under these names, no streams and no queues: a part of a model, or one that had other names. The
  /// parts of a partitioned variable share a name; one with a name of its own is a tensor of its own.
  Saver(Graph& graph, const SavedVariables& saved, SaverOptions options = {},
        std::source_location where = std::source_location::current());
  ~Saver();
  Saver(const Saver&) = delete;
  Saver& operator=(const Saver&) = delete;

  /// Saves to "PREFIX-STEP", or "PREFIX", and returns that path: one that was there is replaced. Then the state file of
  /// the directory names it, and older ones go. What saves that were interrupted have left behind is removed by the
  /// first one that succeeds.
  ///
  /// Errors: FailedPrecondition, naming it, for a variable without a value; those of the file system, ResourceExhausted
  /// for a full disk; DataLoss for a state file that nobody can read; those of a step. The old checkpoint of that name,
  /// if there was one, or the new one is there then, never a part, and the session and the saver go on.
  std::string save(Session& session, const std::string& prefix, std::optional<std::int64_t> step = {});

  /// Sets variables, streams, queues and states to what the checkpoint has. Nothing is set before all has been read. A
  /// Saver of variables alone takes a checkpoint of TensorFlow's too, of version 1 or 2 (docs/files.md).
  ///
  /// Errors: NotFound, naming it, for a checkpoint or a variable that it does not have; InvalidArgument for another
  /// type or shape, or for a queue that cannot hold what it has; DataLoss for a damaged file; those of the file system
  /// and of a step, and of `SavedState::restore`.
  void restore(Session& session, const std::string& path);

  /// Blocks. `latest_checkpoint` of a directory, in the files that this saver sees.
  std::optional<std::string> latest(const std::string& directory) const;
  /// The checkpoints that are there for later saves to remove, the oldest first.
  const std::vector<std::string>& checkpoints() const noexcept { return paths_; }

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
  double now_seconds() const;

  GraphStore& graph_;
  SaverOptions options_;
  std::unique_ptr<Nodes> nodes_;
  std::string directory_;           ///< that `paths_` is about
  std::vector<std::string> paths_;  ///< the oldest first
  std::vector<double> times_;       ///< when each was saved: seconds since 1970
  std::vector<std::string> due_;    ///< to be removed when the state that does not name them is written
  double last_kept_ = 0;
  bool may_have_leftovers_ = true;
};

}  // namespace dflow::train
