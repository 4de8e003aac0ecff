#include <dflow/session/step_cache.hpp>

#include <dflow/dflow.hpp>

#include "catch.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using namespace dflow;

namespace {

std::shared_ptr<CompiledStep> empty_step() { return std::make_shared<CompiledStep>(); }

/// Made at each compilation.
struct Compiled : Op<"Compiled", TypeList<float>> {
  static PartialShape infer(const Attrs&, PartialShape x) { return x; }
};
std::atomic<int> num_compiled{0};

}  // namespace

template <>
struct dflow::Kernel<Compiled, Cpu, float> {
  explicit Kernel(const KernelInit&) { ++num_compiled; }
  void operator()(KernelContext& context) const { context.set_output(0, context.input(0)); }
};

TEST_CASE("a step is found under its signature, and the first one put there stays", "[session][step_cache]") {
  StepCache cache({});
  CHECK(cache.find("a") == nullptr);
  const auto first = empty_step(), second = empty_step();
  CHECK(cache.insert("a", first) == first);
  CHECK(cache.insert("a", second) == first);
  CHECK(cache.find("a") == first);
  CHECK(cache.find("b") == nullptr);
  CHECK(cache.size() == 1);
}

TEST_CASE("what was run once goes before what was run again", "[session][step_cache]") {
  // A step without nodes counts as one.
  StepCache cache({.max_nodes_run_once = 4, .max_nodes = 100, .max_steps = 100});
  const auto trained = empty_step();
  cache.insert("train", trained);
  CHECK(cache.find("train") == trained);
  for (int i = 0; i < 1000; ++i) cache.insert(str_cat("once ", i), empty_step());
  CHECK(cache.find("train") == trained);
  CHECK(cache.find("once 0") == nullptr);
  CHECK(cache.find("once 999") != nullptr);
  CHECK(cache.size() <= 6);
}

TEST_CASE("of steps that were run again those used longest ago go first", "[session][step_cache]") {
  StepCache cache({.max_nodes_run_once = 100, .max_nodes = 6, .max_steps = 100});
  for (int i = 0; i < 6; ++i) {
    cache.insert(str_cat(i), empty_step());
    CHECK(cache.find(str_cat(i)) != nullptr);
  }
  CHECK(cache.find("0") != nullptr);
  cache.insert("new", empty_step());
  CHECK(cache.find("new") != nullptr);
  CHECK(cache.find("0") != nullptr);
  CHECK(cache.find("1") == nullptr);
  CHECK(cache.find("2") != nullptr);
}

TEST_CASE("the number of steps is bounded whatever their size", "[session][step_cache]") {
  for (const std::size_t max_steps : {0, 1, 2, 3, 8}) {
    StepCache cache({.max_steps = max_steps});
    for (int i = 0; i < 500; ++i) {
      cache.insert(str_cat(i), empty_step());
      CHECK(cache.find(str_cat(i)) != nullptr);
      cache.insert(str_cat("once ", i), empty_step());
      CHECK(cache.size() <= std::max<std::size_t>(max_steps, 1));
    }
    CHECK(cache.find("once 499") != nullptr);
  }
}

TEST_CASE("steps that take turns are kept though all others were run again", "[session][step_cache]") {
  StepCache cache({.max_steps = 4});
  for (int i = 0; i < 4; ++i) {
    cache.insert(str_cat(i), empty_step());
    CHECK(cache.find(str_cat(i)) != nullptr);
  }
  cache.insert("a", empty_step());
  cache.insert("b", empty_step());
  CHECK(cache.find("a") != nullptr);
  CHECK(cache.find("b") != nullptr);
  CHECK(cache.size() == 4);
}

TEST_CASE("a step that is dropped lives on where it is used", "[session][step_cache]") {
  StepCache cache({.max_nodes_run_once = 1, .max_nodes = 1, .max_steps = 1});
  const auto held = empty_step();
  cache.insert("held", held);
  const std::weak_ptr<CompiledStep> dropped = cache.insert("dropped", empty_step());
  for (int i = 0; i < 20; ++i) cache.insert(str_cat(i), empty_step());
  CHECK(dropped.expired());
  CHECK(cache.find("held") == nullptr);
  CHECK(held.use_count() == 1);
}

TEST_CASE("a cache may be used by several threads", "[session][step_cache]") {
  StepCache cache({.max_nodes_run_once = 8, .max_nodes = 8, .max_steps = 8});
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 2000; ++i) {
        const std::string signature = str_cat((i * (t + 1)) % 30);
        if (cache.find(signature) == nullptr && cache.insert(signature, empty_step()) == nullptr) ++wrong;
        if (i % 100 == 0) cache.release_idle_memory();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(cache.size() <= 8);
}

TEST_CASE("a session compiles a signature once and keeps its memory bounded as the graph grows",
          "[session][step_cache]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {});
  const auto y = apply<Compiled>(x);
  Session session(graph, {.ops = standard_ops + ops<Compiled>,
                          .num_threads = 1,
                          .step_cache = {.max_nodes_run_once = 20, .max_nodes = 100, .max_steps = 10}});
  num_compiled = 0;
  for (int i = 0; i < 10; ++i) CHECK(session.run({{x, 1.0f}}, y).scalar() == 1);
  CHECK(num_compiled == 1);
  const auto prepared = session.prepare(feeds(x), fetches(y));
  CHECK(num_compiled == 1);
  for (int i = 0; i < 200; ++i) {  // a node for each run
    const auto z = x * static_cast<float>(i);
    CHECK(session.run({{x, 1.0f}}, z).scalar() == static_cast<float>(i));
  }
  CHECK(session.run({{x, 1.0f}}, y).scalar() == 1);
  CHECK(num_compiled == 1);
  for (int i = 0; i < 200; ++i) {  // two runs of each
    const auto z = x * static_cast<float>(i);
    for (int k = 0; k < 2; ++k) CHECK(session.run({{x, 1.0f}}, z).scalar() == static_cast<float>(i));
  }
  CHECK(session.run({{x, 1.0f}}, y).scalar() == 1);
  CHECK(num_compiled == 2);
  CHECK(prepared(3.0f).scalar() == 3);
}

TEST_CASE("memory of idle steps is given back, and taken again when a step is run", "[session][step_cache]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {dynamic});
  const auto y = x * 2.0f;
  Session session(graph, {.num_threads = 2});
  const auto step = session.prepare(feeds(x), fetches(y));
  for (int i = 0; i < 3; ++i) {
    CHECK(step(Tensor<float>::full({100'000}, 1.0f))(99'999) == 2);
    session.release_memory();
  }
  std::atomic<bool> ends{false};
  std::thread releaser([&] {
    while (!ends) session.release_memory();
  });
  for (int i = 0; i < 500; ++i) CHECK(step(Tensor<float>::full({100}, 1.0f))(99) == 2);
  ends = true;
  releaser.join();
}
