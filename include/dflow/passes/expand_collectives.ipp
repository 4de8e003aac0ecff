#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/ops/array/concat.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/array/like.hpp>
#include <dflow/ops/array/reshape.hpp>
#include <dflow/ops/array/slice.hpp>
#include <dflow/ops/collective/collective.hpp>
#include <dflow/ops/internal/member_collective.hpp>
#include <dflow/ops/math/binary.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/ops/reduction/add_n.hpp>
#include <dflow/passes/expand_collectives.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dflow {

namespace detail {

/// The nodes in the place of one collective, appended to the new step.
class CollectiveNodes {
 public:
  CollectiveNodes(StepGraph& step, const Node& collective, std::span<const StepNodeId> controls)
      : step_(step), collective_(collective), controls_(controls.begin(), controls.end()) {}

  const OutputInfo& info(StepEndpoint edge) const { return step_.output(edge); }

  /// The element type in which elements of type `dtype` are summed and multiplied; their results have type `dtype`.
  static DType wide_type(DType dtype, ReduceBy reduction) {
    if (reduction <= ReduceBy::product && sum_type(dtype) != dtype) return sum_type(dtype);
    if (reduction == ReduceBy::mean && in_mask(dtype, dtype_mask<IntTypes>)) {
      return dtype == DType::uint64 ? dtype : DType::int64;
    }
    return dtype;
  }

  /// Reduces the values, of the results' type or wide, in their order. `count` is the number of all members, given
  /// for the last reduction. Before the last one, results stay wide, and are no means yet.
  StepEndpoint reduce(std::span<const StepEndpoint> values, ReduceBy reduction, std::optional<std::size_t> count,
                      std::size_t device) {
    if (count == std::size_t{1}) return values.front();
    const DType dtype = collective_.outputs.front().dtype;
    const DType wide = wide_type(dtype, reduction);
    const bool adds = reduction == ReduceBy::sum || reduction == ReduceBy::mean;
    const bool divides = reduction == ReduceBy::mean && count;
    const bool is_narrow =
        std::all_of(values.begin(), values.end(), [&](StepEndpoint value) { return info(value).dtype == dtype; });
    // AddN rounds a sum of 16-bit floats once.
    if (adds && !divides && count && is_narrow) return sum(values, device);
    std::vector<StepEndpoint> terms;
    for (const StepEndpoint value : values) terms.push_back(cast(value, wide, device));
    StepEndpoint result = terms.front();
    if (adds && terms.size() > 1) result = sum(terms, device);
    // Shapes that differ would be broadcast; a sum's must not.
    std::vector<StepNodeId> check;
    if (!adds && !are_alike(terms)) check.push_back(sum(terms, device).node);
    for (std::size_t i = 1; !adds && i < terms.size(); ++i) {
      result = combine(reduction, result, terms[i], device, check);
    }
    return count ? rounded(result, reduction, *count, device) : result;
  }

  /// The final result, rounded from a wide result that was reduced from `count` values.
  StepEndpoint rounded(StepEndpoint wide, ReduceBy reduction, std::size_t count, std::size_t device) {
    if (reduction == ReduceBy::mean) wide = divide(wide, count, device);
    return cast(wide, collective_.outputs.front().dtype, device);
  }

  /// The result of a sum or product that the values' devices compute together, for each of them.
  std::vector<StepEndpoint> reduce_together(std::span<const StepEndpoint> values, ReduceBy reduction, std::size_t count,
                                            std::span<const std::size_t> devices) {
    const DType wide = wide_type(collective_.outputs.front().dtype, reduction);
    std::vector<StepEndpoint> wide_values;
    for (std::size_t m = 0; m < values.size(); ++m) wide_values.push_back(cast(values[m], wide, devices[m]));
    const OutputInfo result{wide, collective_.outputs.front().shape};
    std::vector<StepEndpoint> results = compute_together(kind_of(reduction), wide_values, result, devices);
    for (std::size_t m = 0; m < values.size(); ++m) results[m] = rounded(results[m], reduction, count, devices[m]);
    return results;
  }

