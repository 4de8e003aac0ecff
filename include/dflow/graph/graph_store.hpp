#pragma once

#include <dflow/base/unique_function.hpp>
#include <dflow/graph/graph.hpp>
#include <dflow/graph/node_list.hpp>
#include <dflow/graph/scope_extensions.hpp>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <source_location>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

namespace dflow {

/// The nodes of a graph, its name index, its collections and its scope stack. A `Graph` and its sessions share it, and
/// Outputs refer to it. Node ids count up in the order of appending, and a node once appended is never changed.
///
/// Thread safety: one thread at a time builds (several need the caller's lock). Meanwhile any thread may call the
/// functions that are declared "for any thread" below; nodes are read without a lock.
class GraphStore : public std::enable_shared_from_this<GraphStore> {
 public:
  /// A function that chooses devices for nodes, and the device and rule of the scopes around it.
  struct DeviceRule {
    DeviceFunction choose;
    std::string outer_device;
    std::shared_ptr<const DeviceRule> outer_rule;
  };

  /// Finds edges that stand for edges of bodies, if the current scope does not see the bodies.
  class ForeignEdges {
   public:
    ForeignEdges() = default;
    ForeignEdges(const ForeignEdges&) = delete;
    ForeignEdges& operator=(const ForeignEdges&) = delete;
    virtual ~ForeignEdges() = default;
    /// The edge that stands for `edge` in the current scope, perhaps of nodes built by this call; else `edge` itself.
    virtual AnyOutput bring(const AnyOutput& edge) = 0;
    /// The number of ForeignEdges around each other, with this one.
    virtual std::size_t depth() const noexcept = 0;
    /// How many calls have been differentiated inside of the outermost one, with this one.
    virtual std::size_t count_call() noexcept = 0;
  };

  /// The settings that nodes built now take over.
  struct Scope {
    std::string name_prefix;  ///< "" or "layer1/"
    std::string device;       ///< said inside of `device_rule`, and wins over it
    std::shared_ptr<const DeviceRule> device_rule;
    std::vector<NodeId> control_inputs;
    NodeId colocated_with;
    NodeId function;  ///< the function that is built
    std::shared_ptr<ForeignEdges> foreign;
    ScopeExtensions extensions;  ///< of floors above
    /// The line in the user's program that the nodes built now come from. It wins over the place a builder is given
    /// (`At::where`): inside the library, that place is a line of the library. Nodes of a gradient, a layer or an
    /// optimizer thus carry the line that the user wrote. User code that a library function calls back inside the
    /// scope is covered by it too.
    std::optional<std::source_location> where;

    /// Nodes are placed where `with` is, despite all devices of the scopes around.
    void colocate(NodeId with) {
      colocated_with = with;
      device.clear();
      device_rule = nullptr;
    }
  };

  /// The parts of a function besides the nodes of its body.
  struct Function {
    std::vector<NodeId> arguments;  ///< by their numbers; none where a number is missing
    NodeId results;                 ///< none as long as the body is being built
  };

  /// The nodes of a graph, as many as there were when the view was made. Passes go through it.
  class Nodes {
   public:
    explicit Nodes(const NodeList& nodes) noexcept : nodes_(&nodes), size_(nodes.size()) {}
    std::size_t size() const noexcept { return size_; }
    const Node& operator[](NodeId id) const noexcept { return (*nodes_)[id.position()]; }
    IndexRange<NodeId> indices() const noexcept { return IndexRange<NodeId>(size_); }

   private:
    const NodeList* nodes_;
    std::size_t size_;
  };

  /// Nodes appended while a draft lives are seen by no other thread. At its end they are dropped unless they were
  /// published, and so are the additions to collections.
  class Draft {
   public:
    explicit Draft(GraphStore& graph) noexcept;
    Draft(const Draft&) = delete;
    Draft& operator=(const Draft&) = delete;
    ~Draft();
    void publish() noexcept { is_published_ = true; }

   private:
    GraphStore& graph_;
    std::size_t first_;
    bool is_published_ = false;
  };

  explicit GraphStore(GraphOptions options = {});
  /// A copy of the nodes, names and collections; it begins outside of all scopes.
  GraphStore(const GraphStore& other);
  GraphStore& operator=(const GraphStore&) = delete;
  ~GraphStore();

  // ---- for any thread ----

