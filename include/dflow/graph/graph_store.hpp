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

/// The nodes of a graph, its name index, its collections and its scope stack: what `Graph` owns and what Outputs point
/// into. Node ids count up in the order of appending, and a node once appended is never changed.
///
/// Thread safety: one thread at a time builds (several need the caller's lock). Meanwhile any thread may call what is
/// declared as such below; nodes are read without a lock.
class GraphStore {
 public:
  /// A function that says where nodes go, inside of what was said around it.
  struct DeviceRule {
    DeviceFunction choose;
    std::string outer_device;
    std::shared_ptr<const DeviceRule> outer_rule;
  };

  /// What stands for edges of bodies that are not seen from where they are read.
  class ForeignEdges {
   public:
    ForeignEdges() = default;
    ForeignEdges(const ForeignEdges&) = delete;
    ForeignEdges& operator=(const ForeignEdges&) = delete;
    virtual ~ForeignEdges() = default;
    /// An edge that is seen from the current scope, perhaps of nodes that it builds; `edge` itself where it has none.
    virtual AnyOutput bring(const AnyOutput& edge) = 0;
    /// How many there are around each other, with this one.
    virtual std::size_t depth() const noexcept = 0;
    /// How many calls have been differentiated inside of the outermost one, with this one.
    virtual std::size_t count_call() noexcept = 0;
  };

  /// What nodes built now take over.
  struct Scope {
    std::string name_prefix;  ///< "" or "layer1/"
    std::string device;       ///< said inside of `device_rule`, and wins over it
    std::shared_ptr<const DeviceRule> device_rule;
    std::vector<NodeId> control_inputs;
    NodeId colocated_with;
    NodeId function;  ///< the one whose body is built
    std::shared_ptr<ForeignEdges> foreign;
    ScopeExtensions extensions;  ///< of floors above
    /// Where in the user's program the nodes come from that are built now. It wins over the place a builder is given
    /// (`At::where`), which inside the library is a line of the library: so whatever a gradient, a layer or an
    /// optimizer builds carries the line that the user wrote. Code of the user's that a library function calls back
    /// inside such a scope is covered by it too.
    std::optional<std::source_location> where;

    /// Nodes are placed where that one is, whatever was said of devices around.
    void colocate(NodeId with) {
      colocated_with = with;
      device.clear();
      device_rule = nullptr;
    }
  };

  /// What a function consists of besides the nodes of its body.
  struct Function {
    std::vector<NodeId> arguments;  ///< by their numbers; none where a number is missing
    NodeId results;                 ///< none as long as the body is being built
  };

  /// The nodes of a graph as many as there were when the view was made: what passes go through.
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

  /// Nodes appended while it lives are seen by no other thread, and dropped at its end unless they were published; what
  /// was added to collections goes with them.
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

  /// No other store of the process has the same, before or after it; at least 1.
  std::uint64_t number() const noexcept { return number_; }
  std::size_t size() const noexcept { return nodes_->size(); }
  /// Counts up with every node: what was derived from the nodes at one version holds as long as the version does.
  std::uint64_t version() const noexcept { return nodes_->size(); }
  /// Precondition: the id is that of a handle, or below a `size()` that this thread has seen. Valid while the store
  /// lives.
  const Node& node(NodeId id) const noexcept { return (*nodes_)[id.position()]; }
  Nodes nodes() const noexcept { return Nodes(*nodes_); }
  /// What keeps the nodes where they are, though the store may go: of compiled steps, which refer to them.
  std::shared_ptr<const NodeList> keep_nodes() const noexcept { return nodes_; }
  /// The node of that full name, else none. Those of a draft are found by the thread that builds it.
  NodeId find(std::string_view name) const;
  /// The members of a named list, in the order of insertion.
  std::vector<NodeId> collection(std::string_view name) const;
  /// The function that begins with that node; nothing for any other node.
  std::optional<Function> function(NodeId begin) const;
  /// The nodes that give a Merge of a frame what it passes on in the next iteration, in the order they were built.
  std::vector<NodeId> next_iterations(NodeId merge) const;
  /// All of them, in the order of names.
  std::vector<std::pair<std::string, std::vector<NodeId>>> collections() const;
  const GraphOptions& options() const noexcept { return options_; }

