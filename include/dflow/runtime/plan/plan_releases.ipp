#pragma once

#include <dflow/runtime/plan/plan.hpp>
#include <dflow/runtime/plan/plan_releases.hpp>

#include <utility>

namespace dflow::detail {

/// The readers of each slot.
struct SlotReaders {
  /// Instead of the unit that reads a slot.
  static constexpr UnitId unread = UnitId(-1), kept = UnitId(-2), shared = UnitId(-3);

  explicit SlotReaders(std::size_t num_slots)
      : unit(num_slots, unread), last(num_slots), count(num_slots, 0), times_read(num_slots) {}

  IndexedVector<SlotId, UnitId> unit;
  IndexedVector<SlotId, PlanNodeId> last;
  IndexedVector<SlotId, std::int32_t> count;       ///< of the nodes
  IndexedVector<SlotId, std::int32_t> times_read;  ///< by the node being looked at
};

inline SlotReaders find_readers(const PlanData& plan, const NodeOrder& order, const UnitOfNode& unit_of,
                                std::size_t holds_feeds_from) {
  SlotReaders readers(plan.num_slots);
  for (const auto& [slot, tensor] : plan.constants) readers.unit[slot] = SlotReaders::kept;
  for (const SlotId slot : plan.fetch_slots) readers.unit[slot] = SlotReaders::kept;
  for (std::size_t f = holds_feeds_from; f < plan.feed_slots.size(); ++f) {
    readers.unit[plan.feed_slots[f]] = SlotReaders::kept;
  }
  for (const PlanNodeId p : order.indices()) {
    const UnitId unit = unit_of[order[p]];
    for (const SlotId slot : plan.inputs_of(p)) {
      UnitId& seen = readers.unit[slot];
      if (seen == SlotReaders::kept) continue;
      seen = seen == SlotReaders::unread || seen == unit ? unit : SlotReaders::shared;
      if (readers.last[slot] != p) ++readers.count[slot];
      readers.last[slot] = p;
    }
  }
  return readers;
}

inline void release_after(PlanData& plan, PlanNodeId p, SlotReaders& readers, bool reuses_buffers) {
  PlanNode& planned = plan.nodes[p];
  planned.release_begin = static_cast<std::int32_t>(plan.released.size());
  planned.share_begin = static_cast<std::int32_t>(plan.shared_reads.size());
  const std::span<const SlotId> inputs = plan.inputs_of(p);
  for (const SlotId slot : inputs) ++readers.times_read[slot];
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const SlotId slot = inputs[k];
    const std::int32_t times_read = std::exchange(readers.times_read[slot], 0);  // at its later positions: 0
    if (times_read == 0 || readers.unit[slot] == SlotReaders::kept) continue;
    if (readers.unit[slot] == SlotReaders::shared) {
      plan.shared_reads.push_back(slot);
    } else if (readers.last[slot] == p) {
      plan.released.push_back(slot);
      if (reuses_buffers && k < 64 && times_read == 1) planned.wiring.forwardable |= std::uint64_t{1} << k;
    }
  }
  for (std::int32_t o = 0; o < planned.wiring.num_outputs; ++o) {
    const SlotId slot = planned.wiring.first_output + o;
    if (readers.unit[slot] == SlotReaders::unread) plan.released.push_back(slot);
  }
  planned.release_end = static_cast<std::int32_t>(plan.released.size());
  planned.share_end = static_cast<std::int32_t>(plan.shared_reads.size());
}

void plan_releases(PlanData& plan, const NodeOrder& order, const UnitOfNode& unit_of, const PlanOptions& options) {
  SlotReaders readers = find_readers(plan, order, unit_of, options.holds_feeds_from);
  plan.shared_read_counts.assign(plan.num_slots, 0);
  for (const SlotId slot : readers.count.indices()) {
    if (readers.unit[slot] == SlotReaders::shared) plan.shared_read_counts[slot] = readers.count[slot];
  }
  for (const PlanNodeId p : order.indices()) release_after(plan, p, readers, options.reuse_buffers);
}

/// New names of slots, by their old ones.
struct SlotRenaming {
  IndexedVector<SlotId, SlotId> new_slot;
  IndexedVector<SlotId, bool> is_pinned;  ///< of constants and feeds, by new name
  SlotId next{0};
};

