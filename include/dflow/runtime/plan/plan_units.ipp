#pragma once

#include <dflow/runtime/plan/plan_units.hpp>

#include <algorithm>
#include <cstddef>
#include <unordered_map>

namespace dflow::detail {

/// Sets of small numbers. Each set is kept once, so equal sets have equal ids. The sets are binary trees over words of
/// 64 bits, which share their branches.
class UnitSets {
 public:
  using Id = std::int32_t;
  static constexpr Id empty = 0;

  /// For numbers below `capacity`.
  explicit UnitSets(std::size_t capacity) {
    while ((std::size_t{64} << height_) < capacity) ++height_;
  }

  Id single(std::uint32_t number) {
    Id id = keep({std::uint64_t{1} << (number % 64), leaf});
    number /= 64;
    for (int level = 0; level < height_; ++level, number /= 2) {
      id = number % 2 == 0 ? branch(id, empty) : branch(empty, id);
    }
    return id;
  }
  Id join(Id a, Id b) {
    if (a == b || b == empty) return a;
    if (a == empty) return b;
    const auto [found, is_new] = joined_.try_emplace(pair_of(std::min(a, b), std::max(a, b)), empty);
    if (is_new) found->second = join(a, b, height_);
    return found->second;
  }
  /// The cost of all calls so far.
  std::size_t num_steps() const noexcept { return num_steps_; }

 private:
  static constexpr std::uint64_t leaf = 1, inner = 2;
  /// A word and a mark that it is a leaf, or two branches and a mark that it is none.
  struct Tree {
    std::uint64_t content = 0;
    std::uint64_t kind = 0;
    friend bool operator==(const Tree&, const Tree&) = default;
  };
  struct TreeHash {
    std::size_t operator()(const Tree& tree) const noexcept {
      std::uint64_t hash = (tree.content ^ tree.kind << 62) * 0x9e3779b97f4a7c15u;
      hash ^= hash >> 29;
      return static_cast<std::size_t>(hash * 0xbf58476d1ce4e5b9u);
    }
  };

  static std::uint64_t pair_of(Id a, Id b) noexcept {
    return static_cast<std::uint64_t>(a) << 32 | static_cast<std::uint32_t>(b);
  }
  Id keep(const Tree& tree) {
    ++num_steps_;
    const auto [found, is_new] = ids_.try_emplace(tree, static_cast<Id>(trees_.size()));
    if (is_new) trees_.push_back(tree);
    return found->second;
  }
  Id branch(Id low, Id high) { return keep({pair_of(low, high), inner}); }
  Id join(Id a, Id b, int level) {
    if (a == b || b == empty) return a;
    if (a == empty) return b;
    const std::uint64_t of_a = trees_[static_cast<std::size_t>(a)].content,
                        of_b = trees_[static_cast<std::size_t>(b)].content;
    if (level == 0) return keep({of_a | of_b, leaf});
    const Id low = join(static_cast<Id>(of_a >> 32), static_cast<Id>(of_b >> 32), level - 1);
    const Id high = join(static_cast<Id>(of_a & 0xffffffffu), static_cast<Id>(of_b & 0xffffffffu), level - 1);
    return branch(low, high);
  }

  int height_ = 0;
  std::size_t num_steps_ = 0;
  std::vector<Tree> trees_{Tree{}};  ///< by id; the first is the empty set
  std::unordered_map<Tree, Id, TreeHash> ids_;
  std::unordered_map<std::uint64_t, Id> joined_;
};

/// Independent heavy kernels that leave other threads idle are worth running side by side. A kernel that can use all
/// threads gets them for itself, since kernels side by side disturb each other's caches.
bool units_gain(std::span<const UnitNode> nodes, int num_threads) {
  if (num_threads <= 1) return false;
  int expensive = 0;
  double split_ns = 0, whole_ns = 0;
  for (const UnitNode& node : nodes) {
    if (!node.runs || node.is_async || node.cost_ns < worth_a_thread_ns) continue;
    ++expensive;
    const bool fills_all = node.splits && node.cost_ns >= splits_well_ns * num_threads;
    (fills_all ? split_ns : whole_ns) += node.cost_ns;
  }
  return expensive >= 2 && whole_ns > split_ns;
}

bool runs_side_by_side(std::span<const UnitNode> nodes, InterOp inter_op, int num_threads) {
  return inter_op == InterOp::parallel || (inter_op == InterOp::automatic && units_gain(nodes, num_threads));
}

bool is_sequential(std::span<const UnitNode> nodes, InterOp inter_op, int num_threads) {
  const auto is_async = [](const UnitNode& node) { return node.runs && node.is_async; };
  return !runs_side_by_side(nodes, inter_op, num_threads) && std::none_of(nodes.begin(), nodes.end(), is_async);
}

/// One unit for all that runs.
Units one_unit(std::span<const UnitNode> nodes) {
  Units formed;
  formed.is_sequential = true;
  formed.unit_of.resize(nodes.size());
  double cost_ns = 0;
  bool any = false;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!nodes[i].runs) continue;
    formed.unit_of[i] = UnitId(0);
    cost_ns += nodes[i].cost_ns;
    any = true;
  }
  if (any) formed.units.push_back({false, cost_ns >= worth_a_thread_ns});
  return formed;
}