  /// A node on each device; of a broadcast there is one value.
  std::vector<StepEndpoint> compute_together(CollectiveKind kind, std::span<const StepEndpoint> values,
                                             const OutputInfo& result, std::span<const std::size_t> devices) {
    std::vector<StepEndpoint> results;
    for (std::size_t m = 0; m < devices.size(); ++m) {
      const std::span<const StepEndpoint> value =
          m < values.size() ? values.subspan(m, 1) : std::span<const StepEndpoint>();
      results.push_back(add<MemberCollective>(value, one_type(result.dtype), result, devices[m], {},
                                              {.kind = kind,
                                               .collective = collective_.name,
                                               .member = static_cast<std::int64_t>(m),
                                               .members = static_cast<std::int64_t>(devices.size())}));
    }
    return results;
  }

  /// Precondition: it is no minimum or maximum.
  static CollectiveKind kind_of(ReduceBy reduction) {
    return reduction == ReduceBy::product ? CollectiveKind::product : CollectiveKind::sum;
  }

  StepEndpoint identity(StepEndpoint value, std::size_t device) {
    return add<Identity>({&value, 1}, one_type(info(value).dtype), info(value), device);
  }

  StepEndpoint concat(std::span<const StepEndpoint> values, const OutputInfo& result, std::size_t device) {
    std::vector<StepEndpoint> inputs{constant(Tensor<std::int32_t>({}, {0}), device)};
    inputs.insert(inputs.end(), values.begin(), values.end());
    return add<Concat>(inputs, one_type(result.dtype), result, device);
  }

  StepEndpoint reshape(StepEndpoint value, const Shape& shape, std::size_t device) {
    const StepEndpoint inputs[] = {value, constant(Tensor<std::int64_t>({shape.rank()}, shape.dims()), device)};
    const OutputInfo reshaped{info(value).dtype, shape};
    return add<Reshape>(inputs, two_types(reshaped.dtype, DType::int64), reshaped, device);
  }

  /// The parts of a tensor of that shape, put together.
  StepEndpoint join(std::span<const StepEndpoint> parts, const Shape& shape, std::size_t device) {
    const OutputInfo flat{info(parts.front()).dtype, PartialShape({shape.num_elements()})};
    return reshape(concat(parts, flat, device), shape, device);
  }

  /// Elements of a vector; in host memory they share its bytes.
  StepEndpoint slice(StepEndpoint vector, std::int64_t begin, std::int64_t size, std::size_t device) {
    const StepEndpoint inputs[] = {vector, number(begin, device), number(size, device)};
    const OutputInfo part{info(vector).dtype, PartialShape({size})};
    return add<Slice>(inputs, two_types(part.dtype, DType::int64), part, device);
  }

  /// Makes the node wait for every node that the collective waits for. An Identity passes on a node not its own.
  StepEndpoint finish(StepEndpoint result, std::size_t device) {
    if (controls_.empty() && is_own(result)) return result;
    const OutputInfo passed = info(result);
    return add<Identity>({&result, 1}, one_type(passed.dtype), passed, device, controls_);
  }

 private:
  bool is_own(StepEndpoint edge) const { return edge.node >= first_; }

  StepEndpoint sum(std::span<const StepEndpoint> values, std::size_t device) {
    OutputInfo total = info(values.front());
    for (const StepEndpoint value : values) {
      if (info(value).shape.is_fully_defined()) total.shape = info(value).shape;
    }
    return add<AddN>(values, one_type(total.dtype), total, device);
  }

  /// Whether the graph tells that all values have one shape.
  bool are_alike(std::span<const StepEndpoint> values) const {
    const PartialShape& first = info(values.front()).shape;
    return first.is_fully_defined() && std::all_of(values.begin(), values.end(), [&](StepEndpoint value) {
             return info(value).shape.is_fully_defined() && info(value).shape.to_shape() == first.to_shape();
           });
  }

  StepEndpoint combine(ReduceBy reduction, StepEndpoint a, StepEndpoint b, std::size_t device,
                       std::span<const StepNodeId> after) {
    const StepEndpoint inputs[] = {a, b};
    const OutputInfo result = info(a);
    const TypeArgs types = one_type(result.dtype);
    return reduction == ReduceBy::product   ? add<Mul>(inputs, types, result, device, after)
           : reduction == ReduceBy::minimum ? add<Minimum>(inputs, types, result, device, after)
                                            : add<Maximum>(inputs, types, result, device, after);
  }