inline void pin_slots(PlanData& plan, SlotRenaming& renaming) {
  const auto keep = [&](SlotId& slot) {
    SlotId& renamed = renaming.new_slot[slot];
    if (!renamed.is_valid()) renamed = renaming.next++;
    renaming.is_pinned[renamed] = true;
    slot = renamed;
  };
  for (auto& [slot, tensor] : plan.constants) keep(slot);
  for (SlotId& slot : plan.feed_slots) keep(slot);
}

/// An output takes a slot that its unit has let go of. Fetched ones keep a slot of their own, which stands in the run
/// of their node's outputs.
inline void rename_outputs(PlanData& plan, SlotRenaming& renaming) {
  std::vector<SlotId> free;
  IndexedVector<SlotId, UnitId> made_in(plan.num_slots);  // by old name
  for (const UnitId unit : plan.units.indices()) {
    free.clear();
    for (const PlanNodeId p : IndexRange(plan.units[unit].node_begin, plan.units[unit].node_end)) {
      PlanNode& node = plan.nodes[p];
      const SlotId first = node.wiring.first_output;
      const std::int32_t count = node.wiring.num_outputs;
      SlotId renamed = renaming.next;
      if (count == 1 && !free.empty()) {
        renamed = free.back();
        free.pop_back();
      } else {
        renaming.next += count;
      }
      for (std::int32_t o = 0; o < count; ++o) {
        renaming.new_slot[first + o] = renamed + o;
        made_in[first + o] = unit;
      }
      node.wiring.first_output = renamed;
      for (std::int32_t r = node.release_begin; r < node.release_end; ++r) {
        const SlotId slot = plan.released[static_cast<std::size_t>(r)], now = renaming.new_slot[slot];
        if (made_in[slot] == unit && !renaming.is_pinned[now]) free.push_back(now);
      }
    }
  }
}

void reuse_slots(PlanData& plan) {
  SlotRenaming renaming{IndexedVector<SlotId, SlotId>(plan.num_slots), IndexedVector<SlotId, bool>(plan.num_slots)};
  pin_slots(plan, renaming);
  rename_outputs(plan, renaming);
  IndexedVector<SlotId, std::int32_t> counts(plan.is_sequential ? 0 : renaming.next.position());
  for (const SlotId slot : plan.shared_read_counts.indices()) {
    if (plan.shared_read_counts[slot] != 0) counts[renaming.new_slot[slot]] = plan.shared_read_counts[slot];
  }
  for (std::vector<SlotId>* slots : {&plan.input_slots, &plan.fetch_slots, &plan.released, &plan.shared_reads}) {
    for (SlotId& slot : *slots) slot = renaming.new_slot[slot];
  }
  plan.shared_read_counts = std::move(counts);
  plan.num_slots = renaming.next.position();
}

void list_cleared_slots(PlanData& plan, const PlanOptions& options) {
  IndexedVector<SlotId, bool> stays(plan.num_slots);
  for (const auto& [slot, tensor] : plan.constants) stays[slot] = true;
  plan.holds_feeds_from = options.holds_feeds_from;
  for (std::size_t f = options.holds_feeds_from; f < plan.feed_slots.size(); ++f) {
    const SlotId slot = plan.feed_slots[f];
    if (!stays[slot]) plan.held_slots.push_back(slot);
    stays[slot] = true;
  }
  IndexedVector<SlotId, bool> is_taken = stays;
  if (plan.streams) {
    // A fetch may be taken while others have still to read its slot, and in any order.
    for (const SlotId slot : plan.input_slots) is_taken[slot] = true;
    IndexedVector<SlotId, bool> is_fetched(is_taken.size());
    for (const SlotId slot : plan.fetch_slots) {
      if (is_fetched[slot]) is_taken[slot] = true;
      is_fetched[slot] = true;
    }
  }
  plan.may_take_fetch.resize(plan.fetch_slots.size());
  for (std::size_t f = plan.fetch_slots.size(); f-- > 0;) {
    const SlotId slot = plan.fetch_slots[f];
    plan.may_take_fetch[f] = !is_taken[slot];
    is_taken[slot] = true;
  }
  for (const std::vector<SlotId>* slots : {&plan.feed_slots, &plan.fetch_slots}) {
    for (const SlotId slot : *slots) {
      if (!stays[slot]) plan.cleared_slots.push_back(slot);
    }
  }
}

}  // namespace dflow::detail