  /// No other store of the process has the same number, before or after it; at least 1.
  std::uint64_t number() const noexcept { return number_; }
  /// For `GraphReference`.
  detail::GraphAnchor* anchor() const noexcept { return anchor_.get(); }
  std::size_t size() const noexcept { return nodes_->size(); }
  /// Counts up with every node: a result derived from the nodes at one version holds as long as the version does.
  std::uint64_t version() const noexcept { return nodes_->size(); }
  /// Precondition: the id is a handle's id, or below a `size()` that this thread has seen. Valid while the store
  /// lives.
  const Node& node(NodeId id) const noexcept { return (*nodes_)[id.position()]; }
  Nodes nodes() const noexcept { return Nodes(*nodes_); }
  /// Keeps the nodes where they are, though the store may go: compiled steps refer to the nodes.
  std::shared_ptr<const NodeList> keep_nodes() const noexcept { return nodes_; }
  /// The node of that full name, else none. The thread that builds a draft finds the nodes of the draft too.
  NodeId find(std::string_view name) const;
  /// The members of a named list, in the order of insertion.
  std::vector<NodeId> collection(std::string_view name) const;
  /// The function that begins with that node; nothing for any other node.
  std::optional<Function> function(NodeId begin) const;
  /// The nodes that give a Merge of a frame its value for the next iteration, in the order they were built.
  std::vector<NodeId> next_iterations(NodeId merge) const;
  /// All collections, in the order of names.
  std::vector<std::pair<std::string, std::vector<NodeId>>> collections() const;
  const GraphOptions& options() const noexcept { return options_; }

  // ---- for the thread that builds ----

  /// Appends a complete node with a free name.
  NodeId append(Node node);
  /// Calls `undo`, which does not throw, if a Draft drops the last built node: for callers that keep handles to it.
  void on_drop(UniqueFunction<void()> undo);
  /// Whether a node built in the body of `function`, or in none, may read outputs of a node in the body of `of`: the
  /// same body, or one around it.
  bool is_inside(NodeId function, NodeId of) const noexcept;
  std::size_t num_appended() const noexcept { return nodes_->num_appended(); }
  /// As `find`, also for a node of a draft.
  NodeId find_appended(std::string_view name) const {
    const auto found = node_of_name_.find(name);
    return found == node_of_name_.end() ? NodeId() : found->second;
  }
  bool has_name(std::string_view name) const { return node_of_name_.find(name) != node_of_name_.end(); }
  /// `requested` inside the current name scope, made unique by a suffix "_1", "_2", ...
  std::string unique_name(std::string_view requested);
  /// The same for a name scope: no other one will get it.
  std::string unique_scope_name(std::string_view requested);
  void reserve_scope_name(const std::string& name);
  /// Reserves the scopes that a node is in, by its name: for "a/b/c" the scopes "a" and "a/b".
  void reserve_scopes_of(std::string_view node_name);
  void add_to_collection(std::string_view collection, NodeId node);
  /// Takes the members from number `first` on out of the collection.
  std::vector<NodeId> take_from_collection(std::string_view collection, std::size_t first);
  /// The number of random ops that were counted so far, after `count` more.
  std::uint64_t count_random_ops(std::uint64_t count);

  const Scope& scope() const noexcept;
  /// Makes `scope` the current one while the guard lives.
  ScopeGuard enter(Scope scope);

 private:
  void note_function(NodeId id, const Node& node);
  void drop_functions(NodeId first) noexcept;
  void drop_drafted(std::vector<NodeId>& nodes) const;

  struct NameHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view name) const noexcept { return std::hash<std::string_view>{}(name); }
  };
  template <class V>
  using NameMap = std::unordered_map<std::string, V, NameHash, std::equal_to<>>;

  /// Gives the anchor back: handles see there that the graph is gone.
  struct LeaveAnchor {
    void operator()(detail::GraphAnchor* anchor) const noexcept;
  };

  const std::unique_ptr<detail::GraphAnchor, LeaveAnchor> anchor_;
  const std::uint64_t number_;
  const std::shared_ptr<NodeList> nodes_ = std::make_shared<NodeList>();
  // The thread that builds holds the mutex to change the members below, other threads hold it to read them.
  mutable std::shared_mutex mutex_;
  NameMap<NodeId> node_of_name_;
  NameMap<int> next_suffix_;  ///< of names that were asked for more than once
  std::map<std::string, std::vector<NodeId>, std::less<>> collections_;
  std::map<NodeId, Function> functions_;                             ///< by the nodes they begin with
  std::unordered_map<NodeId, std::vector<NodeId>> next_iterations_;  ///< by the Merges they lead to
  std::uint64_t random_ops_ = 0;
  const GraphOptions options_;
  std::shared_ptr<detail::ScopeStack> scopes_;
  int num_drafts_ = 0;
  std::atomic<std::thread::id> drafting_;                             ///< the thread that made the drafts
  std::vector<std::pair<std::size_t, UniqueFunction<void()>>> undo_;  ///< by the number of nodes there were
};

