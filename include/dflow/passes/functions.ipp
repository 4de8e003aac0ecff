#pragma once

#include <dflow/passes/frames.hpp>
#include <dflow/passes/functions.hpp>
#include <dflow/passes/lower_calls.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <variant>

namespace dflow {

namespace detail {

class BodyAttacher {
 public:
  BodyAttacher(const GraphStore& graph, PruneScratch& scratch, FunctionRef<void(NodeId, StepNode&)> visit,
               const BodyOptions& options)
      : graph_(graph), scratch_(scratch), visit_(visit), options_(options) {}

  /// Attaches bodies to the calls of a step, and puts the step's raw form of control flow into one node.
  void attach(StepGraph& step) {
    attach_calls(step);
    // The nodes of the step itself are no result of inlining.
    const std::size_t before = step.nodes.size();
    const std::size_t room = std::min(options_.max_nodes - std::min(num_nodes_, options_.max_nodes),
                                      before + max_inlined_nodes - std::min(num_inlined_, max_inlined_nodes));
    if (inline_calls(step, room, options_.check)) {
      num_nodes_ += step.nodes.size();
      num_inlined_ += step.nodes.size() - std::min(before, step.nodes.size());
    }
    if (!options_.lowers) form_frames(step, options_.raises);
  }

 private:
  void attach_calls(StepGraph& step) {
    const Kept kept = find_kept(step);
    for (const StepNodeId id : step.nodes.indices()) {
      const StepNode& node = step.node(id);
      if (!calls_functions(node.op->role) || node.is_fed_only) continue;
      try {
        const auto found = kept.find(id);
        attach_to(step, id, found == kept.end() ? std::vector<KeptEdge>() : found->second);
      } catch (...) {
        throw_error(status_of_current_exception().with_node(node.op->name, node->name).with_location(node->where));
      }
    }
    if (!kept.empty()) {
      give_kept(step, kept);
      step = prune(std::move(step));
    }
  }

  /// A node that stands for an edge of a body.
  struct KeptEdge {
    StepNodeId node;
    Endpoint edge;  ///< none: the number of iterations
  };
  using Kept = std::map<StepNodeId, std::vector<KeptEdge>>;  ///< by the calls

  Kept find_kept(const StepGraph& step) const {
    Kept kept;
    for (const StepNodeId id : step.nodes.indices()) {
      const StepNode& node = step.node(id);
      if (node.op->role != OpRole::kept_value || node.is_fed_only) continue;
      // A call without results is named by a control edge.
      const StepNodeId call = node.num_inputs != 0     ? step.inputs_of(node)[0].node
                              : node.num_controls != 0 ? step.controls_of(node)[0]
                                                       : StepNodeId();
      if (!call.is_valid() || !calls_functions(step.node(call).op->role) || step.node(call).is_fed_only) {
        throw_error(Status::invalid_argument("there is no call before it that runs in this step")
                        .with_node(node.op->name, node->name)
                        .with_location(node->where));
      }
      kept[call].push_back({id, edge_of(*node)});
    }
    return kept;
  }

  Endpoint edge_of(const Node& node) const {
    const std::string name = std::get<std::string>(attr_of(node, node.op->attr_fields[0]));
    if (name.empty()) return {};
    const NodeId id = graph_.find(name);
    const std::int64_t output = std::get<std::int64_t>(attr_of(node, node.op->attr_fields[1]));
    if (id.is_valid() && graph_.node(id).function.is_valid() && output >= 0 &&
        static_cast<std::size_t>(output) < graph_.node(id).outputs.size()) {
      return {id, static_cast<std::int32_t>(output)};
    }
    throw_error(Status::invalid_argument(str_cat("no body has an edge '", name, ":", output, "'"))
                    .with_node(node.op->name, node.name)
                    .with_location(node.where));
  }

  /// The attribute of that name, if the op has one.
  template <class T>
  static T attr_or(const Node& node, std::string_view name, T otherwise) {
    for (const AttrField& field : node.op->attr_fields) {
      if (field.name == name) return std::get<T>(attr_of(node, field));
    }
    return otherwise;
  }

