#include <dflow/kernels/cpu/state/variable.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/base/threads/thread_pool.hpp>
#include <dflow/ops/math/matmul.hpp>
#include <dflow/ops/state/typed_variable.hpp>
#include <dflow/runtime/cpu_device.hpp>
#include <dflow/session/session.hpp>

#include <memory>
#include <thread>
#include <vector>

using namespace dflow;

namespace {

std::shared_ptr<Device> new_device() {
  return std::make_shared<CpuDevice>(CpuDeviceOptions{.pool = std::make_shared<InlinePool>()});
}

}  // namespace

TEST_CASE("Containers and names with slashes keep variables apart") {
  Graph graph;
  Variable<float> a(graph, 1.0f, {.name = "a", .container = "x", .shared_name = "y/z"});
  Variable<float> b(graph, 2.0f, {.name = "b", .container = "x/y", .shared_name = "z"});
  Session session(graph);
  session.run(a.initializer());
  CHECK(code_of([&] { session.run(b); }) == Code::failed_precondition);
  session.run(b.initializer());
  CHECK(session.run(a).scalar() == 1.0f);
}

TEST_CASE("After a reset every session finds the container's variables without a value, then shares them again") {
  Graph graph;
  Variable<float> w(graph, 1.0f, {.name = "w", .container = "weights"});
  Variable<float> other(graph, 5.0f, {.name = "other"});
  const auto bump = w.assign_add(constant(graph, 1.0f));
  const auto device = new_device();
  Session first(graph, {.devices = {device}}), second(graph, {.devices = {device}});
  first.run(initialize_variables(graph));
  first.run(bump);
  CHECK(second.run(w).scalar() == 2.0f);
  const auto held = first.run(w);

  CHECK(device->context().resources->reset("weights"));
  CHECK(code_of([&] { first.run(w); }) == Code::failed_precondition);
  CHECK(code_of([&] { second.run(w); }) == Code::failed_precondition);
  CHECK(code_of([&] { first.run(bump); }) == Code::failed_precondition);
  CHECK(first.run(other).scalar() == 5.0f);
  CHECK(held.scalar() == 2.0f);

  second.run(w.initializer());
  CHECK(first.run(w).scalar() == 1.0f);
  first.run(bump);
  CHECK(second.run(w).scalar() == 2.0f);
}

TEST_CASE("A variable that another session made anew in another type after a reset is refused") {
  const auto device = new_device();
  Graph floats, doubles;
  Variable<float> w(floats, 1.0f, {.name = "w"});
  Variable<double> v(doubles, 1.0, {.name = "w"});
  Session float_session(floats, {.devices = {device}}), double_session(doubles, {.devices = {device}});
  float_session.run(w.initializer());
  CHECK(code_of([&] { double_session.run(v.initializer()); }) == Code::invalid_argument);
  device->context().resources->reset("");
  double_session.run(v.initializer());
  CHECK(code_of([&] { float_session.run(w); }) == Code::invalid_argument);
  CHECK(double_session.run(v).scalar() == 1.0);
}

TEST_CASE("A value that contradicts the shape that a graph declares is not read there") {
  const auto device = new_device();
  Graph open, fixed;
  const auto fed = placeholder<float>(open, {dynamic, dynamic});
  const Variable<float> v(open, fed, {.name = "v"});
  const auto assign = v.assign(fed);
  const Variable<float> w(fixed, Tensor<float>({2, 2}, {1, 2, 3, 4}), {.name = "v"});
  const auto product = matmul(w, w);
  Session writer(open, {.devices = {device}}), reader(fixed, {.devices = {device}});
  writer.run({{fed, Tensor<float>({1, 1}, {5})}}, assign);
  CHECK(code_of([&] { reader.run(product); }) == Code::failed_precondition);
  CHECK_THROWS_WITH(reader.run(product), Catch::Matchers::Contains("[1,1]") && Catch::Matchers::Contains("[2,2]"));
  CHECK(writer.run(v).scalar() == 5.0f);
  writer.run({{fed, Tensor<float>({2, 2}, {1, 0, 0, 1})}}, assign);
  CHECK(reader.run(product)(1, 1) == 1.0f);
}

TEST_CASE("A value assigned without a look at its shape is read as it is") {
  Graph graph;
  const Variable<float> w(graph, Tensor<float>({2}, {1, 2}), {.name = "w"});
  const auto fed = placeholder<float>(graph);
  const auto assign = w.any_variable().assign(fed, {}, false);
  Session session(graph, {.devices = {new_device()}});
  session.run({{fed, Tensor<float>({3}, {1, 2, 3})}}, assign);
  CHECK(session.run(w).shape() == Shape{3});
  session.run(w.initializer());
  CHECK(session.run(w).shape() == Shape{2});
}

TEST_CASE("A value kept for a restart is refused if it is of another type or shape") {
  const auto device = new_device();
  Graph graph;
  const Variable<float> w(graph, Tensor<float>({4}, {1, 2, 3, 4}), {.name = "w"});
  Session session(graph, {.devices = {device}});
  session.run(w.initializer());
  const auto state = device->context().resources->container()->lookup<VariableState>("w");
  CHECK(code_of([&] { state->assign(Tensor<std::int8_t>({4}, {1, 2, 3, 4})); }) == Code::invalid_argument);
  CHECK(code_of([&] { state->assign(Tensor<float>({2, 2}, {1, 2, 3, 4})); }) == Code::invalid_argument);
  CHECK(session.run(w)(3) == 4.0f);
  state->assign(Tensor<float>({4}, {5, 6, 7, 8}));
  CHECK(session.run(w)(3) == 8.0f);
}

TEST_CASE("Resets beside steps leave each step with one variable or without a value", "[stress]") {
  Graph graph;
  Variable<float> w(graph, Tensor<float>::full({65}, 1.0f), {.name = "w"});
  const auto bump = w.assign_add(constant(graph, Tensor<float>::full({65}, 1.0f)));
  const auto device = new_device();
  Session session(graph, {.devices = {device}});
  session.run(w.initializer());
  std::vector<std::thread> threads;
  std::vector<int> wrong(2, 0);
  for (std::size_t t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 300; ++i) {
        const Code bumped = code_of([&] { session.run(bump); });
        const Code read = code_of([&] {
          const auto value = session.run(w);
          for (const float element : value) wrong[t] += element != value(0) ? 1 : 0;
        });
        for (const Code code : {bumped, read})
          wrong[t] += code != Code::ok && code != Code::failed_precondition ? 1 : 0;
      }
    });
  }
  for (int i = 0; i < 100; ++i) {
    device->context().resources->reset("");
    session.run(w.initializer());
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<int>(2, 0));
}