/// Puts nodes into units, in their order.
class UnitFormer {
 public:
  /// Expensive nodes get units of their own if `side_by_side`.
  UnitFormer(std::span<const UnitNode> nodes, std::span<const std::int32_t> producers, bool side_by_side)
      : nodes_(nodes),
        producers_(producers),
        side_by_side_(side_by_side),
        max_steps_(65536 + 8 * nodes.size()),
        sets_(nodes.size()),
        set_of_(nodes.size(), UnitSets::empty) {
    formed_.is_sequential = false;
    formed_.unit_of.resize(nodes.size());
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (nodes[i].runs) place(i);
    }
  }

  Units take(InterOp inter_op) && {
    if (inter_op != InterOp::sequential) {
      for (const UnitId unit : cost_ns_.indices()) {
        formed_.units[unit].is_expensive = cost_ns_[unit] >= worth_a_thread_ns;
      }
    }
    return std::move(formed_);
  }

 private:
  /// The units that a node depends on, and whether the set is whole: a set that costs too much to join is not.
  struct Needs {
    UnitSets::Id set = UnitSets::empty;
    bool is_exact = true;
  };

  Needs needs_of(const UnitNode& node) {
    Needs needs;
    for (std::int32_t p = node.producer_begin; p < node.producer_end && needs.is_exact; ++p) {
      const UnitSets::Id theirs = set_of_[static_cast<std::size_t>(producers_[static_cast<std::size_t>(p)])];
      if (theirs == needs.set || theirs == UnitSets::empty) continue;
      needs.is_exact = needs.set == UnitSets::empty || sets_.num_steps() < max_steps_;
      if (needs.is_exact) needs.set = sets_.join(needs.set, theirs);
    }
    return needs;
  }

  void place(std::size_t i) {
    const UnitNode& node = nodes_[i];
    Needs needs = needs_of(node);
    UnitId unit;
    if (node.is_async || !needs.is_exact || (side_by_side_ && node.cost_ns >= cheap_ns)) {
      unit = new_unit(node.is_async);
      // The unit's own number says as much as the whole set: a node that depends on the unit depends on all of the
      // set.
      const UnitSets::Id itself = sets_.single(num_alone_++);
      needs.set = needs.is_exact ? sets_.join(needs.set, itself) : itself;
    } else {
      const auto [found, is_new] = group_of_.try_emplace(needs.set);
      if (is_new) found->second = new_unit(false);
      unit = found->second;
    }
    set_of_[i] = needs.set;
    formed_.unit_of[i] = unit;
    cost_ns_[unit] += node.cost_ns;
  }

  UnitId new_unit(bool is_async) {
    const UnitId unit = formed_.units.end_index();
    formed_.units.push_back({is_async, false});
    cost_ns_.push_back(0);
    return unit;
  }

  std::span<const UnitNode> nodes_;
  std::span<const std::int32_t> producers_;
  bool side_by_side_;
  std::size_t max_steps_;
  UnitSets sets_;
  std::vector<UnitSets::Id> set_of_;  ///< the set that a node gives to the nodes that depend on it
  std::unordered_map<UnitSets::Id, UnitId> group_of_;
  IndexedVector<UnitId, double> cost_ns_;
  std::uint32_t num_alone_ = 0;
  Units formed_;
};

Units form_units(std::span<const UnitNode> nodes, std::span<const std::int32_t> producers, InterOp inter_op,
                 int num_threads) {
  if (is_sequential(nodes, inter_op, num_threads)) return one_unit(nodes);
  return UnitFormer(nodes, producers, runs_side_by_side(nodes, inter_op, num_threads)).take(inter_op);
}

}  // namespace dflow::detail
