#pragma once

#include <dflow/base/files/file_systems.hpp>
#include <dflow/base/status.hpp>
#include <dflow/base/system_seed.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/io/checkpoint/own/checkpoint_index.hpp>
#include <dflow/io/checkpoint/own/checkpoint_reader.hpp>
#include <dflow/io/checkpoint/own/checkpoint_writer.hpp>
#include <dflow/io/checkpoint/parts/checkpoint_slice.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/checkpoint/resource_state.hpp>
#include <dflow/ops/checkpoint/save_restore.hpp>
#include <dflow/ops/control/no_op.hpp>
#include <dflow/train/saving/random_streams.hpp>
#include <dflow/train/saving/savable_resources.hpp>
#include <dflow/train/saving/saver.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <utility>

namespace dflow::train {

/// One thing that a checkpoint holds.
struct Saver::Item {
  struct Part {
    std::string name;
    AnyOutput value;
    PartialShape shape;
    std::string slice = {};  ///< its slice of a tensor of that name, as in `SaveV2`; empty: all of it
  };

  std::vector<Part> parts;
  Operation home;                                                      ///< the node that it lives with
  std::function<Operation(std::span<const AnyOutput> values)> assign;  ///< empty for a state, which this process takes
};

struct Saver::Nodes {
  Output<std::string> prefix;       ///< of the shards that are written, and of the checkpoint that is read
  Output<std::string> destination;  ///< of the checkpoint that is written
  Operation save, restore;
  std::vector<Output<std::string>> states;  ///< fed when they are saved
  std::vector<AnyOutput> restored_states;   ///< fetched from the checkpoint that is read
};

namespace detail {

template <class Item>
Item item_of(std::string name, const AnyVariable& variable, std::string slice) {
  return {{{std::move(name), variable.read_edge(), variable.shape(), std::move(slice)}},
          variable.handle().operation(),
          [variable](std::span<const AnyOutput> values) { return variable.assign(values[0]); }};
}

AnyOutput text_list(GraphStore& graph, const std::vector<std::string>& texts) {
  return dflow::detail::any_constant(graph, Tensor<std::string>({static_cast<std::int64_t>(texts.size())}, texts), {});
}

std::string hex_of(std::uint64_t bits) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) text += digits[bits >> shift & 15];
  return text;
}

