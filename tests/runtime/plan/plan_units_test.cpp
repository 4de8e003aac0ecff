#include <dflow/runtime/plan/plan_units.hpp>

#include "catch.hpp"

#include <random>
#include <set>
#include <vector>

using namespace dflow;
using detail::form_units;
using detail::UnitNode;
using detail::Units;

namespace {

/// Nodes with their producers.
struct Nodes {
  std::vector<UnitNode> nodes;
  std::vector<std::int32_t> producers;

  int add(std::vector<std::int32_t> from, double cost_ns = 100, bool is_async = false, bool splits = false) {
    UnitNode node;
    node.runs = true;
    node.is_async = is_async;
    node.splits = splits;
    node.cost_ns = cost_ns;
    node.producer_begin = static_cast<std::int32_t>(producers.size());
    producers.insert(producers.end(), from.begin(), from.end());
    node.producer_end = static_cast<std::int32_t>(producers.size());
    nodes.push_back(node);
    return static_cast<int>(nodes.size()) - 1;
  }
  Units form(InterOp inter_op, int num_threads = 4) const {
    return form_units(nodes, producers, inter_op, num_threads);
  }
};

/// Every node that runs has a unit, each asynchronous node has a unit of its own, and units have no cycle.
void check_sound(const Nodes& nodes, const Units& units) {
  IndexedVector<UnitId, int> size(units.units.size());
  std::set<std::pair<UnitId, UnitId>> edges;
  for (std::size_t i = 0; i < nodes.nodes.size(); ++i) {
    const UnitNode& node = nodes.nodes[i];
    const UnitId unit = units.unit_of[i];
    if (!node.runs) {
      CHECK(unit == UnitId());
      continue;
    }
    REQUIRE((unit.is_valid() && unit < units.units.end_index()));
    ++size[unit];
    for (std::int32_t p = node.producer_begin; p < node.producer_end; ++p) {
      const UnitId from = units.unit_of[static_cast<std::size_t>(nodes.producers[static_cast<std::size_t>(p)])];
      if (from.is_valid() && from != unit) edges.emplace(from, unit);
    }
  }
  for (std::size_t i = 0; i < nodes.nodes.size(); ++i) {
    if (!nodes.nodes[i].runs || !nodes.nodes[i].is_async) continue;
    CHECK(size[units.unit_of[i]] == 1);
    CHECK(units.units[units.unit_of[i]].is_async);
  }
  // Kahn's algorithm takes all units.
  IndexedVector<UnitId, int> pending(units.units.size());
  for (const auto& [from, to] : edges) ++pending[to];
  std::vector<UnitId> ready;
  for (const UnitId unit : pending.indices()) {
    if (pending[unit] == 0) ready.push_back(unit);
  }
  std::size_t taken = 0;
  while (!ready.empty()) {
    const UnitId unit = ready.back();
    ready.pop_back();
    ++taken;
    for (auto edge = edges.lower_bound({unit, UnitId(0)}); edge != edges.end() && edge->first == unit; ++edge) {
      if (--pending[edge->second] == 0) ready.push_back(edge->second);
    }
  }
  CHECK(taken == units.units.size());
}

/// No node waits, because of other nodes in its unit, for an asynchronous node that it does not depend on itself.
void check_exact(const Nodes& nodes, const Units& units) {
  using Set = std::set<std::int32_t>;
  std::vector<Set> needs(nodes.nodes.size());
  for (std::size_t i = 0; i < nodes.nodes.size(); ++i) {
    const UnitNode& node = nodes.nodes[i];
    if (!node.runs) continue;
    for (std::int32_t p = node.producer_begin; p < node.producer_end; ++p) {
      const auto from = static_cast<std::size_t>(nodes.producers[static_cast<std::size_t>(p)]);
      if (!nodes.nodes[from].runs) continue;
      needs[i].insert(needs[from].begin(), needs[from].end());
      if (nodes.nodes[from].is_async) needs[i].insert(static_cast<std::int32_t>(from));
    }
  }
  IndexedVector<UnitId, const Set*> of_unit(units.units.size());
  std::size_t num_wrong = 0;
  for (std::size_t i = 0; i < nodes.nodes.size(); ++i) {
    if (!nodes.nodes[i].runs) continue;
    const Set*& first = of_unit[units.unit_of[i]];
    if (first == nullptr) first = &needs[i];
    if (*first != needs[i]) ++num_wrong;
  }
  CHECK(num_wrong == 0);
}

}  // namespace

TEST_CASE("without asynchronous nodes a sequential step is one unit", "[runtime][units]") {
  Nodes nodes;
  const int a = nodes.add({}, 1e6), b = nodes.add({}, 1e6);
  nodes.add({a, b});
  const Units units = nodes.form(InterOp::sequential);
  CHECK(units.is_sequential);
  CHECK(units.units.size() == 1);
  check_sound(nodes, units);
  CHECK(Nodes().form(InterOp::parallel).units.empty());
}

TEST_CASE("a graph with one receive has three units, whatever its size", "[runtime][units]") {
  for (const int size : {4, 1000}) {
    Nodes nodes;
    const int receive = nodes.add({}, 100, true);
    int before = nodes.add({}), after = nodes.add({receive});
    for (int i = 0; i < size; ++i) {
      before = nodes.add({before});
      after = nodes.add({after, before});
    }
    const Units units = nodes.form(InterOp::sequential);
    CHECK(!units.is_sequential);
    CHECK(units.units.size() == 3);
    check_sound(nodes, units);
  }
}

