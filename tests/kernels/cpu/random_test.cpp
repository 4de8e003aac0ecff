#include <dflow/kernels/cpu/random/random.hpp>

#include "catch.hpp"

#include <dflow/base/threads/thread_pool.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/math/binary.hpp>
#include <dflow/ops/nn/dropout.hpp>
#include <dflow/runtime/cpu_device.hpp>
#include <dflow/session/session.hpp>

#include <atomic>
#include <memory>
#include <vector>

using namespace dflow;

namespace {

std::shared_ptr<Device> new_device(std::function<std::uint64_t()> draw_seed = nullptr) {
  return std::make_shared<CpuDevice>(
      CpuDeviceOptions{.pool = std::make_shared<InlinePool>(), .draw_seed = std::move(draw_seed)});
}

std::vector<std::shared_ptr<RandomStream>> streams_of(const Device& device) {
  std::vector<std::shared_ptr<RandomStream>> streams;
  const auto container = device.context().resources->container(RandomStream::container_name);
  for (const std::string& name : container->names()) streams.push_back(container->lookup<RandomStream>(name));
  return streams;
}

/// Every random op of the library at once.
struct Draws {
  Graph graph;
  Output<float> uniform, normal, truncated, dropped;
  Output<std::int32_t> integers;

  explicit Draws(std::uint64_t seed) : graph({.seed = seed}) {
    uniform = random_uniform<float>(graph, {5});
    normal = random_normal<float>(graph, {5});
    truncated = truncated_normal<float>(graph, {5});
    integers = random_uniform_int<std::int32_t>(graph, {5}, {.minval = 0, .maxval = 1000000});
    dropped = dropout(constant(graph, Tensor<float>::full({64}, 1.0f)), 0.5f);
  }
  auto run(Session& session) const { return session.run(uniform, normal, truncated, integers, dropped); }
};

bool all_equal(const auto& a, const auto& b) {
  return bitwise_equal(std::get<0>(a), std::get<0>(b)) && bitwise_equal(std::get<1>(a), std::get<1>(b)) &&
         bitwise_equal(std::get<2>(a), std::get<2>(b)) && bitwise_equal(std::get<3>(a), std::get<3>(b)) &&
         bitwise_equal(std::get<4>(a), std::get<4>(b));
}

}  // namespace

TEST_CASE("streams set back to where they stood draw the same numbers again") {
  const std::uint64_t seed = GENERATE(0u, 7u);
  const Draws draws(seed);
  const auto device = new_device();
  Session session(draws.graph, {.devices = {device}});
  draws.run(session);
  const auto streams = streams_of(*device);
  REQUIRE(streams.size() == 5);
  std::vector<std::uint64_t> positions;
  for (const auto& stream : streams) positions.push_back(stream->position());
  const auto first = draws.run(session);
  const auto next = draws.run(session);
  CHECK_FALSE(all_equal(first, next));
  for (std::size_t i = 0; i < streams.size(); ++i) streams[i]->set_position(positions[i]);
  CHECK(all_equal(draws.run(session), first));
  CHECK(all_equal(draws.run(session), next));
}

TEST_CASE("a stream's state carries over to another process, where nothing was seeded too") {
  const Draws draws(0);
  const auto device = new_device(), resumed = new_device();
  Session session(draws.graph, {.devices = {device}}), resumed_session(draws.graph, {.devices = {resumed}});
  draws.run(session);
  draws.run(resumed_session);
  const auto from = streams_of(*device), to = streams_of(*resumed);
  REQUIRE(from.size() == to.size());
  for (std::size_t i = 0; i < from.size(); ++i) to[i]->set_state(from[i]->state());
  CHECK(all_equal(draws.run(session), draws.run(resumed_session)));
}

TEST_CASE("a node has one stream in all steps and sessions of its device") {
  Graph graph({.seed = 3});
  const auto x = random_uniform<float>(graph, {4});
  const auto twice = Output<float>(build<Mul>({x, constant(graph, 2.0f)}).output(0));
  std::vector<Tensor<float>> alone;
  {
    Session session(graph, {.num_threads = 1});
    for (int i = 0; i < 3; ++i) alone.push_back(session.run(x));
  }
  const auto device = new_device();
  Session session(graph, {.devices = {device}});
  CHECK(bitwise_equal(session.run(x), alone[0]));
  CHECK(session.run(twice)(3) == 2 * alone[1](3));
  Session other(graph, {.devices = {device}});
  CHECK(bitwise_equal(other.run(x), alone[2]));
}

TEST_CASE("nodes of one name and other seeds in two graphs of a device do not meet") {
  const auto device = new_device();
  const auto draw = [&](std::uint64_t seed) {
    Graph graph;
    const auto x = random_uniform<float>(graph, {4}, {.seed = seed});
    Session session(graph, {.devices = {device}});
    return session.run(x);
  };
  const Tensor<float> five = draw(5), six = draw(6);
  CHECK_FALSE(bitwise_equal(five, six));
  CHECK_FALSE(bitwise_equal(five, draw(5)));
}

TEST_CASE("streams begin again after their container was reset") {
  const Draws draws(11);
  const auto device = new_device();
  Session session(draws.graph, {.devices = {device}});
  const auto first = draws.run(session);
  draws.run(session);
  device->context().resources->reset(RandomStream::container_name);
  CHECK(all_equal(draws.run(session), first));
}

TEST_CASE("seeds that nobody gave come from the source that the session or the device was given") {
  const auto counting = [](std::atomic<int>& calls) {
    return [&calls] { return static_cast<std::uint64_t>(++calls) * 0x9E3779B97F4A7C15u; };
  };
  const Draws draws(0);
  std::atomic<int> calls{0}, again{0}, more{0};
  Session session(draws.graph, {.num_threads = 1, .draw_seed = counting(calls)});
  const auto first = draws.run(session);
  CHECK(calls == 10);
  draws.run(session);
  CHECK(calls == 10);
  Session same(draws.graph, {.devices = {new_device(counting(again))}});
  CHECK(all_equal(draws.run(same), first));
  Session system(draws.graph, {.num_threads = 1});
  CHECK_FALSE(all_equal(draws.run(system), first));
  const Draws seeded(1);
  Session unasked(seeded.graph, {.devices = {new_device(counting(more))}});
  seeded.run(unasked);
  CHECK(more == 0);
}
