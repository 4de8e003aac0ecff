// Random programs of branches, loops, functions and recursions, nested, beside the same programs in plain C++.
#include <dflow/dflow.hpp>

#include "catch.hpp"

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

using namespace dflow;

namespace {

/// SplitMix64's mixing: numbers of a place in a program, the same each time it is built.
class ProgramPlace {
 public:
  explicit ProgramPlace(std::uint64_t seed) : seed_(seed) {}
  std::uint64_t number(std::uint64_t which, std::uint64_t below) const {
    std::uint64_t z = seed_ + (which + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (z ^ (z >> 31)) % below;
  }
  ProgramPlace inner(std::uint64_t which) const { return ProgramPlace(number(which + 1000, ~std::uint64_t{0})); }

 private:
  std::uint64_t seed_;
};

/// The parts of programs. Values stay between -1 and 1.
enum class Piece { mix, branch, choice, loop, two_variables, call, recursion, rows };
constexpr std::uint64_t num_pieces = 8;

using ProgramEdge = Output<float>;

/// The program at a place, of the values around it, as a graph.
struct GraphProgram {
  Graph& graph;

  static ProgramEdge pick(const ProgramPlace& place, std::uint64_t which, const std::vector<ProgramEdge>& pool) {
    return pool[place.number(which, pool.size())];
  }
  static std::vector<ProgramEdge> with(std::vector<ProgramEdge> pool, const ProgramEdge& value) {
    pool.push_back(value);
    return pool;
  }

  // NOLINTNEXTLINE(misc-no-recursion)
  ProgramEdge build(const ProgramPlace& place, int depth, const std::vector<ProgramEdge>& pool) const {
    const ProgramEdge a = pick(place, 0, pool), b = pick(place, 1, pool);
    if (depth == 0) return a;
    const auto part = [&](std::uint64_t which, const std::vector<ProgramEdge>& of) {
      return build(place.inner(which), depth - 1, of);
    };
    const auto count = static_cast<std::int32_t>(place.number(2, 4));
    // The options change how the program runs, not its values.
    const WhileOptions of_loop{.max_kept_bytes = static_cast<std::int64_t>(place.number(4, 2)) - 1};
    const FunctionOptions of_function{.shapes = {PartialShape({})}, .is_inlined = place.number(5, 2) == 0};
    switch (static_cast<Piece>(place.number(3, num_pieces))) {
      case Piece::mix:
        return tanh(part(0, pool) * part(1, pool) + a);
      case Piece::branch:
        return cond(
            a < b, [&] { return part(0, pool); }, [&] { return ProgramEdge(part(1, pool) * a); });
      case Piece::choice:
        return case_of(cast<std::int32_t>(a * 3.0f + 1.5f),
                       std::tuple{[&] { return part(0, pool); }, [&] { return b; }, [&] { return part(1, pool); }});
      case Piece::loop: {
        auto [i, v] = while_loop([&](auto i, auto) { return i < count; },
                                 [&](auto i, auto v) {
                                   return std::tuple{i + 1, ProgramEdge(tanh(part(0, with(pool, v))))};
                                 },
                                 std::tuple{constant(graph, 0), a}, of_loop);
        return v;
      }
      case Piece::two_variables: {
        // The loop ends by its values. The new value of one variable is the old value of the other.
        auto [i, u, v] = while_loop([&](auto i, auto u, auto v) { return logical_and(i < count + 1, u - v < 0.9f); },
                                    [&](auto i, auto u, auto v) {
                                      return std::tuple{i + 1, v, ProgramEdge(part(0, with(with(pool, u), v)) * 0.5f)};
                                    },
                                    std::tuple{constant(graph, 0), a, b}, of_loop);
        return tanh(u + v);
      }
      case Piece::call: {
        const auto f = function(
            graph, "f", [&](ProgramEdge u) { return part(0, with(pool, u)); }, of_function);
        return count % 2 == 0 ? f(part(1, pool)) : ProgramEdge(tanh(f(a) - f(b)));
      }
      case Piece::recursion: {
        const auto f = recursive_function<ProgramEdge(ProgramEdge, Output<std::int32_t>)>(
            graph, "r",
            [&](const auto& self, ProgramEdge u, Output<std::int32_t> k) {
              return cond(
                  k < 1, [&] { return u; }, [&] { return ProgramEdge(tanh(self(part(0, with(pool, u)), k - 1) + u)); });
            },
            {.shapes = {PartialShape({}), PartialShape({})}, .result_shapes = {PartialShape({})}});
        return f(b, constant(graph, count));
      }
      case Piece::rows:
        return reduce_mean(map([&](auto row) { return part(0, with(pool, row)); }, pack({a, b, a})));
    }
    return a;
  }
};

/// The same in float.
struct PlainProgram {
  static float pick(const ProgramPlace& place, std::uint64_t which, const std::vector<float>& pool) {
    return pool[place.number(which, pool.size())];
  }
  static std::vector<float> with(std::vector<float> pool, float value) {
    pool.push_back(value);
    return pool;
  }