/// The same scopes as the functions of Graph open, for code that builds nodes without a Graph at hand. An error in one
/// names `where`, or the place of a scope around it.
[[nodiscard]] ScopeGuard enter_name_scope(GraphStore& graph, std::string_view name,
                                          std::source_location where = std::source_location::current());
[[nodiscard]] ScopeGuard enter_device(GraphStore& graph, std::string_view name,
                                      std::source_location where = std::source_location::current());
[[nodiscard]] ScopeGuard enter_colocation(GraphStore& graph, Operation operation,
                                          std::source_location where = std::source_location::current());
[[nodiscard]] ScopeGuard enter_control_dependencies(GraphStore& graph, std::span<const Operation> operations,
                                                    std::source_location where = std::source_location::current());

/// Blames the line `where` of the user's program for all nodes built while the guard lives, unless a scope around it
/// does so already.
[[nodiscard]] ScopeGuard enter_place(GraphStore& graph, std::source_location where);

/// The first line of a library function that builds more than one node: its nodes have the place `where`, as above. If
/// an exception ends the function, its nodes are dropped, so a function that refuses its arguments leaves the graph as
/// it was. Not for a function that runs a session, which does not see the nodes of a draft, and not for one whose
/// object keeps handles without `GraphStore::on_drop`.
class [[nodiscard]] Composite {
 public:
  Composite(GraphStore& graph, std::source_location where);
  Composite(const Composite&) = delete;
  Composite& operator=(const Composite&) = delete;
  ~Composite();

 private:
  GraphStore::Draft draft_;
  ScopeGuard place_;
  int num_exceptions_;  ///< under way when it began
};

namespace detail {
/// The function that begins with that node, which was looked for as `name`. Errors: InvalidArgument if there is none,
/// or its body is not finished, or a number of its arguments is missing.
GraphStore::Function require_function(const GraphStore& graph, NodeId begin, const std::string& name);
/// The shapes of a function's results if its arguments have the shapes `arguments`. Errors: the errors of the shape
/// functions of its body.
std::vector<PartialShape> infer_results(const GraphStore& graph, NodeId begin, const GraphStore::Function& function,
                                        std::span<const PartialShape> arguments);
/// The edges that the captures of a node that calls a function stand for, from its attribute "captured"
/// ("node:0;other:1"). A call has the attribute if it does not see the edges; none: the captures stand for themselves.
/// Errors: InvalidArgument unless the graph has the edges. The thread that builds sees the edges of a draft, too.
std::vector<Endpoint> captured_edges(const GraphStore& graph, const Node& call, bool builds);
std::string captured_text(const GraphStore& graph, std::span<const Endpoint> edges);
/// Throws InvalidArgument, in the words of `function`, unless the operation is a node of `graph`.
void require_node(const GraphStore& graph, const Operation& operation, std::string_view function,
                  std::source_location where);
}  // namespace detail

/// Throws InvalidArgument unless `name` is a legal node name: letters, digits and "_./->", starting with a letter,
/// digit, "." or "_" (TensorFlow's rule), at most 4096 bytes.
void check_node_name(std::string_view name, std::string_view op, std::source_location where);
/// The same for a node of a step: at most 65536 bytes. Passes may have named the node after several nodes, with " + "
/// between their names, or after one node with more text behind it.
void check_step_node_name(std::string_view name, std::string_view op, std::source_location where);
/// Names a node of a step if several come from one node of the graph: copy 2, 3 and so on.
std::string step_node_copy(std::string_view name, int copy);
/// Names a node that passes make beside a node; no node of a graph has that name.
std::string step_node_beside(std::string_view name, std::string_view what);
/// The name of the node that it is a copy of; any other name as it is.
std::string_view without_copy(std::string_view name) noexcept;

}  // namespace dflow