  StepEndpoint divide(StepEndpoint value, std::size_t count, std::size_t device) {
    const OutputInfo mean = info(value);
    AnyTensor divisor = visit_dtype<NumberTypes>(mean.dtype, [&]<class T>() -> AnyTensor {
      if constexpr (is_complex_element<T>) {
        return Tensor<T>({}, {T(static_cast<typename T::value_type>(count))});
      } else {
        return Tensor<T>({}, {static_cast<T>(static_cast<float>(count))});
      }
    });
    const StepEndpoint inputs[] = {value, constant(std::move(divisor), device)};
    return add<Div>(inputs, one_type(mean.dtype), mean, device);
  }

  StepEndpoint cast(StepEndpoint value, DType dtype, std::size_t device) {
    const OutputInfo from = info(value);
    if (from.dtype == dtype) return value;
    return add<Cast>({&value, 1}, two_types(from.dtype, dtype), {dtype, from.shape}, device);
  }

  /// A vector of one, made once: constants are copied to where they are read.
  StepEndpoint number(std::int64_t value, std::size_t device) {
    StepEndpoint& made = numbers_[value];
    if (!made.node.is_valid()) made = constant(Tensor<std::int64_t>({1}, {value}), device);
    return made;
  }

  StepEndpoint constant(AnyTensor value, std::size_t device) {
    const OutputInfo of{value.dtype(), value.shape()};
    return add<Const>({}, one_type(of.dtype), of, device, {}, {std::move(value)});
  }

  template <class O>
  StepEndpoint add(std::span<const StepEndpoint> inputs, const TypeArgs& types, const OutputInfo& output,
                   std::size_t device, std::span<const StepNodeId> controls = {}, typename O::Attrs attrs = {}) {
    Node node;
    node.op = &op_def<O>;
    node.name = step_node_beside(collective_.name, str_cat(O::name, "_", count_++));
    node.types = types;
    node.attrs = share_attrs<O>(std::move(attrs));
    node.outputs = {output};
    node.where = collective_.where;
    return {step_.append(std::move(node), static_cast<std::int32_t>(device), inputs, controls), 0};
  }

  StepGraph& step_;
  const Node& collective_;
  std::vector<StepNodeId> controls_;
  const StepNodeId first_ = step_.nodes.end_index();
  std::size_t count_ = 0;
  std::map<std::int64_t, StepEndpoint> numbers_;
};

/// A memory that takes part in a collective.
struct CollectiveMemory {
  MemoryId id;
  std::size_t device = 0;            ///< its first one
  std::vector<StepEndpoint> values;  ///< made there
  bool wants = false;                ///< the result
  StepEndpoint result = {};
};

/// How a vector is cut into parts: where they begin, and how long they are. Cuts lie on boundaries of allocations, as
/// far as elements allow; there may be fewer parts than asked for.
inline std::vector<std::pair<std::int64_t, std::int64_t>> cut_into_parts(std::int64_t size, std::size_t parts) {
  constexpr std::int64_t multiple = 64;
  const auto count = static_cast<std::int64_t>(parts);
  const std::int64_t length = ((size + count - 1) / count + multiple - 1) / multiple * multiple;
  std::vector<std::pair<std::int64_t, std::int64_t>> cuts;
  for (std::int64_t begin = 0; begin < size; begin += length) cuts.emplace_back(begin, std::min(length, size - begin));
  return cuts;
}

class CollectiveExpander {
 public:
  CollectiveExpander(std::span<const DeviceInfo> devices, std::span<const CollectiveDevice> here)
      : devices_(devices), here_(here) {}

  void expand(StepGraph& step) {
    for (std::shared_ptr<const StepCall>& call : step.calls) {
      if (std::none_of(call->bodies.begin(), call->bodies.end(), [&](const auto& body) { return has_any(body); })) {
        continue;
      }
      auto with = std::make_shared<StepCall>(*call);
      for (std::shared_ptr<const StepGraph>& body : with->bodies) body = expanded(body);
      call = std::move(with);
    }
    if (std::any_of(step.nodes.begin(), step.nodes.end(), is_expanded)) expand_nodes(step);
  }

  /// Whether the step, or a body that it calls, has a collective.
  bool has_any(const StepGraph& step) {
    if (std::any_of(step.nodes.begin(), step.nodes.end(), is_expanded)) return true;
    return std::any_of(step.calls.begin(), step.calls.end(), [&](const auto& call) {
      return std::any_of(call->bodies.begin(), call->bodies.end(), [&](const auto& body) { return has_any(body); });
    });
  }