  void attach_to(StepGraph& step, StepNodeId id, const std::vector<KeptEdge>& kept) {
    auto call = std::make_shared<StepCall>();
    const StepNode& node = step.node(id);
    call->num_leading = node.op->role == OpRole::branch ? 1 : 0;
    if (options_.is_part) call->frame = attr_or<std::string>(*node, "frame", {});
    call->max_kept_bytes = attr_or<std::int64_t>(*node, "max_kept_bytes", -1);
    const std::vector<std::string> names = called_functions(*node);
    call->kept.resize(kept.size());
    std::vector<bool> is_found(kept.size());
    for (std::size_t b = 0; b < names.size(); ++b) {
      std::vector<Endpoint> of_body;
      for (std::size_t k = 0; k < kept.size(); ++k) {
        const bool is_condition = node.op->role == OpRole::loop && b == 0;
        if (!kept[k].edge.node.is_valid()) {
          is_found[k] = node.op->role == OpRole::loop;
        } else if (!is_condition && graph_.node(graph_.node(kept[k].edge.node).function).name == names[b]) {
          call->kept[k] = {b, static_cast<std::ptrdiff_t>(of_body.size())};
          is_found[k] = true;
          of_body.push_back(kept[k].edge);
        }
      }
      call->around.push_back(-1);
      call->bodies.push_back(body_of(node, names[b], *call, of_body, call->around.back()));
    }
    if (node.op->role == OpRole::call) {
      call->is_inlined = attr_or<bool>(*node, "is_inlined", false) ||
                         attr_or<bool>(graph_.node(graph_.find(names.front())), "is_inlined", false);
    }
    if (std::find(is_found.begin(), is_found.end(), false) != is_found.end()) {
      throw_error(Status::invalid_argument("a value is to be kept that none of its functions has"));
    }
    for (const KeptEdge& each : kept) require_kept_type(step.node(each.node), node.op->role, each.edge);
    if (!kept.empty()) widen(step, id, kept);
    step.node(id).call = static_cast<std::int32_t>(step.calls.size());
    step.calls.push_back(std::move(call));
  }

  /// A loop keeps a list of the values that an edge has had, and the number of iterations.
  void require_kept_type(const StepNode& kept, OpRole call, Endpoint edge) const {
    const DType gives = !edge.node.is_valid() ? DType::int64 : call == OpRole::loop ? DType::variant : info(edge).dtype;
    const DType wanted = kept->outputs[0].dtype;
    if (wanted == gives) return;
    throw_error(Status::invalid_argument(str_cat("what is kept is ", dtype_name(gives), ", not ", dtype_name(wanted)))
                    .with_node(kept.op->name, kept->name)
                    .with_location(kept->where));
  }

  /// Adds outputs for kept values. Their shapes are not known, because there may be no value.
  void widen(StepGraph& step, StepNodeId id, const std::vector<KeptEdge>& kept) const {
    const StepNode& node = step.node(id);
    Node wide = *node;
    for (const KeptEdge& each : kept) {
      wide.outputs.push_back({step.node(each.node)->outputs[0].dtype, PartialShape::unknown()});
    }
    const auto edges = std::as_const(step).inputs_of(node);
    const auto nodes = std::as_const(step).controls_of(node);
    const std::vector<StepEndpoint> inputs(edges.begin(), edges.end());
    const std::vector<StepNodeId> controls(nodes.begin(), nodes.end());
    step.replace(id, std::move(wide), inputs, controls);
  }

  static void give_kept(StepGraph& step, const Kept& kept) {
    IndexedVector<StepNodeId, StepEndpoint> moved(step.nodes.size());
    for (const auto& [call, edges] : kept) {
      const std::int32_t first = step.node(call).num_outputs - static_cast<std::int32_t>(edges.size());
      for (std::size_t k = 0; k < edges.size(); ++k) {
        moved[edges[k].node] = {call, first + static_cast<std::int32_t>(k)};
      }
    }
    const auto move = [&](StepEndpoint& edge) {
      if (edge.node.is_valid() && moved[edge.node].node.is_valid()) edge = moved[edge.node];
    };
    std::for_each(step.inputs.begin(), step.inputs.end(), move);
    std::for_each(step.fetches.begin(), step.fetches.end(), move);
  }