  // ---- for the thread that builds ----

  /// Appends a complete node whose name is free.
  NodeId append(Node node);
  /// Calls `undo`, which does not throw, if what was built last is dropped by a Draft: for who keeps handles to it.
  void on_drop(UniqueFunction<void()> undo);
  /// Whether what is built in the body of `function`, or in none, may read outputs of a node in that of `of`: the same
  /// body, or one around it.
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
  /// Those of the scopes that a node is in, by its name: of "a/b/c" "a" and "a/b".
  void reserve_scopes_of(std::string_view node_name);
  void add_to_collection(std::string_view collection, NodeId node);
  /// Takes the members from number `first` on out of it.
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

  const std::uint64_t number_;
  const std::shared_ptr<NodeList> nodes_ = std::make_shared<NodeList>();
  // The thread that builds holds the mutex to change these, others to read them.
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
  std::atomic<std::thread::id> drafting_;                             ///< the thread whose drafts they are
  std::vector<std::pair<std::size_t, UniqueFunction<void()>>> undo_;  ///< by the number of nodes there were
};

/// The scopes below are those of the functions of Graph, for what builds nodes without a Graph at hand. An error in one
/// names `where`, or the place of a scope around it.
[[nodiscard]] ScopeGuard enter_name_scope(GraphStore& graph, std::string_view name,
                                          std::source_location where = std::source_location::current());
[[nodiscard]] ScopeGuard enter_device(GraphStore& graph, std::string_view name,
                                      std::source_location where = std::source_location::current());
[[nodiscard]] ScopeGuard enter_colocation(GraphStore& graph, Operation operation,
                                          std::source_location where = std::source_location::current());
[[nodiscard]] ScopeGuard enter_control_dependencies(GraphStore& graph, std::span<const Operation> operations,
                                                    std::source_location where = std::source_location::current());

/// Blames whatever is built while the guard lives on that line of the user's program, unless a scope around
/// it does so already: the first line of a library function that builds more than one node.
[[nodiscard]] ScopeGuard enter_place(GraphStore& graph, std::source_location where);

namespace detail {
/// The function that begins with that node, which was looked for as `name`. Errors: InvalidArgument if there is none,
/// or its body is not finished, or a number of its arguments is missing.
GraphStore::Function require_function(const GraphStore& graph, NodeId begin, const std::string& name);
/// The shapes of the results of a function where its arguments have these. Errors: those of the shape functions of its
/// body.
std::vector<PartialShape> infer_results(const GraphStore& graph, NodeId begin, const GraphStore::Function& function,
                                        std::span<const PartialShape> arguments);
/// What a node that calls a function says of its captures where it does not see what they stand for (its attribute
/// "captured", "node:0;other:1"); none: they stand for themselves. Errors: InvalidArgument unless the graph has the
/// edges. The thread that builds sees those of a draft, too.
std::vector<Endpoint> captured_edges(const GraphStore& graph, const Node& call, bool builds);
std::string captured_text(const GraphStore& graph, std::span<const Endpoint> edges);
/// Throws InvalidArgument, in the words of `function`, unless the operation is a node of `graph`.
void require_node(const GraphStore& graph, const Operation& operation, std::string_view function,
                  std::source_location where);
}  // namespace detail

/// Throws InvalidArgument unless `name` is a legal node name: letters, digits and "_./->", starting with a letter,
/// digit, "." or "_" (TensorFlow's rule), at most 4096 bytes.
void check_node_name(std::string_view name, std::string_view op, std::source_location where);
/// The same for a node of a step, which passes may have named after several, joined by " + ", or after one with more
/// behind it: at most 65536 bytes.
void check_step_node_name(std::string_view name, std::string_view op, std::source_location where);
/// Names a node of a step where several come from one of the graph: copy 2, 3 and so on.
std::string step_node_copy(std::string_view name, int copy);
/// Names what passes make beside a node; no node of a graph has that name.
std::string step_node_beside(std::string_view name, std::string_view what);
/// What it is a copy of; any other name as it is.
std::string_view without_copy(std::string_view name) noexcept;

}  // namespace dflow