 private:
  /// The nodes in the new step that stand for a node of the old one.
  struct Now {
    StepNodeId node;                    ///< of a collective: has its fed edges
    std::vector<StepEndpoint> results;  ///< of a collective
    std::vector<StepNodeId> ends;       ///< the nodes of these
  };

  /// The readers of a collective's results.
  struct Readers {
    std::vector<std::int32_t> devices;  ///< by result: the first reader's, or `client`, or `nobody`
    bool are_waited_for = false;
  };
  static constexpr std::int32_t nobody = -2, client = -1;

  static bool is_expanded(const StepNode& node) { return node.op->role == OpRole::collective && !node.is_fed_only; }

  bool has_any(const std::shared_ptr<const StepGraph>& body) {
    if (body == nullptr) return false;
    if (const auto found = has_any_.find(body.get()); found != has_any_.end()) return found->second;
    const bool has = has_any(*body);
    return has_any_.emplace(body.get(), has).first->second;
  }

  /// Bodies that calls share stay shared.
  std::shared_ptr<const StepGraph> expanded(const std::shared_ptr<const StepGraph>& body) {
    if (!has_any(body)) return body;
    if (const auto found = bodies_.find(body); found != bodies_.end()) return found->second;
    StepGraph with = *body;
    expand(with);
    return bodies_.emplace(body, std::make_shared<const StepGraph>(std::move(with))).first->second;
  }

  static std::map<StepNodeId, Readers> readers_of(const StepGraph& step, const EdgePositions<StepNodeId>& feeds) {
    std::map<StepNodeId, Readers> readers;
    for (const StepNodeId id : step.nodes.indices()) {
      if (!is_expanded(step.node(id))) continue;
      readers[id].devices.assign(static_cast<std::size_t>(step.node(id).num_outputs), nobody);
    }
    const auto read = [&](StepEndpoint edge, std::int32_t device) {
      if (!edge.node.is_valid() || !is_expanded(step.node(edge.node)) || feeds.contains(edge)) return;
      std::int32_t& at = readers[edge.node].devices[static_cast<std::size_t>(edge.index)];
      if (at < 0) at = std::max(at, device);
    };
    const auto wait = [&](StepNodeId id) {
      if (id.is_valid() && is_expanded(step.node(id))) readers[id].are_waited_for = true;
    };
    for (const StepNode& node : step.nodes) {
      for (const StepEndpoint input : step.inputs_of(node)) read(input, node.placed_on);
      for (const StepNodeId control : step.controls_of(node)) wait(control);
    }
    for (const StepEndpoint fetch : step.fetches) read(fetch, client);
    for (const StepNodeId target : step.targets) wait(target);
    for (auto& [id, of] : readers) {
      const bool is_read =
          std::any_of(of.devices.begin(), of.devices.end(), [](auto device) { return device != nobody; });
      if (of.are_waited_for && !is_read) of.devices.assign(of.devices.size(), client);
    }
    return readers;
  }

  void expand_nodes(StepGraph& step) {
    for (std::size_t d = memories_.size(); d < devices_.size(); ++d) memories_.push_back(memory_of(devices_[d]));
    const EdgePositions<StepNodeId> feeds(step.feeds, step.nodes.size());
    const std::map<StepNodeId, Readers> readers = readers_of(step, feeds);
    StepGraph fresh;
    fresh.graph = step.graph;
    fresh.made = step.made;
    fresh.calls = step.calls;
    fresh.recursion = step.recursion;
    fresh.gives_dead = step.gives_dead;
    IndexedVector<StepNodeId, Now> now(step.nodes.size());
    const auto edge = [&](StepEndpoint old) -> StepEndpoint {
      const Now& of = now[old.node];
      if (of.results.empty() || feeds.contains(old)) return {of.node, old.index};
      return of.results[static_cast<std::size_t>(old.index)];
    };
    const auto add_node = [&](StepNodeId old, std::vector<StepNodeId>& to) {
      if (!old.is_valid()) return to.push_back(old);
      const Now& of = now[old];
      if (of.results.empty()) return to.push_back(of.node);
      to.insert(to.end(), of.ends.begin(), of.ends.end());
    };
    std::vector<std::pair<StepNodeId, std::size_t>> back;  // inputs that lead back, in frames
    for (const StepNodeId id : step.nodes.indices()) {
      const StepNode& node = step.node(id);
      std::vector<StepEndpoint> inputs;
      std::vector<StepNodeId> controls;
      for (const StepEndpoint input : step.inputs_of(node)) {
        if (input.node >= id) back.emplace_back(id, inputs.size());
        inputs.push_back(input.node >= id ? StepEndpoint() : edge(input));
      }
      for (const StepNodeId control : step.controls_of(node)) add_node(control, controls);
      if (!is_expanded(node)) {
        now[id].node = fresh.append(node, inputs, controls);
        continue;
      }
      StepNode fed = node;
      fed.is_fed_only = true;
      for (std::int32_t i = 0; i < node.num_outputs; ++i) {
        if (feeds.contains({id, i}) && !now[id].node.is_valid()) now[id].node = fresh.append(fed, {}, {});
      }
      now[id].results = results_of(fresh, *node, inputs, controls, readers.at(id));
      for (const StepEndpoint result : now[id].results) {
        if (result.node.is_valid()) now[id].ends.push_back(result.node);
      }
      std::vector<StepNodeId>& ends = now[id].ends;
      std::sort(ends.begin(), ends.end());
      ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
    }
    for (const auto& [id, input] : back) {
      const StepEndpoint from = std::as_const(step).inputs_of(step.node(id))[input];
      fresh.inputs_of(fresh.node(now[id].node))[input] = edge(from);
    }
    for (const StepEndpoint feed : step.feeds) fresh.feeds.push_back(edge(feed));
    for (const StepEndpoint fetch : step.fetches) fresh.fetches.push_back(edge(fetch));
    for (const StepNodeId target : step.targets) add_node(target, fresh.targets);
    step = std::move(fresh);
  }

