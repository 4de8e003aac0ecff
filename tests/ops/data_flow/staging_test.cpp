#include <dflow/ops/data_flow/staging.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/dflow.hpp>
#include <dflow/runtime/cpu_device.hpp>

#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <vector>

using namespace dflow;

namespace {

const RunOptions soon{.deadline = std::chrono::milliseconds(10)};

/// An area of vectors of float, and the operations that a test runs on it.
struct Floats {
  explicit Floats(const StagingAreaOptions& options) : area(graph, options) {}

  void put(std::int64_t size, float value, const RunOptions& options = {}) {
    session.run(options, {{x, Tensor<float>::full({size}, value)}}, stage);
  }
  float take(const RunOptions& options = {}) { return session.run(options, {}, unstage).data()[0]; }
  int size() { return session.run(count).scalar(); }

  Graph graph;
  StagingArea<float> area;
  Output<float> x = placeholder<float>(graph, {dynamic}), unstage = area.unstage();
  Operation stage = area.stage(x), clear = area.clear();
  Output<std::int32_t> count = area.size();
  Session session{graph, SessionOptions{.num_threads = 1}};
};

}  // namespace

TEST_CASE("What is staged comes out in order, and who is early waits") {
  Graph graph;
  const StagingArea<float, std::string> area(graph, {.shapes = {{2}, {}}});
  const auto x = placeholder<float>(graph, {2});
  const auto text = placeholder<std::string>(graph, Shape{});
  const auto put = area.stage(x, text);
  const auto [y, label] = area.unstage();
  CHECK(y.shape() == PartialShape({2}));
  Session session(graph, {.num_threads = 1});
  auto early = std::async(std::launch::async, [&] { return session.run(label).scalar(); });
  session.run({{x, Tensor<float>({2}, {1, 2})}, {text, "first"}}, put);
  CHECK(early.get() == "first");
  session.run({{x, Tensor<float>({2}, {3, 4})}, {text, "second"}}, put);
  session.run({{x, Tensor<float>({2}, {5, 6})}, {text, "third"}}, put);
  const auto [value, name] = session.run(y, label);
  CHECK(value(1) == 4);
  CHECK(name.scalar() == "second");
  CHECK(session.run(area.size()).scalar() == 1);
}

TEST_CASE("A staging area holds as many elements as its capacity says") {
  Floats floats({.capacity = 2});
  floats.put(1, 1);
  floats.put(1, 2);
  CHECK(code_of([&] { floats.put(1, 3, soon); }) == Code::deadline_exceeded);
  CHECK(floats.size() == 2);
  auto waits = std::async(std::launch::async, [&] { floats.put(1, 4); });
  CHECK(floats.take() == 1);
  waits.get();
  CHECK(floats.take() == 2);
  CHECK(floats.take() == 4);
  CHECK(code_of([&] { floats.take(soon); }) == Code::deadline_exceeded);
}

TEST_CASE("A staging area holds as many bytes as its memory limit says") {
  Floats floats({.memory_limit = 40});
  floats.put(5, 1);
  floats.put(4, 2);
  CHECK(code_of([&] { floats.put(2, 3, soon); }) == Code::deadline_exceeded);
  floats.put(1, 4);
  CHECK(code_of([&] { floats.put(11, 5); }) == Code::resource_exhausted);
  auto waits = std::async(std::launch::async, [&] { floats.put(3, 6); });
  CHECK(floats.take() == 1);
  waits.get();
  CHECK(floats.size() == 3);
  for (const float value : {2.0f, 4.0f, 6.0f}) CHECK(floats.take() == value);
  for (int i = 0; i < 3; ++i) {  // elements that were taken no longer count
    floats.put(10, 7);
    CHECK(floats.take() == 7);
  }
  Graph graph;
  const StagingArea<std::string> words(graph, {.memory_limit = 100});
  const auto word = placeholder<std::string>(graph, Shape{});
  const auto put = words.stage(word);
  Session session(graph);
  CHECK(code_of([&] { session.run({{word, std::string(101, 'x')}}, put); }) == Code::resource_exhausted);
  session.run({{word, std::string(50, 'x')}}, put);
}

TEST_CASE("Clearing a staging area drops what it holds and makes room") {
  Floats floats({.capacity = 1, .memory_limit = 400});
  floats.put(100, 1);
  auto waits = std::async(std::launch::async, [&] { floats.put(100, 2); });
  while (waits.wait_for(std::chrono::seconds(0)) != std::future_status::ready) floats.session.run(floats.clear);
  waits.get();
  floats.session.run(floats.clear);
  CHECK(floats.size() == 0);
  floats.put(100, 3);
  CHECK(floats.take() == 3);
}

TEST_CASE("What does not fit a staging area is refused") {
  Graph graph;
  const StagingArea<float> area(graph, {.shapes = {{2}}});
  CHECK_THAT(error_of([&] {
               static_cast<void>(area.stage(constant(graph, Tensor<float>({3}, {1, 2, 3}))));
             }),
             Catch::Contains("component 0") && Catch::Contains("staging_test.cpp"));
  CHECK(code_of([&] { StagingArea<float>(graph, {.capacity = -1}); }) == Code::invalid_argument);
  CHECK(code_of([&] { StagingArea<float>(graph, {.memory_limit = -1}); }) == Code::invalid_argument);
  const auto x = placeholder<float>(graph, PartialShape::unknown());
  const auto put = area.stage(x);
  const auto device = std::make_shared<CpuDevice>(CpuDeviceOptions{});
  Session session(graph, {.devices = {device}});
  CHECK(code_of([&] { session.run({{x, Tensor<float>({3}, {1, 2, 3})}}, put); }) == Code::invalid_argument);
  CHECK(session.run(area.size()).scalar() == 0);
  const StagingArea<float> one(graph, {.capacity = 2, .shared_name = "both"});
  const StagingArea<float> other(graph, {.capacity = 3, .shared_name = "both"});
  session.run(one.size());
  CHECK_THROWS_WITH(session.run(other.size()), Catch::Contains("keeps StagingArea 'both'"));
}