std::string file_name(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

/// Calls `work`, which uses files and no session. Its errors have the context of the step that saves or restores:
/// what a disk says is no loss of a task.
template <class Work>
auto with_own_files(std::string_view op, const Work& work) {
  try {
    return work();
  } catch (const Error& error) {
    throw_error(error.status().with_node(op, {}));
  }
}

inline constexpr std::string_view save_mark = ".save-";

/// If the file is of a save to "BASE" or "BASE-STEP" under a number of its own, the prefix it was saved to, else "".
std::string saved_stem(std::string_view file, std::string_view base) {
  if (!file.starts_with(base)) return {};
  const std::size_t mark = file.find(save_mark, base.size());
  if (mark == std::string_view::npos) return {};
  const std::string_view step = file.substr(base.size(), mark - base.size());
  const std::string_view number = file.substr(mark + save_mark.size());
  if (!step.empty() && (step.front() != '-' || step.find_first_not_of("-0123456789") != std::string_view::npos)) {
    return {};
  }
  if (number.find_first_not_of("0123456789abcdef") != 16 || number[16] != '.') return {};
  return std::string(file.substr(0, mark));
}

/// The data files of a checkpoint: an empty set if there is no checkpoint, nothing if its index cannot be read.
std::optional<std::set<std::string>> data_files_of(FileSystem& files, const std::string& prefix) {
  std::set<std::string> names;
  const std::string path = checkpoint_index_path(prefix);
  try {
    if (!files.exists(path)) return names;
    for (const CheckpointShard& shard : read_checkpoint_index(files, path).shards) names.insert(shard.file);
  } catch (const Error&) {
    return std::nullopt;
  }
  return names;
}

/// Errors are ignored: a file that stays behind does no harm. Returns whether it is gone.
bool remove_if_possible(FileSystem& files, const std::string& path) noexcept {
  try {
    files.remove(path);
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace detail

Saver::Saver(Graph& graph, SaverOptions options, std::source_location where)
    : graph_(*graph.store()), options_(std::move(options)) {
  const ScopeGuard outside = graph_.enter(GraphStore::Scope{});
  const Composite place(graph_, where);
  std::vector<Item> items;
  for (const AnyVariable& variable : global_variables(graph)) {
    items.push_back(detail::item_of<Item>(variable.whole_name(), variable, variable.slice()));
  }
  if (options_.queues) add_queues(items);
  const ScopeGuard names = enter_name_scope(graph_, "streams");
  const std::vector<NodeId> left_out = graph_.collection("not_saved");
  for (const StreamOfNode& stream : options_.random_streams ? random_streams_of(graph_) : std::vector<StreamOfNode>{}) {
    if (std::find(left_out.begin(), left_out.end(), stream.random.node_id()) != left_out.end()) continue;
    const ScopeGuard with = enter_colocation(graph_, stream.random);
    const AnyOutput state = dflow::build<ReadResourceState>({stream.handle}, {.dtypes = {DType::uint64}});
    items.push_back(
        {{{str_cat(stream.random.name(), "/_stream"), state, PartialShape{3}}},
         stream.random,
         [this, random = stream.random, handle = stream.handle](std::span<const AnyOutput> values) -> Operation {
           const ScopeGuard beside = enter_colocation(graph_, random);
           return dflow::build<AssignResourceState>({handle, values[0]}, {.dtypes = {DType::uint64}});
         }});
  }
  build(std::move(items), where);
}

void Saver::add_queues(std::vector<Item>& items) {
  const ScopeGuard names = enter_name_scope(graph_, "queues");
  for (const SavableNode& node : savable_nodes_of(graph_)) {
    const Operation home = node.handle.operation();
    const ScopeGuard with = enter_colocation(graph_, home);
    const BuiltNode state = dflow::build<ReadResourceState>({node.handle}, {.dtypes = node.dtypes});
    Item item{{}, home, [this, node](std::span<const AnyOutput> values) -> Operation {
                const ScopeGuard beside = enter_colocation(graph_, node.handle.operation());
                std::vector<AnyOutput> inputs{node.handle};
                inputs.insert(inputs.end(), values.begin(), values.end());
                return dflow::build<AssignResourceState>(std::span<const AnyOutput>(inputs), {.dtypes = node.dtypes});
              }};
    for (std::size_t i = 0; i < node.dtypes.size(); ++i) {
      item.parts.push_back(
          {str_cat(home.name(), "/_state_", i), state.output(static_cast<int>(i)), PartialShape{dynamic}});
    }
    items.push_back(std::move(item));
  }
}

Saver::Saver(Graph& graph, const SavedVariables& saved, SaverOptions options, std::source_location where)
    : graph_(*graph.store()), options_(std::move(options)) {
  std::vector<Item> items;
  items.reserve(saved.variables().size());
  std::map<std::string_view, int> variables_of_name;
  for (const SavedVariable& each : saved.variables()) ++variables_of_name[each.name];
  for (const auto& [name, variable] : saved.variables()) {
    if (!variable.handle().is_of(&graph_)) {
      throw_error(Status::invalid_argument(str_cat("Saver: variable '", name, "' is empty or belongs to another graph"))
                      .with_location(where));
    }
    items.push_back(
        detail::item_of<Item>(name, variable, variables_of_name[name] > 1 ? variable.slice() : std::string()));
  }
  build(std::move(items), where);
}

Saver::~Saver() = default;

/// Errors: InvalidArgument for two things of one name.
void Saver::check_names(const std::vector<Item>& items, std::source_location where) const {
  std::set<std::string_view> names;
  std::map<std::string_view, std::vector<const Item::Part*>> of_wholes;
  const auto add = [&](std::string_view name) {
    if (!name.empty() && names.insert(name).second) return;
    throw_error(Status::invalid_argument(str_cat("Saver: '", name, "' is the name of two variables, or none at all"))
                    .with_location(where));
  };
  for (const Item& item : items) {
    for (const Item::Part& part : item.parts) {
      if (part.slice.empty()) {
        add(part.name);
      } else {
        of_wholes[part.name].push_back(&part);
      }
    }
  }
  for (const SavedState& state : options_.states) add(state.name);
  for (const auto& [name, parts] : of_wholes) {
    add(name);
    check_parts<Item::Part>(name, parts, where);
  }
}

/// Errors: InvalidArgument unless the parts together hold each element of one tensor exactly once.
template <class Part>
void Saver::check_parts(std::string_view name, std::span<const Part* const> parts, std::source_location where) const {
  const auto reject = [&](std::string_view what) {
    throw_error(
        Status::invalid_argument(str_cat("Saver: the parts of variable '", name, "' ", what)).with_location(where));
  };
  const CheckpointSlice first = CheckpointSlice::parse(parts.front()->slice);
  std::int64_t num_elements = 0;
  std::set<std::vector<std::int64_t>> begins;
  std::vector<CheckpointEntry> entries;
  for (const Part* part : parts) {
    const CheckpointSlice slice = CheckpointSlice::parse(part->slice);
    if (slice.whole != first.whole) {
      reject(str_cat("are of ", first.whole.to_string(), " and of ", slice.whole.to_string()));
    }
    if (part->value.dtype() != parts.front()->value.dtype()) reject("have two element types");
    if (!begins.insert(slice.begin).second) reject("are there twice");
    num_elements += slice.extent.num_elements();
    CheckpointEntry& entry = entries.emplace_back();
    entry.shape = slice.whole;
    entry.begin = slice.begin;
    entry.extent = slice.extent;
  }
  if (num_elements != first.whole.num_elements()) {
    reject(str_cat("have ", num_elements, " of the elements of ", first.whole.to_string(),
                   ": give a Saver of some of them a name for each"));
  }
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  const bool is_one = entries.size() == 1;
  if (!is_one && dflow::detail::axis_of_slices(entries) < 0) reject("are not one behind the other along one dimension");
}

Operation Saver::build_save(std::span<const Item* const> members, std::size_t shard, std::size_t num_shards) {
  SaveV2::Attrs attrs{
      .dtypes = {}, .shard = static_cast<std::int64_t>(shard), .num_shards = static_cast<std::int64_t>(num_shards)};
  std::vector<std::string> names, slices;
  std::vector<AnyOutput> edges{nodes_->prefix, {}, {}};
  for (const Item* item : members) {
    for (const Item::Part& part : item->parts) {
      names.push_back(part.name);
      slices.push_back(part.slice);
      attrs.dtypes.push_back(part.value.dtype());
      edges.push_back(part.value);
    }
  }
  edges[1] = detail::text_list(graph_, names);
  edges[2] = detail::text_list(graph_, slices);
  return dflow::build<SaveV2>(std::span<const AnyOutput>(edges), std::move(attrs));
}

/// The values of `members` in the checkpoint that is read, part by part.
std::vector<AnyOutput> Saver::build_read(std::span<const Item* const> members) {
  RestoreV2::Attrs attrs;
  std::vector<std::string> names, slices;
  for (const Item* item : members) {
    for (const Item::Part& part : item->parts) {
      names.push_back(part.name);
      slices.push_back(part.slice);
      attrs.dtypes.push_back(part.value.dtype());
      attrs.shapes.push_back(part.shape);
    }
  }
  std::vector<AnyOutput> values;
  if (names.empty()) return values;
  const BuiltNode read = dflow::build<RestoreV2>(
      {nodes_->prefix, detail::text_list(graph_, names), detail::text_list(graph_, slices)}, std::move(attrs));
  for (std::size_t i = 0; i < names.size(); ++i) values.push_back(read.output(static_cast<int>(i)));
  return values;
}

/// Items by the task that holds them, in the order of the first of each.
std::vector<std::pair<std::string, std::vector<const Saver::Item*>>> Saver::by_device(
    const std::vector<Item>& items) const {
  std::vector<std::pair<std::string, std::vector<const Item*>>> groups;
  for (const Item& item : items) {
    const std::string device =
        options_.sharded || groups.empty() ? detail::processor_of_task(graph_, item.home) : groups.front().first;
    auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.first == device; });
    if (group == groups.end()) group = groups.insert(groups.end(), {device, {}});
    group->second.push_back(&item);
  }
  return groups;
}

void Saver::build(std::vector<Item> items, std::source_location where) {
  if (options_.files == nullptr) options_.files = machine_files();
  if (options_.clock == nullptr) options_.clock = std::make_shared<RealClock>();
  if (items.empty()) throw_error(Status::invalid_argument("Saver: there are no variables").with_location(where));
  check_names(items, where);
  const ScopeGuard outside = graph_.enter(GraphStore::Scope{});
  const Composite place(graph_, where);
  const ScopeGuard scope_name = enter_name_scope(graph_, "save");
  nodes_ = std::make_unique<Nodes>();
  const auto fed = [this](std::string_view name) {
    return Output<std::string>::unchecked(
        dflow::detail::any_placeholder(graph_, DType::string, Shape{}, {.name = name}));
  };
  nodes_->prefix = fed("prefix");
  nodes_->destination = fed("destination");
  for (const SavedState& state : options_.states) {
    nodes_->states.push_back(fed(str_cat("state_", nodes_->states.size())));
    const AnyOutput& edge = nodes_->states.back();
    items.push_back({{{state.name, edge, Shape{}}}, edge.operation(), nullptr});
  }

  std::vector<std::pair<std::string, std::vector<const Item*>>> groups = by_device(items);
  const auto enter_device = [this](const std::string& device) {
    GraphStore::Scope scope = graph_.scope();
    scope.device = device;
    return graph_.enter(scope);
  };

  std::vector<Operation> saves, reads;
  std::vector<std::pair<const Item*, std::vector<AnyOutput>>> values;
  for (std::size_t shard = 0; shard < groups.size(); ++shard) {
    auto& [device, members] = groups[shard];
    const ScopeGuard on = enter_device(device);
    saves.push_back(build_save(members, shard, groups.size()));
    std::erase_if(members, [](const Item* item) { return item->assign == nullptr; });
    const std::vector<AnyOutput> read = build_read(members);
    if (!read.empty()) reads.push_back(read.front().operation());
    auto next = read.begin();
    for (const Item* item : members) {
      const auto count = static_cast<std::ptrdiff_t>(item->parts.size());
      values.emplace_back(item, std::vector<AnyOutput>(next, next + count));
      next += count;
    }
  }
  const ScopeGuard on = enter_device(groups.front().first);
  {
    const ScopeGuard after = enter_control_dependencies(graph_, saves);
    nodes_->save = dflow::build<MergeV2Checkpoints>({nodes_->prefix, nodes_->destination}, {.replace = true});
  }
  std::vector<const Item*> states;
  for (const Item& item : items) {
    if (item.assign == nullptr) states.push_back(&item);
  }
  nodes_->restored_states = build_read(states);  // apart: they are read before anything is set
  build_restore(values, reads);
}

void Saver::build_restore(const std::vector<std::pair<const Item*, std::vector<AnyOutput>>>& values,
                          const std::vector<Operation>& reads) {
  GraphStore::Scope scope = graph_.scope();
  scope.device.clear();
  const ScopeGuard anywhere = graph_.enter(scope);
  std::vector<Operation> assigns;
  assigns.reserve(values.size());
  {
    const ScopeGuard after = enter_control_dependencies(graph_, reads);
    for (const auto& [item, of] : values) assigns.push_back(item->assign(of));
  }
  nodes_->restore = dflow::detail::no_op_after(graph_, assigns, {.name = "restore"});
}

double Saver::now_seconds() const {
  return std::chrono::duration<double>(options_.clock->wall_now().time_since_epoch()).count();
}

namespace detail {
/// False also for a name that the file system cannot look up, as a damaged state may have.
bool has_index(FileSystem& files, const std::string& path) {
  try {
    return files.exists(checkpoint_index_path(path));
  } catch (const Error& error) {
    if (error.code() != Code::invalid_argument) throw;
    return false;
  }
}
}  // namespace detail

void Saver::read_state(const std::string& directory) {
  const CheckpointState state = read_checkpoint_state(*options_.files, directory).value_or(CheckpointState{});
  const bool has_times = state.all_model_checkpoint_timestamps.size() == state.all_model_checkpoint_paths.size();
  const double last_kept = state.last_preserved_timestamp != 0 ? state.last_preserved_timestamp : now_seconds();
  std::vector<std::string> paths;
  std::vector<double> times;
  for (std::size_t i = 0; i < state.all_model_checkpoint_paths.size(); ++i) {
    const std::string& named = state.all_model_checkpoint_paths[i];
    const std::string file = detail::file_name(named);
    // Files elsewhere are not this saver's to remove, no matter which saver has written the state: it may be a copy of
    // another's.
    if (named != file && parent_directory(named) != directory) continue;
    std::string path = join_path(directory, file);
    if (!detail::has_index(*options_.files, path)) continue;
    paths.push_back(std::move(path));
    times.push_back(has_times ? state.all_model_checkpoint_timestamps[i] : last_kept);
  }
  std::vector<std::string> due;
  for (const std::string& named : state.being_removed) {
    if (named != detail::file_name(named) || named == detail::file_name(state.model_checkpoint_path)) continue;
    std::string path = join_path(directory, named);
    if (std::ranges::find(paths, path) == paths.end()) due.push_back(std::move(path));
  }
  directory_ = directory;
  paths_ = std::move(paths);
  times_ = std::move(times);
  due_ = std::move(due);
  last_kept_ = last_kept;
  may_have_leftovers_ = true;
}

void Saver::write_state() const {
  CheckpointState state;
  state.model_checkpoint_path = detail::file_name(paths_.back());
  state.all_model_checkpoint_paths.reserve(paths_.size());
  for (const std::string& path : paths_) state.all_model_checkpoint_paths.push_back(detail::file_name(path));
  state.all_model_checkpoint_timestamps = times_;
  state.last_preserved_timestamp = last_kept_;
  for (const std::string& path : due_) state.being_removed.push_back(detail::file_name(path));
  options_.files->create_directories(directory_);
  options_.files->write_file_atomically(checkpoint_state_path(directory_), state.to_text());
}

void Saver::note_saved(const std::string& path) {
  if (const auto at = std::find(paths_.begin(), paths_.end(), path); at != paths_.end()) {
    times_.erase(times_.begin() + (at - paths_.begin()));
    paths_.erase(at);
  }
  std::erase(due_, path);
  paths_.push_back(path);
  times_.push_back(now_seconds());
  while (options_.max_to_keep > 0 && paths_.size() > static_cast<std::size_t>(options_.max_to_keep)) {
    if (options_.keep_every &&
        times_.front() - last_kept_ >= std::chrono::duration<double>(*options_.keep_every).count()) {
      last_kept_ = times_.front();
    } else {
      due_.push_back(paths_.front());
    }
    paths_.erase(paths_.begin());
    times_.erase(times_.begin());
  }
}

void Saver::remove_what_is_due() noexcept {
  if (due_.empty()) return;
  constexpr std::size_t max_left = 100;
  std::vector<std::string> left;
  for (std::string& path : due_) {
    try {
      remove_checkpoint(*options_.files, path);
    } catch (...) {  // the next save tries again; without its index it is a leftover
      may_have_leftovers_ = true;
      if (left.size() < max_left) left.push_back(std::move(path));
    }
  }
  due_ = std::move(left);
  try {
    write_state();  // a checkpoint that is put under one of these names later is not ours to remove
  } catch (...) {
  }
}

void Saver::remove_leftovers(const std::string& prefix) noexcept {
  try {
    const std::string base = detail::file_name(prefix);
    std::map<std::string, std::optional<std::set<std::string>>> used;
    bool are_gone = true;
    for (const std::string& file : options_.files->list_directory(directory_)) {
      const std::string stem = detail::saved_stem(file, base);
      if (stem.empty()) continue;
      const auto [at, is_new] = used.try_emplace(stem);
      if (is_new) at->second = detail::data_files_of(*options_.files, join_path(directory_, stem));
      if (at->second && !at->second->contains(file)) {
        are_gone &= detail::remove_if_possible(*options_.files, join_path(directory_, file));
      }
    }
    may_have_leftovers_ = !are_gone;
  } catch (...) {  // the next save tries again
  }
}

/// Removes the shards of a failed save. They stay if the checkpoint uses them nevertheless; it is then whole, and later
/// saves remove it in its turn.
void Saver::remove_shards(const std::string& shard_prefix, const std::string& path) noexcept {
  may_have_leftovers_ = true;
  try {
    const auto used = detail::data_files_of(*options_.files, path);
    if (!used) return;
    const std::string start = detail::file_name(shard_prefix) + ".";
    if (std::ranges::any_of(*used, [&](const std::string& file) { return file.starts_with(start); })) {
      note_saved(join_path(directory_, detail::file_name(path)));
    }
    for (const std::string& file : options_.files->list_directory(directory_)) {
      if (file.starts_with(start) && !used->contains(file)) {
        detail::remove_if_possible(*options_.files, join_path(directory_, file));
      }
    }
  } catch (...) {  // the next save removes them
  }
}

/// Whether shards of a save have indices of their own: the task that merged them could not remove them.
bool Saver::has_shard_indices(const std::string& shard_prefix) const noexcept {
  try {
    const std::string start = detail::file_name(shard_prefix) + ".index-";
    const std::vector<std::string> names = options_.files->list_directory(directory_);
    return std::ranges::any_of(names, [&](const std::string& name) { return name.starts_with(start); });
  } catch (...) {
    return true;
  }
}

std::string Saver::save(Session& session, const std::string& prefix, std::optional<std::int64_t> step) {
  if (detail::file_name(prefix).empty()) throw_error(Status::invalid_argument("a checkpoint needs a name"));
  std::string path = step ? str_cat(prefix, "-", *step) : prefix;
  const auto with_files = [](const auto& work) { return detail::with_own_files(SaveV2::name, work); };
  if (const std::string directory = parent_directory(path); directory != directory_) {
    with_files([&] { read_state(directory); });
  }
  // The files have a name of their own: leftovers of an interrupted save never become part of this one.
  const std::string shards = str_cat(path, detail::save_mark, detail::hex_of(system_seed()));
  FileSystem& files = *options_.files;
  try {
    const std::vector<Feed> feeds = with_files([&] {
      std::vector<Feed> fed{{nodes_->prefix, files.absolute_path(shards)},
                            {nodes_->destination, files.absolute_path(path)}};
      for (std::size_t i = 0; i < options_.states.size(); ++i) {
        fed.push_back({nodes_->states[i], options_.states[i].state()});
      }
      return fed;
    });
    session.run_erased({}, nullptr, feeds, {}, std::span(&nodes_->save, 1), {});
    if (!with_files([&] { return files.exists(checkpoint_index_path(path)); })) {
      throw_error(
          Status::not_found(str_cat("checkpoint '", path,
                                    "' has been written by another task, and is not here: the tasks do not see one "
                                    "file system")));
    }
  } catch (...) {
    remove_shards(shards, path);
    throw;
  }
  note_saved(join_path(directory_, detail::file_name(path)));
  with_files([&] { write_state(); });
  remove_what_is_due();
  if (may_have_leftovers_ || has_shard_indices(shards)) remove_leftovers(prefix);
  return path;
}

std::optional<std::string> Saver::latest(const std::string& directory) const {
  return detail::with_own_files(RestoreV2::name, [&] { return latest_checkpoint(*options_.files, directory); });
}

/// Returns the functions that set the states to the states of a checkpoint.
std::vector<std::function<void()>> Saver::read_states(Session& session, const Feed& prefix) {
  std::vector<AnyTensor> read(options_.states.size());
  std::vector<std::function<void()>> set;
  if (read.empty()) return set;
  session.run_erased({}, nullptr, std::span(&prefix, 1), nodes_->restored_states, {}, read);
  for (std::size_t i = 0; i < read.size(); ++i) {
    try {
      set.push_back(options_.states[i].restore(read[i].span<std::string>()[0]));
    } catch (const Error& error) {
      const Status what = error.status().with_prefix(str_cat("checkpoint: '", options_.states[i].name, "': "));
      throw_error(what.with_node(RestoreV2::name, {}));
    }
  }
  return set;
}

void Saver::restore(Session& session, const std::string& path) {
  const auto with_files = [](const auto& work) { return detail::with_own_files(RestoreV2::name, work); };
  const Feed prefix = with_files([&] { return Feed(nodes_->prefix, options_.files->absolute_path(path)); });
  const std::vector<std::function<void()>> states = read_states(session, prefix);
  session.run({prefix}, nodes_->restore);
  with_files([&] {
    for (const std::function<void()>& set : states) set();
  });
}

}  // namespace dflow::train