  /// The results that are read.
  std::vector<StepEndpoint> results_of(StepGraph& fresh, const Node& node, std::span<const StepEndpoint> inputs,
                                       std::span<const StepNodeId> controls, const Readers& readers) {
    CollectiveNodes nodes(fresh, node, controls);
    std::vector<StepEndpoint> results(node.outputs.size());
    if (node.op == &op_def<CollectiveBroadcast>) {
      broadcast(nodes, fresh, node, inputs.front(), readers.devices, results);
      return results;
    }
    std::vector<CollectiveMemory> memories;
    std::vector<std::size_t> memory_of_member;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const std::size_t at = find_memory(memories, device_for(fresh.node(inputs[i].node).placed_on, node));
      memories[at].values.push_back(inputs[i]);
      memories[at].wants |= readers.devices[i] != nobody;
      memory_of_member.push_back(at);
    }
    if (node.op == &op_def<AllReduce>) {
      all_reduce(nodes, node.attrs_as<AllReduce>().reduction, inputs, memories);
    } else {
      all_gather(nodes, node.outputs.front(), inputs, memories);
    }
    for (CollectiveMemory& each : memories) {
      if (each.wants) each.result = nodes.finish(each.result, each.device);
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (readers.devices[i] != nobody) results[i] = memories[memory_of_member[i]].result;
    }
    return results;
  }

  /// The device for nodes that handle the collective's values there. Host objects are in their task's memory wherever
  /// they are made, and no other device has kernels for them.
  std::size_t device_for(std::int32_t placed_on, const Node& collective) const {
    const auto device = static_cast<std::size_t>(placed_on);
    if (is_plain(collective.outputs.front().dtype) || devices_[device].uses_host_memory()) return device;
    const auto found = std::find(memories_.begin(), memories_.end(), host_memory_of(devices_[device]));
    if (found != memories_.end()) return static_cast<std::size_t>(found - memories_.begin());
    throw_error(Status::invalid_argument(str_cat(dtype_name(collective.outputs.front().dtype), " elements on ",
                                                 devices_[device].name,
                                                 ", whose task has no device that computes in host memory"))
                    .with_node(collective.op->name, collective.name)
                    .with_location(collective.where));
  }

  std::size_t find_memory(std::vector<CollectiveMemory>& memories, std::size_t device) const {
    const auto found = std::find_if(memories.begin(), memories.end(),
                                    [&](const CollectiveMemory& each) { return each.id == memories_[device]; });
    if (found != memories.end()) return static_cast<std::size_t>(found - memories.begin());
    memories.push_back({memories_[device], device, {}});
    return memories.size() - 1;
  }