TEST_CASE("independent expensive nodes that do not split are worth threads, others not", "[runtime][units]") {
  Nodes heavy, splitting, light, chain;
  for (int i = 0; i < 4; ++i) {
    heavy.add({}, 1e6);
    splitting.add({}, 1e6, false, true);
    light.add({}, 100);
  }
  CHECK(!heavy.form(InterOp::automatic).is_sequential);
  CHECK(heavy.form(InterOp::automatic).units.size() == 4);
  CHECK(heavy.form(InterOp::automatic, 1).is_sequential);
  CHECK(splitting.form(InterOp::automatic).is_sequential);
  CHECK(light.form(InterOp::automatic).is_sequential);
  const Units parallel = light.form(InterOp::parallel);
  CHECK(parallel.units.size() == 1);  // cheap nodes share one
  for (const auto& unit : heavy.form(InterOp::parallel).units) CHECK(unit.is_expensive);
  for (const auto& unit : heavy.form(InterOp::sequential).units) CHECK(unit.is_expensive);
}

TEST_CASE("nodes that do not run belong to no unit", "[runtime][units]") {
  Nodes nodes;
  const int fed = nodes.add({});
  nodes.nodes[0].runs = false;
  nodes.add({fed});
  const Units units = nodes.form(InterOp::parallel);
  CHECK(units.unit_of[0] == UnitId());
  CHECK(units.unit_of[1] == UnitId(0));
}

TEST_CASE("units of random graphs have no cycle, and wait for no more than they need", "[runtime][units]") {
  std::mt19937_64 rng(5);
  for (int round = 0; round < 100; ++round) {
    Nodes nodes;
    const int count = 1 + static_cast<int>(rng() % (round % 10 == 0 ? 3000 : 200));
    for (int i = 0; i < count; ++i) {
      std::vector<std::int32_t> from;
      for (int k = static_cast<int>(rng() % 3); k > 0 && i > 0; --k) {
        const int window = std::min(i, round % 2 == 0 ? 20 : i);
        from.push_back(i - 1 - static_cast<int>(rng() % static_cast<std::uint64_t>(window)));
      }
      const auto kind = rng() % 4;
      nodes.add(from, kind == 0 ? 1e5 : 100, kind == 1, rng() % 2 == 0);
      if (rng() % 20 == 0) nodes.nodes.back().runs = false;
    }
    // A node that does not run depends on nothing; other nodes depend on it as on a feed.
    for (const InterOp inter_op : {InterOp::automatic, InterOp::sequential, InterOp::parallel}) {
      INFO("round " << round);
      const Units units = nodes.form(inter_op);
      check_sound(nodes, units);
      if (round % 10 != 0) check_exact(nodes, units);
    }
  }
}

// The sender of a later receive may depend, by way of another part, on nodes that follow the earlier receives.
TEST_CASE("what waits for one receive waits for no other, however many there are", "[runtime][units]") {
  Nodes nodes;
  constexpr int count = 1500;
  for (int i = 0; i < count; ++i) {
    const int receive = nodes.add({}, 100, true);
    const int send = nodes.add({nodes.add({nodes.add({receive})})}, 100, true);
    static_cast<void>(send);
  }
  const Units units = nodes.form(InterOp::sequential);
  CHECK(units.units.size() == 3 * count);
  check_sound(nodes, units);
  check_exact(nodes, units);
}

TEST_CASE("a chain through thousands of receives has a unit for each stretch", "[runtime][units]") {
  Nodes nodes;
  constexpr int count = 10000;
  int last = nodes.add({});
  for (int i = 0; i < count; ++i) {
    const int receive = nodes.add({}, 100, true);
    last = nodes.add({last, receive});
    for (int k = 0; k < 8; ++k) last = nodes.add({last, receive});
  }
  const Units units = nodes.form(InterOp::sequential);
  CHECK(units.units.size() == 1 + 2 * count);
  check_sound(nodes, units);
}

TEST_CASE("thousands of receives mixed at random cost units, not time", "[runtime][units]") {
  std::mt19937_64 rng(7);
  Nodes nodes;
  constexpr int count = 30000, receives = 5000;
  for (int i = 0; i < receives; ++i) nodes.add({}, 100, true);
  const auto any = [&] { return static_cast<std::int32_t>(rng() % nodes.nodes.size()); };
  while (nodes.nodes.size() < count) {
    const int joined = nodes.add({any(), any(), any()}, 100, rng() % 10 == 0);
    nodes.add({nodes.add({joined}), joined});
  }
  const Units units = nodes.form(InterOp::sequential);
  check_sound(nodes, units);
  // A node that is alone after a joining node still shares a unit.
  CHECK(units.units.size() <= receives + 2 * (nodes.nodes.size() - receives) / 3);
}

TEST_CASE("where sets cost too much, units are still exact", "[runtime][units]") {
  std::mt19937_64 rng(11);
  Nodes nodes;
  for (int i = 0; i < 4000; ++i) nodes.add({}, 100, true);
  const auto any = [&] { return static_cast<std::int32_t>(rng() % nodes.nodes.size()); };
  while (nodes.nodes.size() < 4600) {
    std::vector<std::int32_t> from;
    for (int k = 0; k < 64; ++k) from.push_back(any());
    const int joined = nodes.add(from, 100, rng() % 4 == 0);
    nodes.add({joined});
    nodes.add({joined});
  }
  const Units units = nodes.form(InterOp::sequential);
  check_sound(nodes, units);
  check_exact(nodes, units);
}