  /// The body of a function; null for a body that the call stands in: `around` is then its number. That body gives the
  /// same kept values.
  std::shared_ptr<const StepGraph> body_of(const StepNode& node, const std::string& name, const StepCall& call,
                                           const std::vector<Endpoint>& kept, std::int32_t& around) {
    const NodeId begin = graph_.find(name);
    const GraphStore::Function function = require_function(graph_, begin, name);
    if (open_.size() == max_depth) {
      throw_error(
          Status::resource_exhausted(str_cat("calls of functions in functions are nested deeper than ", max_depth)));
    }
    const std::span<const Endpoint> given = std::span(node->inputs).subspan(call.num_leading);
    if (function.arguments.size() > given.size()) {
      throw_error(Status::invalid_argument(
          str_cat("function '", name, "' takes ", function.arguments.size(), " arguments, and gets ", given.size())));
    }
    std::vector<Endpoint> feeds(given.begin(), given.end());
    for (std::size_t i = 0; i < function.arguments.size(); ++i) feeds[i] = {function.arguments[i], 0};
    if (const std::vector<Endpoint> captured = captured_edges(graph_, *node, false); !captured.empty()) {
      if (captured.size() != feeds.size() - function.arguments.size()) {
        throw_error(
            Status::invalid_argument(str_cat("it says of ", captured.size(), " captures what they stand for, and has ",
                                             feeds.size() - function.arguments.size())));
      }
      std::copy(captured.begin(), captured.end(),
                feeds.begin() + static_cast<std::ptrdiff_t>(function.arguments.size()));
    }
    for (std::size_t i = 0; i < feeds.size(); ++i) require_type(name, "argument", i, feeds[i], given[i]);
    const Node& results = graph_.node(function.results);
    check_results(node, name, call.bodies.size(), results.inputs);
    std::vector<Endpoint> fetches = results.inputs;
    fetches.insert(fetches.end(), kept.begin(), kept.end());
    // Calls of a function mostly read the same edges around it.
    BodyKey key{begin, node.placed_on, feeds, kept};
    for (Open& each : open_) {
      if (each.key < key || key < each.key) continue;
      if (each.recursion < 0) each.recursion = num_recursions_++;
      around = each.recursion;
      calls_around_.insert(around);
      return nullptr;
    }
    if (const auto found = known_.find(key); found != known_.end() && stands_in_open(found->second)) {
      calls_around_.insert(found->second.calls_around.begin(), found->second.calls_around.end());
      return found->second.body;
    }
    if (options_.check != nullptr) (*options_.check)();
    const bool has_messages = !call.frame.empty();
    StepGraph body = prune(graph_, feeds, fetches, results.control_inputs, scratch_, [&](NodeId id, StepNode& of_body) {
      visit_(id, of_body);
      // Values are where they are read.
      const OpRole role = of_body.op->role;
      if (role == OpRole::constant || role == OpRole::placeholder) of_body.placed_on = node.placed_on;
      if (!has_messages) require_no_messages(of_body);
      if ((role == OpRole::argument || role == OpRole::variable) && !of_body.is_fed_only) {
        throw_error(Status::invalid_argument(
            str_cat("function '", name, "' reads '", of_body->name, "', which its call does not give it")));
      }
    });
    num_nodes_ += body.nodes.size();
    if (num_nodes_ > options_.max_nodes) {
      throw_error(
          Status::resource_exhausted(str_cat("the bodies of a step have more than ", options_.max_nodes, " nodes")));
    }
    std::set<std::int32_t> calls_around;
    calls_around.swap(calls_around_);
    open_.push_back({key, -1});
    node.op->role == OpRole::frames ? attach_calls(body) : attach(body);
    body.recursion = open_.back().recursion;
    open_.pop_back();
    calls_around_.erase(body.recursion);
    Known& known = known_[std::move(key)];
    known = {std::make_shared<const StepGraph>(std::move(body)), calls_around_};
    calls_around_.merge(calls_around);
    return known.body;
  }

  /// The step's rendezvous has one tensor of each name and frame, and a body may run many times.
  static void require_no_messages(const StepNode& node) {
    if (node.op->role != OpRole::send && node.op->role != OpRole::recv) return;
    throw_error(Status::unimplemented("the body of a function sends and receives nothing")
                    .with_node(node.op->name, node->name)
                    .with_location(node->where));
  }