  // NOLINTNEXTLINE(misc-no-recursion)
  static float run(const ProgramPlace& place, int depth, const std::vector<float>& pool) {
    const float a = pick(place, 0, pool), b = pick(place, 1, pool);
    if (depth == 0) return a;
    const auto part = [&](std::uint64_t which, const std::vector<float>& of) {
      return run(place.inner(which), depth - 1, of);
    };
    const auto count = static_cast<int>(place.number(2, 4));
    switch (static_cast<Piece>(place.number(3, num_pieces))) {
      case Piece::mix:
        return std::tanh(part(0, pool) * part(1, pool) + a);
      case Piece::branch:
        return a < b ? part(0, pool) : part(1, pool) * a;
      case Piece::choice: {
        const int which = static_cast<int>(a * 3.0f + 1.5f);
        return which == 1 ? b : part(which == 0 ? 0 : 1, pool);
      }
      case Piece::loop: {
        float v = a;
        for (int i = 0; i < count; ++i) v = std::tanh(part(0, with(pool, v)));
        return v;
      }
      case Piece::two_variables: {
        float u = a, v = b;
        for (int i = 0; i < count + 1 && u - v < 0.9f; ++i) {
          const float next = part(0, with(with(pool, u), v)) * 0.5f;
          u = v;
          v = next;
        }
        return std::tanh(u + v);
      }
      case Piece::call: {
        const auto f = [&](float u) { return part(0, with(pool, u)); };
        return count % 2 == 0 ? f(part(1, pool)) : std::tanh(f(a) - f(b));
      }
      case Piece::recursion:
        return recurse(b, count, [&](float u) { return part(0, with(pool, u)); });
      case Piece::rows: {
        const auto f = [&](float row) { return part(0, with(pool, row)); };
        return (f(a) + f(b) + f(a)) / 3.0f;
      }
    }
    return a;
  }
  // NOLINTNEXTLINE(misc-no-recursion)
  static float recurse(float u, int k, const auto& part) {
    return k < 1 ? u : std::tanh(recurse(part(u), k - 1, part) + u);
  }
};

/// Programs run on one device, or with a third of their nodes spread over three.
enum class Spread { no, yes };

std::vector<SessionOptions> sessions_of_programs(Spread spread) {
  std::vector<SessionOptions> all;
  for (const int num_threads : {1, 3}) {
    for (const auto& [lowers, raises] : {std::pair(false, false), std::pair(true, false), std::pair(true, true)}) {
      SessionOptions options;
      options.num_threads = num_threads;
      if (spread == Spread::yes) options.num_cpu_devices = 3;
      options.passes.lower_control_flow = lowers;
      options.passes.raise_control_flow = raises;
      options.passes.constant_folding = options.passes.common_subexpressions = num_threads == 3;
      all.push_back(options);
    }
  }
  return all;
}

/// A device for plain nodes. Nodes that hold lists of values or make calls stay where they would be.
std::string random_device(const ProgramPlace& place, const Node& node) {
  const bool is_plain = node.op->role == OpRole::ordinary && !node.op->is_stateful &&
                        node.op->name.find("List") == std::string_view::npos &&
                        node.op->name.find("Kept") == std::string_view::npos;
  const std::uint64_t device = place.number(std::hash<std::string>()(node.name) % 1024, 9);
  return is_plain && device < 3 ? "/cpu:" + std::to_string(device) : "";
}

struct ProgramCounts {
  std::size_t values = 0, slopes = 0;
};

void check_random_program(std::uint64_t p, Spread spread, ProgramCounts& counts) {
  INFO("program " << p << (spread == Spread::yes ? ", spread" : "") << ": DFLOW_RANDOM_PROGRAM=" << p);
  const int depth = 1 + static_cast<int>(p % 4);
  Graph graph({.seed = 1});
  const auto x = placeholder<float>(graph, {}), y = placeholder<float>(graph, {});
  const bool has_slope = depth < 4;
  std::vector<ProgramEdge> wanted;
  {
    const auto places = spread == Spread::yes
                            ? graph.device([p](const Node& node) { return random_device(ProgramPlace(p + 77), node); })
                            : graph.device("");
    const ProgramEdge value = GraphProgram{graph}.build(ProgramPlace(p), depth, {x, y});
    wanted.push_back(ProgramEdge(value * 1.0f));
    if (has_slope) {
      for (const ProgramEdge& each : {ProgramEdge(x), ProgramEdge(y)}) wanted.push_back(gradients(value, each));
    }
  }
  std::vector<std::vector<float>> first;
  for (const SessionOptions& options : sessions_of_programs(spread)) {
    Session session(graph, options);
    std::size_t at = 0;
    for (const auto& [u, v] : {std::pair(0.3f, -0.7f), std::pair(-0.5f, 0.2f), std::pair(0.9f, 0.8f)}) {
      std::vector<float> got;
      for (const ProgramEdge& each : wanted) got.push_back(session.run({{x, u}, {y, v}}, each).scalar());
      CHECK(got[0] == Approx(PlainProgram::run(ProgramPlace(p), depth, {u, v})).margin(2e-5));
      ++counts.values;
      if (first.size() <= at) {
        first.push_back(got);
      } else {
        for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == Approx(first[at][i]).margin(2e-5));
      }
      ++at;
      if (!has_slope) continue;
      // Along x, where no branch is near.
      constexpr float step = 1e-2f;
      const auto moved = [&](float by) { return PlainProgram::run(ProgramPlace(p), depth, {u + by, v}); };
      const float wide = (moved(step) - moved(-step)) / (2 * step);
      const float narrow = (moved(step / 2) - moved(-step / 2)) / step;
      if (std::abs(wide - narrow) > 1e-3f + 1e-2f * std::abs(wide)) continue;
      CHECK(got[1] == Approx(narrow).epsilon(0.02).margin(5e-3));
      ++counts.slopes;
    }
  }
}

/// As many programs as DFLOW_RANDOM_PROGRAMS says, or only the program of DFLOW_RANDOM_PROGRAM.
void check_random_programs(Spread spread) {
  const char* const asked = std::getenv("DFLOW_RANDOM_PROGRAMS");
  const std::uint64_t num_programs = asked == nullptr ? 60 : std::strtoull(asked, nullptr, 10);
  const char* const only = std::getenv("DFLOW_RANDOM_PROGRAM");
  ProgramCounts counts;
  for (std::uint64_t p = 0; p < num_programs; ++p) {
    if (only == nullptr || p == std::strtoull(only, nullptr, 10)) check_random_program(p, spread, counts);
  }
  std::cout << "count: " << num_programs << " random programs, " << counts.values << " values, " << counts.slopes
            << " slopes\n";
}

}  // namespace

TEST_CASE("random programs of branches, loops and functions give what plain C++ gives, in all forms", "[frames]") {
  check_random_programs(Spread::no);
}

TEST_CASE("random programs give the same when their nodes are spread over three devices", "[split]") {
  check_random_programs(Spread::yes);
}