  /// The shape that all edges share, if the graph tells it and they are large.
  static std::optional<Shape> large_shape(const CollectiveNodes& nodes, std::span<const StepEndpoint> edges) {
    const OutputInfo& first = nodes.info(edges.front());
    if (!is_plain(first.dtype) || !first.shape.is_fully_defined()) return std::nullopt;
    const Shape shape = first.shape.to_shape();
    if (static_cast<std::uint64_t>(shape.num_elements()) <= max_whole_bytes / size_of(first.dtype)) return std::nullopt;
    const bool are_alike = std::all_of(edges.begin(), edges.end(), [&](StepEndpoint edge) {
      return nodes.info(edge).shape.is_fully_defined() && nodes.info(edge).shape.to_shape() == shape;
    });
    return are_alike ? std::optional(shape) : std::nullopt;
  }

  /// Whether one of the edges, which have one shape, may be large.
  static bool may_be_large(const CollectiveNodes& nodes, std::span<const StepEndpoint> edges) {
    return std::none_of(edges.begin(), edges.end(), [&](StepEndpoint edge) {
      const std::optional<std::int64_t> elements = nodes.info(edge).shape.num_elements();
      return elements && static_cast<std::uint64_t>(*elements) <= max_whole_bytes / size_of(nodes.info(edge).dtype);
    });
  }

  static std::vector<std::size_t> devices_of(std::span<const CollectiveMemory> memories) {
    std::vector<std::size_t> devices;
    for (const CollectiveMemory& each : memories) devices.push_back(each.device);
    return devices;
  }

  /// Whether the devices, in their order, compute the collective together.
  bool computes_together(CollectiveKind kind, DType dtype, std::span<const std::size_t> devices) const {
    std::vector<const DeviceContext*> members;
    for (const std::size_t device : devices) {
      if (device >= here_.size() || here_[device].collectives == nullptr ||
          here_[device].collectives != here_[devices.front()].collectives) {
        return false;
      }
      members.push_back(here_[device].context);
    }
    return here_[devices.front()].collectives->can_compute(kind, dtype, members);
  }

  bool reduces_together(const CollectiveNodes& nodes, ReduceBy reduction, std::span<const StepEndpoint> inputs,
                        std::span<const CollectiveMemory> memories) const {
    if (reduction == ReduceBy::minimum || reduction == ReduceBy::maximum || !may_be_large(nodes, inputs)) return false;
    if (!std::all_of(memories.begin(), memories.end(), [](const auto& each) { return each.wants; })) return false;
    const DType wide = CollectiveNodes::wide_type(nodes.info(inputs.front()).dtype, reduction);
    return computes_together(CollectiveNodes::kind_of(reduction), wide, devices_of(memories));
  }

  void all_gather(CollectiveNodes& nodes, const OutputInfo& result, std::span<const StepEndpoint> inputs,
                  std::vector<CollectiveMemory>& memories) const {
    const std::vector<std::size_t> devices = devices_of(memories);
    const bool is_together =
        memories.size() > 1 && memories.size() == inputs.size() && large_shape(nodes, inputs) &&
        std::all_of(memories.begin(), memories.end(), [](const auto& each) { return each.wants; }) &&
        computes_together(CollectiveKind::gather, result.dtype, devices);
    if (is_together) {
      const auto results = nodes.compute_together(CollectiveKind::gather, inputs, result, devices);
      for (std::size_t m = 0; m < memories.size(); ++m) memories[m].result = results[m];
      return;
    }
    for (CollectiveMemory& each : memories) {
      if (each.wants) each.result = nodes.concat(inputs, result, each.device);
    }
  }

  void all_reduce(CollectiveNodes& nodes, ReduceBy reduction, std::span<const StepEndpoint> inputs,
                  std::vector<CollectiveMemory>& memories) const {
    const std::size_t count = inputs.size();
    if (memories.size() == 1) {
      memories.front().result = nodes.reduce(inputs, reduction, count, memories.front().device);
      return;
    }
    std::vector<StepEndpoint> values;  // one of each memory
    values.reserve(memories.size());
    for (const CollectiveMemory& each : memories) {
      values.push_back(each.values.size() == 1 ? each.values.front()
                                               : nodes.reduce(each.values, reduction, std::nullopt, each.device));
    }
    if (reduces_together(nodes, reduction, inputs, memories)) {
      const auto results = nodes.reduce_together(values, reduction, count, devices_of(memories));
      for (std::size_t m = 0; m < memories.size(); ++m) memories[m].result = results[m];
      return;
    }
    const std::optional<Shape> shape = memories.size() > 2 ? large_shape(nodes, inputs) : std::nullopt;
    if (!shape) {
      for (CollectiveMemory& each : memories) {
        if (each.wants) each.result = nodes.reduce(values, reduction, count, each.device);
      }
      return;
    }
    for (std::size_t m = 0; m < values.size(); ++m) {
      values[m] = nodes.reshape(values[m], {shape->num_elements()}, memories[m].device);
    }
    const auto cuts = cut_into_parts(shape->num_elements(), memories.size());
    std::vector<StepEndpoint> parts;
    for (std::size_t p = 0; p < cuts.size(); ++p) {
      std::vector<StepEndpoint> slices;
      for (std::size_t m = 0; m < values.size(); ++m) {
        slices.push_back(nodes.slice(values[m], cuts[p].first, cuts[p].second, memories[m].device));
      }
      parts.push_back(nodes.reduce(slices, reduction, count, memories[p].device));
    }
    for (CollectiveMemory& each : memories) {
      if (each.wants) each.result = nodes.join(parts, *shape, each.device);
    }
  }