  const OutputInfo& info(Endpoint edge) const {
    return graph_.node(edge.node).outputs[static_cast<std::size_t>(edge.index)];
  }

  void require_type(const std::string& name, std::string_view what, std::size_t i, Endpoint of_function,
                    DType of_call) const {
    if (info(of_function).dtype == of_call) return;
    throw_error(Status::invalid_argument(str_cat(what, " ", i, " of function '", name, "' is ",
                                                 dtype_name(info(of_function).dtype), ", and of its call ",
                                                 dtype_name(of_call))));
  }
  void require_type(const std::string& name, std::string_view what, std::size_t i, Endpoint of_function,
                    Endpoint of_call) const {
    require_type(name, what, i, of_function, info(of_call).dtype);
  }

  /// The first function of a loop says whether it goes on; all others give the results of the call.
  void check_results(const StepNode& node, const std::string& name, std::size_t number,
                     std::span<const Endpoint> results) const {
    const bool asks = node.op->role == OpRole::loop && number == 0;
    const std::size_t wanted = asks ? 1 : node->outputs.size();
    if (results.size() != wanted) {
      throw_error(Status::invalid_argument(
          str_cat("function '", name, "' gives ", results.size(), " results, and its call ", wanted)));
    }
    for (std::size_t i = 0; i < wanted; ++i) {
      require_type(name, "result", i, results[i], asks ? DType::boolean : node->outputs[i].dtype);
    }
    if (!asks || info(results[0]).shape.is_compatible_with(Shape{})) return;
    throw_error(Status::invalid_argument(
        str_cat("the condition '", name, "' gives a bool ", info(results[0]).shape.to_string(), ", not one bool")));
  }

  /// The facts that the body of a function depends on.
  struct BodyKey {
    NodeId begin;
    std::int32_t placed_on = 0;
    std::vector<Endpoint> feeds;
    std::vector<Endpoint> kept;

    friend bool operator<(const BodyKey& a, const BodyKey& b) {
      return std::tie(a.begin, a.placed_on) != std::tie(b.begin, b.placed_on)
                 ? std::tie(a.begin, a.placed_on) < std::tie(b.begin, b.placed_on)
             : is_before(a.feeds, b.feeds) ? true
             : is_before(b.feeds, a.feeds) ? false
                                           : is_before(a.kept, b.kept);
    }
    static bool is_before(const std::vector<Endpoint>& a, const std::vector<Endpoint>& b) {
      return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(), [](Endpoint x, Endpoint y) {
        return std::tie(x.node, x.index) < std::tie(y.node, y.index);
      });
    }
  };
  /// A body on the way.
  struct Open {
    BodyKey key;
    std::int32_t recursion = -1;  ///< its number, if it calls itself
  };
  struct Known {
    std::shared_ptr<const StepGraph> body;
    std::set<std::int32_t> calls_around;  ///< bodies that it stands in and calls
  };
  /// A body that calls bodies around it is the same only inside them.
  bool stands_in_open(const Known& known) const {
    return std::all_of(known.calls_around.begin(), known.calls_around.end(), [&](std::int32_t number) {
      return std::any_of(open_.begin(), open_.end(), [&](const Open& each) { return each.recursion == number; });
    });
  }

  static constexpr std::size_t max_depth = 256;

  const GraphStore& graph_;
  PruneScratch& scratch_;
  FunctionRef<void(NodeId, StepNode&)> visit_;
  const BodyOptions& options_;
  std::size_t num_nodes_ = 0;  ///< a body counts once for each set of kept values
  std::size_t num_inlined_ = 0;
  std::vector<Open> open_;
  std::int32_t num_recursions_ = 0;
  std::set<std::int32_t> calls_around_;  ///< by the body that is being attached
  std::map<BodyKey, Known> known_;
};

}  // namespace detail

void attach_bodies(const GraphStore& graph, StepGraph& step, PruneScratch& scratch,
                   FunctionRef<void(NodeId, StepNode&)> visit, const BodyOptions& options) {
  detail::BodyAttacher(graph, scratch, visit, options).attach(step);
  if (!options.lowers) return;
  // In the end, all bodies at once.
  lower_calls(step, options.raises, options.max_nodes, options.check);
  form_frames(step, options.raises);
}

}  // namespace dflow
