// Collectives between GPUs, and training on several GPUs.
#include "cuda/gpu_that_is_none.hpp"

#include "support/collective_members.hpp"
#include "support/errors.hpp"

#include <dflow/dflow.hpp>
#include <dflow/train/replicas/mirrored_replicas.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace dflow;
using namespace dflow::testing;

namespace {

/// The element types that a GPU reduces members by.
using GpuMemberTypes = TypeList<float, double, Half, BFloat16, std::int32_t, std::uint8_t, std::complex<float>>;

}  // namespace

TEST_CASE("collectives between two and three GPUs give the values of the CPU, and nothing is out of order", "[cuda]") {
  for (const int gpus : {2, 3}) {
    for_each_type<GpuMemberTypes>([&]<class T>() {
      const auto driver = std::make_shared<FakeDriver>(FakeDriverOptions{.devices = gpus});
      {
        Graph graph;
        const auto count = static_cast<std::size_t>(gpus);
        std::vector<Members<T>> members;
        for (const Shape& shape : {Shape{2, 3}, Shape{0}, Shape{}, Shape{3, 30001}}) {
          members.emplace_back(graph, member_devices("GPU", count, count), shape);
        }
        members.emplace_back(graph, member_devices("GPU", count, count), Shape{7}, false);
        // One member in the host's memory.
        auto names = member_devices("GPU", count, count);
        names.emplace_back("/cpu:0");
        members.emplace_back(graph, names, Shape{300, 301});
        Session session(graph, {.devices = gpus_and_cpu(driver, gpus)});
        for (const Members<T>& each : members) {
          INFO(gpus << " GPUs, " << dtype_name(dtype_of<T>) << " " << each.tensors[0].shape().to_string());
          for (const ReduceBy reduction : all_reductions) {
            if (!can_reduce<T>(reduction)) continue;
            const Tensor<T> wanted = reduced(each.tensors, reduction);
            for (const auto& result : results_of(session, each.feeds(), all_reduce(each.values, reduction))) {
              CHECK(are_equal(result, wanted));
            }
          }
          const auto copies = broadcast_to_devices(each.values.back(), names);
          for (const auto& copy : results_of(session, each.feeds(), copies)) {
            CHECK(are_equal(copy, each.tensors.back()));
          }
          if (each.tensors[0].shape().rank() == 0) continue;
          const Tensor<T> rows = gathered(each.tensors);
          for (const auto& result : results_of(session, each.feeds(), all_gather(each.values))) {
            CHECK(are_equal(result, rows));
          }
        }
      }
      check_end(*driver);
    });
  }
}

TEST_CASE("calls of the driver may fail in an all_reduce of three GPUs: the step says so, and nothing is left",
          "[cuda]") {
  Graph graph;
  const Members<float> members(graph, member_devices("GPU", 3, 3), Shape{20000});
  const auto sums = all_reduce(members.values);
  const Tensor<float> wanted = reduced(members.tensors, ReduceBy::sum);
  const auto run = [&](const std::shared_ptr<FakeDriver>& driver) {
    Session session(graph, {.devices = gpus_and_cpu(driver, 3), .soft_placement = true});
    for (const auto& result : results_of(session, members.feeds(), sums)) REQUIRE(are_equal(result, wanted));
  };
  std::uint64_t calls = 0;
  {
    const auto driver = std::make_shared<FakeDriver>(FakeDriverOptions{.devices = 3});
    run(driver);
    calls = driver->num_calls();
    check_end(*driver);
  }
  int failed = 0;
  for (const cuda::ErrorCode code : {cuda::ErrorCode::out_of_memory, cuda::ErrorCode::illegal_address}) {
    for (std::uint64_t n = 0; n < calls; n += 7) {
      INFO("call " << n);
      const auto driver = std::make_shared<FakeDriver>(FakeDriverOptions{.devices = 3, .seed = n});
      driver->fail_call(n, code);
      try {
        run(driver);
      } catch (const Error& error) {
        ++failed;
        CHECK(contains(error.what(), "GPU"));
      }
      check_end(*driver);
    }
  }
  CHECK(failed > 0);
}

TEST_CASE("mirrored replicas train on two and three GPUs as one does on the CPU", "[cuda]") {
  constexpr std::int64_t rows = 12;
  const auto losses_on = [&](const std::vector<std::string>& names,
                             const std::vector<std::shared_ptr<Device>>& devices) {
    Graph graph({.seed = 3});
    std::vector<Output<float>> x;
    train::MirroredReplicas mirrored(train::Adam(0.05f), names);
    const Operation train = mirrored.minimize(graph, [&](std::size_t) {
      x.push_back(placeholder<float>(graph, {dynamic, 5}));
      const Variable<float> w(graph, random_normal<float>(graph, {5, 4}, {.stddev = 0.3}), {.name = "w"});
      return reduce_mean(square(tanh(matmul(x.back(), w)) - 0.25f));
    });
    Session session(graph, {.devices = devices});
    session.run(initialize_variables(graph));
    session.run(mirrored.mirror());
    const std::vector<AnyOutput> loss{mirrored.loss()};
    const std::vector<Operation> update{train};
    const Tensor<float> batch = random_numbers<float>({rows, 5}, 7);
    const auto share = rows / static_cast<std::int64_t>(x.size());
    std::vector<Feed> feeds;
    for (std::size_t r = 0; r < x.size(); ++r) {
      const auto begin = static_cast<std::int64_t>(r) * share;
      feeds.emplace_back(x[r], Tensor<float>(batch.slice(begin, begin + share).deep_copy()));
    }
    std::vector<float> losses;
    for (int step = 0; step < 10; ++step) {
      std::vector<AnyTensor> result(1);
      session.run_erased({}, nullptr, feeds, loss, update, result);
      losses.push_back(Tensor<float>(result[0]).scalar());
    }
    return losses;
  };
  const std::vector<float> wanted = losses_on({"/cpu:0"}, {std::make_shared<CpuDevice>(CpuDeviceOptions{})});
  CHECK(wanted.back() < wanted.front());
  for (const int gpus : {2, 3}) {
    const auto driver = std::make_shared<FakeDriver>(FakeDriverOptions{.devices = gpus});
    std::vector<std::string> names;
    for (int i = 0; i < gpus; ++i) names.push_back(str_cat("/gpu:", i));
    const std::vector<float> got = losses_on(names, gpus_and_cpu(driver, gpus));
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == Approx(wanted[i]).epsilon(1e-3));
    check_end(*driver);
  }
}