  void broadcast(CollectiveNodes& nodes, StepGraph& fresh, const Node& node, StepEndpoint value,
                 std::span<const std::int32_t> readers, std::vector<StepEndpoint>& results) const {
    const StepNode& source = fresh.node(value.node);
    const std::size_t root = device_for(source.placed_on, node);
    const auto device_of = [&](std::size_t i) { return readers[i] < 0 ? root : device_for(readers[i], node); };
    std::vector<CollectiveMemory> others;
    for (std::size_t i = 0; i < readers.size(); ++i) {
      if (readers[i] != nobody && memories_[device_of(i)] != memories_[root]) find_memory(others, device_of(i));
    }
    const bool is_everywhere = source.op->role == OpRole::constant;
    std::vector<std::size_t> devices{root};
    for (const CollectiveMemory& each : others) devices.push_back(each.device);
    const OutputInfo whole = nodes.info(value);
    const bool is_together = others.size() > 1 && !is_everywhere && is_plain(whole.dtype) &&
                             may_be_large(nodes, {&value, 1}) &&
                             computes_together(CollectiveKind::broadcast, whole.dtype, devices);
    const std::optional<Shape> shape =
        others.size() > 1 && !is_everywhere && !is_together ? large_shape(nodes, {&value, 1}) : std::nullopt;
    if (is_together) {
      const auto sent = nodes.compute_together(CollectiveKind::broadcast, {&value, 1}, whole, devices);
      fresh.targets.push_back(sent.front().node);  // nobody reads it
      for (std::size_t m = 0; m < others.size(); ++m) {
        others[m].result = nodes.finish(sent[m + 1], others[m].device);
      }
    } else if (shape) {
      const StepEndpoint flat = nodes.reshape(value, {shape->num_elements()}, root);
      const auto cuts = cut_into_parts(shape->num_elements(), others.size());
      std::vector<StepEndpoint> parts;
      for (std::size_t p = 0; p < cuts.size(); ++p) {
        const StepEndpoint part = nodes.slice(flat, cuts[p].first, cuts[p].second, root);
        parts.push_back(nodes.identity(part, others[p].device));
      }
      for (CollectiveMemory& each : others) {
        each.result = nodes.finish(nodes.join(parts, *shape, each.device), each.device);
      }
    }
    std::map<std::size_t, StepEndpoint> copies;  // by device
    for (std::size_t i = 0; i < readers.size(); ++i) {
      if (readers[i] == nobody) continue;
      const std::size_t device = device_of(i);
      if ((shape || is_together) && memories_[device] != memories_[root]) {
        results[i] = others[find_memory(others, device)].result;
      } else {
        StepEndpoint& copy = copies[device];
        if (!copy.node.is_valid()) copy = nodes.finish(value, device);
        results[i] = copy;
      }
    }
  }

  std::span<const DeviceInfo> devices_;
  std::span<const CollectiveDevice> here_;
  std::vector<MemoryId> memories_;  ///< by device
  std::map<const StepGraph*, bool> has_any_;
  std::map<std::shared_ptr<const StepGraph>, std::shared_ptr<const StepGraph>> bodies_;  ///< keeps the old ones
};

}  // namespace detail

void expand_collectives(StepGraph& step, std::span<const DeviceInfo> devices, std::span<const CollectiveDevice> here) {
  detail::CollectiveExpander expander(devices, here);
  if (expander.has_any(step)) expander.expand(step);
}

}  // namespace dflow
