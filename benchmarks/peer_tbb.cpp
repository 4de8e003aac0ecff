// oneTBB's side of `benchmarks/contest.py dispatch`: flow graphs of nodes that do nothing. usage: bench_peer_tbb
// THREADS
#include "contestant.hpp"

#include <tbb/flow_graph.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <random>

namespace {

using Node = tbb::flow::continue_node<tbb::flow::continue_msg>;

struct FlowGraph {
  tbb::flow::graph graph;
  std::vector<std::unique_ptr<Node>> nodes;
};

void build(FlowGraph& flow, const std::string& kind, std::size_t size) {
  std::mt19937 random(1);
  auto& nodes = flow.nodes;
  for (std::size_t i = 0; i < size; ++i) {
    nodes.push_back(
        std::make_unique<Node>(flow.graph, [](const tbb::flow::continue_msg&) { return tbb::flow::continue_msg{}; }));
    const auto after = [&](std::size_t from) { tbb::flow::make_edge(*nodes[from], *nodes[i]); };
    if (i == 0) continue;
    if (kind == "chain") after(i - 1);
    if (kind == "fan-out") after(0);
    if (kind == "random") {
      const std::size_t low = i > 1000 ? i - 1000 : 0;
      for (std::size_t j = 0; j < std::min<std::size_t>(2, i); ++j) after(low + random() % (i - low));
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
  tbb::global_control control(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(threads));
  tbb::task_arena arena(threads);
  dflow::bench::Contestant rows;
  for (const std::size_t size : {10'000, 100'000}) {
    for (const char* kind : {"chain", "fan-out", "random"}) {
      rows.row(kind + (" " + std::to_string(size)), [&arena, kind, size] {
        auto flow = std::make_shared<FlowGraph>();
        arena.execute([&] { build(*flow, kind, size); });
        return [&arena, flow] {
          arena.execute([&] {
            flow->nodes.front()->try_put({});
            flow->graph.wait_for_all();
          });
        };
      });
    }
  }
  return rows.serve();
}
