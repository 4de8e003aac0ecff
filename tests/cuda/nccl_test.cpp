// Collectives between GPUs by a library. They have the values of collectives by nodes that are sent, also beside other
// work.
#include "cuda/gpus_with_nccl.hpp"

#include "support/collective_members.hpp"
#include "support/errors.hpp"

#include <dflow/dflow.hpp>
#include <dflow/train/replicas/mirrored_replicas.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

using namespace dflow;
using namespace dflow::testing;
using cuda::ErrorCode;

namespace {

/// The shape of a value that does not go whole to each member.
const Shape large_shape{260, 257};

std::size_t num_issued(FakeDriver& driver, CollectiveKind kind) {
  const auto issued = driver.nccl().issued();
  return static_cast<std::size_t>(
      std::count_if(issued.begin(), issued.end(), [&](const cuda::CollectiveCall& call) { return call.kind == kind; }));
}

/// Sums, means and products that the library computes; minima and maxima are left to nodes.
template <class T>
bool is_by_library(ReduceBy reduction) {
  if (reduction == ReduceBy::minimum || reduction == ReduceBy::maximum) return false;
  if (is_complex_element<T>) return reduction != ReduceBy::product;
  return !std::is_same_v<T, std::int16_t> || reduction == ReduceBy::mean;  // whose elements are widened
}

}  // namespace

TEMPLATE_TEST_CASE("GPUs of one group reduce together, with the values of nodes that are sent", "[cuda][nccl]", float,
                   double, Half, BFloat16, std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t,
                   std::uint64_t, std::complex<float>, std::complex<double>) {
  using T = TestType;
  for (const int gpus : {2, 3, 4}) {
    const auto driver = driver_with_nccl(gpus), without = std::make_shared<FakeDriver>(FakeDriverOptions{gpus});
    {
      Graph graph;
      const auto count = static_cast<std::size_t>(gpus);
      const Members<T> known(graph, member_devices("GPU", count, count), large_shape);
      const Members<T> unknown(graph, member_devices("GPU", count, count), Shape{7}, false);
      const Members<T> empty(graph, member_devices("GPU", count, count), Shape{0, 3}, false);
      Session session(graph, {.devices = gpus_and_cpu(driver, gpus)});
      Session by_nodes(graph, {.devices = gpus_and_cpu(without, gpus)});
      std::size_t issued = 0;
      for (const ReduceBy reduction : all_reductions) {
        if (!can_reduce<T>(reduction)) continue;
        for (const Members<T>* const each : {&known, &unknown, &empty}) {
          INFO(gpus << " GPUs, " << dtype_name(dtype_of<T>) << " " << each->tensors[0].shape().to_string()
                    << ", reduction " << static_cast<int>(reduction));
          const auto edges = all_reduce(each->values, reduction);
          const auto wanted = results_of(by_nodes, each->feeds(), edges);
          const auto got = results_of(session, each->feeds(), edges);
          for (std::size_t m = 0; m < count; ++m) {
            CHECK(are_equal(got[m], wanted[m]));
            CHECK(are_equal(got[m], reduced(each->tensors, reduction)));
          }
          if (is_by_library<T>(reduction) && each != &empty) ++issued;
        }
      }
      CHECK(driver->nccl().issued().size() == issued);
      CHECK(driver->nccl().num_made() == 1);
    }
    check_end(*driver);
    check_end(*without);
  }
}

TEST_CASE("GPUs of one group gather rows together if each has as many, and else send them", "[cuda][nccl]") {
  for (const int gpus : {2, 3}) {
    for_each_type<TypeList<float, BFloat16, bool, std::int16_t, std::complex<double>>>([&]<class T>() {
      const auto driver = driver_with_nccl(gpus);
      {
        const auto count = static_cast<std::size_t>(gpus);
        Graph graph;
        const Members<T> alike(graph, member_devices("GPU", count, count), Shape{300, 257});
        std::vector<Shape> shapes(count, Shape{300, 257});
        shapes.back() = {2, 257};
        const Members<T> ragged(graph, member_devices("GPU", count, count), shapes);
        const Members<T> unknown(graph, member_devices("GPU", count, count), Shape{300, 257}, false);
        Session session(graph, {.devices = gpus_and_cpu(driver, gpus)});
        for (const Members<T>* const each : {&alike, &ragged, &unknown}) {
          const Tensor<T> wanted = gathered(each->tensors);
          INFO(gpus << " GPUs, " << dtype_name(dtype_of<T>) << " " << wanted.shape().to_string());
          for (const auto& result : results_of(session, each->feeds(), all_gather(each->values))) {
            CHECK(are_equal(result, wanted));
          }
        }
        CHECK(num_issued(*driver, CollectiveKind::gather) == 1);
        CHECK(driver->nccl().issued().size() == 1);
      }
      check_end(*driver);
    });
  }
}

TEST_CASE("GPUs of one group broadcast together to several others, from any of them", "[cuda][nccl]") {
  for_each_type<TypeList<float, Half, bool, std::int64_t, std::complex<float>>>([&]<class T>() {
    const auto driver = driver_with_nccl(4);
    {
      Graph graph;
      const Members<T> known(graph, member_devices("GPU", 4, 4), Shape{300, 257});
      const Members<T> unknown(graph, member_devices("GPU", 4, 4), Shape{3}, false);
      Session session(graph, {.devices = gpus_and_cpu(driver, 4)});
      for (const Members<T>* const each : {&known, &unknown}) {
        for (const std::size_t root : {0u, 2u}) {
          const auto copies = broadcast_to_devices(each->values[root], {"/gpu:1", "/gpu:3", "/gpu:2"});
          for (const auto& result : results_of(session, each->feeds(), copies)) {
            CHECK(are_equal(result, each->tensors[root]));
          }
        }
      }
      CHECK(num_issued(*driver, CollectiveKind::broadcast) == 4);
      // A broadcast to one other device is a copy.
      const auto copy = broadcast_to_devices(known.values[0], {"/gpu:1"});
      CHECK(are_equal(results_of(session, known.feeds(), copy)[0], known.tensors[0]));
      CHECK(num_issued(*driver, CollectiveKind::broadcast) == 4);
    }
    check_end(*driver);
  });
}

TEST_CASE("small values, results that not all want, and members elsewhere are left to nodes", "[cuda][nccl]") {
  const auto driver = driver_with_nccl(3);
  {
    Graph graph;
    const Members<float> members(graph, member_devices("GPU", 3, 3), large_shape);
    const Members<float> small(graph, member_devices("GPU", 3, 3), Shape{100});
    auto names = member_devices("GPU", 2, 2);
    names.emplace_back("/cpu:0");
    const Members<float> with_host(graph, names, large_shape);
    Session session(graph, {.devices = gpus_and_cpu(driver, 3)});
    const auto sums = all_reduce(members.values);
    const auto alone = results_of(session, members.feeds(), std::vector<Output<float>>{sums[1]});
    CHECK(are_equal(alone[0], reduced(members.tensors, ReduceBy::sum)));
    for (const auto& result : results_of(session, small.feeds(), all_reduce(small.values))) {
      CHECK(are_equal(result, reduced(small.tensors, ReduceBy::sum)));
    }
    for (const auto& result : results_of(session, with_host.feeds(), all_reduce(with_host.values))) {
      CHECK(are_equal(result, reduced(with_host.tensors, ReduceBy::sum)));
    }
    CHECK(driver->nccl().issued().empty());
  }
  check_end(*driver);
}

TEST_CASE("values on one GPU are reduced before those of several", "[cuda][nccl]") {
  const auto driver = driver_with_nccl(3);
  {
    Graph graph;
    const Members<Half> members(graph, member_devices("GPU", 5, 3), large_shape);
    Session session(graph, {.devices = gpus_and_cpu(driver, 3)});
    for (const ReduceBy reduction : {ReduceBy::sum, ReduceBy::mean, ReduceBy::product}) {
      for (const auto& result : results_of(session, members.feeds(), all_reduce(members.values, reduction))) {
        CHECK(are_equal(result, reduced(members.tensors, reduction)));
      }
    }
    for (const cuda::CollectiveCall& call : driver->nccl().issued()) CHECK(call.dtype == DType::float32);
    CHECK(driver->nccl().issued().size() == 3);
  }
  check_end(*driver);
}

TEST_CASE("sums of 16-bit floats that GPUs make together do not overflow on the way, and are rounded once",
          "[cuda][nccl]") {
  const auto driver = driver_with_nccl(3);
  {
    Graph graph;
    Members<Half> members(graph, member_devices("GPU", 3, 3), large_shape);
    members.tensors[0].span()[0] = Half(60000.0f);
    members.tensors[1].span()[0] = Half(60000.0f);
    members.tensors[2].span()[0] = Half(-60000.0f);
    members.tensors[0].span()[1] = Half(2048.0f);
    members.tensors[1].span()[1] = Half(1.0f);
    members.tensors[2].span()[1] = Half(1.0f);
    Session session(graph, {.devices = gpus_and_cpu(driver, 3)});
    for (const auto& result : results_of(session, members.feeds(), all_reduce(members.values))) {
      CHECK(static_cast<float>(result.span()[0]) == 60000.0f);
      CHECK(static_cast<float>(result.span()[1]) == 2050.0f);
    }
    CHECK(driver->nccl().issued().size() == 1);
  }
  check_end(*driver);
}

TEST_CASE("members on GPUs get the same bits, in each step, and what is not a number makes a minimum one",
          "[cuda][nccl]") {
  const auto driver = driver_with_nccl(3);
  {
    Graph graph;
    Members<float> members(graph, member_devices("GPU", 3, 3), large_shape);
    for (std::size_t i = 0; i < 3; ++i) {
      float number = 0.1f + static_cast<float>(i);
      for (float& element : members.tensors[i].span()) element = number = std::sin(number) * 3 + 1e-3f;
    }
    Session session(graph, {.devices = gpus_and_cpu(driver, 3)});
    const auto means = all_reduce(members.values, ReduceBy::mean);
    const auto first = results_of(session, members.feeds(), means);
    for (int run = 0; run < 5; ++run) {
      for (const auto& result : results_of(session, members.feeds(), means)) CHECK(are_equal(result, first[0]));
    }
    CHECK(driver->nccl().issued().size() == 6);
    members.tensors[1].span()[5] = std::numeric_limits<float>::quiet_NaN();
    for (const ReduceBy reduction : {ReduceBy::minimum, ReduceBy::maximum}) {
      for (const auto& result : results_of(session, members.feeds(), all_reduce(members.values, reduction))) {
        CHECK(std::isnan(result.span()[5]));
      }
    }
  }
  check_end(*driver);
}

TEST_CASE("shapes that differ between GPUs in the step are an error that names both", "[cuda][nccl]") {
  const auto driver = driver_with_nccl(2);
  {
    Graph graph;
    const Members<float> members(graph, member_devices("GPU", 2, 2), {Shape{1, 3}, Shape{2, 3}}, false);
    const auto devices = gpus_and_cpu(driver, 2);
    Session session(graph, {.devices = devices});
    const auto sums = all_reduce(members.values);
    for (int run = 0; run < 3; ++run) {
      const Status status = status_of([&] { return results_of(session, members.feeds(), sums).size(); });
      INFO(status.to_string());
      CHECK(status.code() == Code::invalid_argument);
      CHECK(mentions(status, "[1,3]"));
      CHECK(mentions(status, "[2,3]"));
      CHECK(mentions(status, "nccl_test.cpp"));
      CHECK(mentions(status, "AllReduce"));
    }
    CHECK(group_of(devices).counts().waiting == 0);
  }
  check_end(*driver);
}

TEST_CASE("gradients of what GPUs reduce together are those of nodes that are sent", "[cuda][nccl]") {
  const auto driver = driver_with_nccl(2), without = std::make_shared<FakeDriver>(FakeDriverOptions{.devices = 2});
  {
    Graph graph;
    const Members<float> members(graph, member_devices("GPU", 2, 2), large_shape);
    std::vector<Output<float>> losses;
    for (const auto& each : all_reduce(members.values, ReduceBy::mean)) losses.push_back(reduce_sum(square(each)));
    for (const auto& each : all_reduce(members.values, ReduceBy::product)) losses.push_back(reduce_sum(each));
    const auto dx = gradients(std::vector<AnyOutput>(losses.begin(), losses.end()),
                              std::vector<AnyOutput>(members.values.begin(), members.values.end()));
    std::vector<Output<float>> edges;
    for (const auto& each : dx) edges.emplace_back(each.dense);
    Session session(graph, {.devices = gpus_and_cpu(driver, 2)});
    Session by_nodes(graph, {.devices = gpus_and_cpu(without, 2)});
    const auto got = results_of(session, members.feeds(), edges), wanted = results_of(by_nodes, members.feeds(), edges);
    for (std::size_t i = 0; i < edges.size(); ++i) CHECK(are_equal(got[i], wanted[i]));
    CHECK(driver->nccl().issued().size() >= 3);
  }
  check_end(*driver);
  check_end(*without);
}

TEST_CASE("two collectives of one step go to all GPUs in one order, whichever is ready first where", "[cuda][nccl]") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    INFO("seed " << seed);
    const auto driver = driver_with_nccl(2, seed);
    {
      Graph graph;
      const Members<float> members(graph, member_devices("GPU", 2, 2), large_shape);
      // The first collective waits for the host on one GPU, the second on the other.
      std::vector<Output<float>> first, second;
      for (std::size_t i = 0; i < 2; ++i) {
        const auto on_host = [&] {
          const auto on = graph.device("/cpu:0");
          return members.values[i] + 1.0f;
        }();
        const auto on = graph.device(str_cat("/gpu:", i));
        (i == 0 ? first : second).push_back(on_host * 1.0f);
        (i == 0 ? second : first).push_back(members.values[i] + 1.0f);
      }
      auto edges = all_reduce(first);
      for (const auto& each : all_reduce(std::vector<Output<float>>{second[1], second[0]})) edges.push_back(each);
      Session session(graph, {.devices = gpus_and_cpu(driver, 2)});
      const auto wanted = reduced(members.tensors, ReduceBy::sum);
      for (int run = 0; run < 3; ++run) {
        for (const auto& result : results_of(session, members.feeds(), edges)) {
          CHECK(result.span()[9] == wanted.span()[9] + 2.0f);
        }
      }
      CHECK(driver->nccl().issued().size() == 6);
    }
    check_end(*driver);
  }
}

TEST_CASE("steps of two sessions reduce on the same GPUs at once", "[cuda][nccl]") {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    INFO("seed " << seed);
    const auto driver = driver_with_nccl(3, seed);
    {
      Graph graph;
      const Members<float> members(graph, member_devices("GPU", 3, 3), large_shape);
      const auto sums = all_reduce(members.values), products = all_reduce(members.values, ReduceBy::product);
      auto pair = all_reduce(std::vector<Output<float>>{members.values[2], members.values[0]});
      auto edges = sums;
      edges.insert(edges.end(), products.begin(), products.end());
      const auto devices = gpus_and_cpu(driver, 3);
      Session one(graph, {.devices = devices}), other(graph, {.devices = devices});
      const Tensor<float> sum = reduced(members.tensors, ReduceBy::sum),
                          product = reduced(members.tensors, ReduceBy::product),
                          of_two = reduced<float>({members.tensors[2], members.tensors[0]}, ReduceBy::sum);
      std::atomic<int> wrong{0};
      {
        std::vector<std::jthread> threads;
        for (int t = 0; t < 4; ++t) {
          threads.emplace_back([&, t] {
            Session& session = t % 2 == 0 ? one : other;
            for (int run = 0; run < 6; ++run) {
              if (t == 3) {
                for (const auto& result : results_of(session, members.feeds(), pair))
                  wrong += !are_equal(result, of_two);
                continue;
              }
              const auto got = results_of(session, members.feeds(), edges);
              for (std::size_t i = 0; i < got.size(); ++i) wrong += !are_equal(got[i], i < 3 ? sum : product);
            }
          });
        }
      }
      CHECK(wrong == 0);
      CHECK(driver->nccl().issued().size() == 3 * 6 * 2 + 6);
      CHECK(driver->nccl().num_made() == 2);
      CHECK(group_of(devices).counts().waiting == 0);
    }
    check_end(*driver);
  }
}

TEST_CASE("what others copy between GPUs while a collective is issued does not come between its members",
          "[cuda][nccl]") {
  const auto driver = driver_with_nccl(2);
  {
    Graph graph;
    const Members<float> members(graph, member_devices("GPU", 2, 2), large_shape);
    const auto sums = all_reduce(members.values);
    const auto crossed = [&] {
      const auto on = graph.device("/gpu:1");
      return members.values[0] * 2.0f;
    }();
    const auto devices = gpus_and_cpu(driver, 2);
    Session session(graph, {.devices = devices}), other(graph, {.devices = devices});
    const Tensor<float> wanted = reduced(members.tensors, ReduceBy::sum);
    results_of(other, members.feeds(), std::vector<Output<float>>{crossed});
    for (int run = 0; run < 5; ++run) {
      std::atomic<bool> has_crossed{false};
      driver->nccl().set_between([&] {
        const auto got = results_of(other, members.feeds(), std::vector<Output<float>>{crossed});
        has_crossed = got[0].span()[3] == members.tensors[0].span()[3] * 2;
      });
      for (const auto& result : results_of(session, members.feeds(), sums)) CHECK(are_equal(result, wanted));
      CHECK(has_crossed);
    }
  }
  check_end(*driver);
}

TEST_CASE("the model of a driver finds streams that wait for each other", "[cuda][nccl]") {
  const auto driver = driver_with_nccl(2);
  const int numbers[] = {0, 1};
  cuda::CommunicatorsHandle communicators = cuda::CommunicatorsHandle::none;
  std::string why;
  REQUIRE(driver->nccl().make_communicators(numbers, communicators, why) == ErrorCode::ok);
  cuda::CollectiveMember members[2];
  for (int d = 0; d < 2; ++d) {
    void* block = nullptr;
    REQUIRE(driver->create_stream(d, members[d].stream) == ErrorCode::ok);
    REQUIRE(driver->allocate(d, 16, members[d].stream, block) == ErrorCode::ok);
    members[d].from = members[d].to = block;
  }
  cuda::EventHandle event = cuda::EventHandle::none;
  REQUIRE(driver->create_event(0, event) == ErrorCode::ok);
  // The work that the first stream gets behind its member comes before the member of the second stream.
  driver->nccl().set_between([&] {
    driver->record(0, event, members[0].stream);
    driver->wait(1, members[1].stream, event);
  });
  const cuda::CollectiveCall call{CollectiveKind::sum, DType::float32, 4};
  REQUIRE(driver->nccl().run_collective(communicators, call, members, why) == ErrorCode::ok);
  for (int d = 0; d < 2; ++d) {
    CHECK(driver->wait_until_idle(d, members[d].stream) == ErrorCode::ok);
  }
  REQUIRE(driver->violations().size() == 1);
  CHECK(driver->violations()[0] == "streams wait for each other for ever");
}

TEST_CASE("GPUs reduce together in the bodies of branches, loops and functions, in each form", "[cuda][nccl]") {
  for (int form = 0; form < 3; ++form) {
    const auto driver = driver_with_nccl(2);
    {
      PassOptions passes;
      passes.lower_control_flow = form == 1;
      passes.raise_control_flow = form == 2;
      Graph graph;
      const auto x = placeholder<float>(graph, {20000});
      const auto n = placeholder<std::int32_t>(graph, {});
      const auto yes = placeholder<bool>(graph, {});
      // On GPU i x * (i + 1); all members' sums are 3 x each.
      const auto sums_of = [&](const Output<float>& value) {
        std::vector<Output<float>> values;
        for (int i = 0; i < 2; ++i) {
          const auto there = graph.device(str_cat("/gpu:", i));
          values.push_back(value * static_cast<float>(i + 1));
        }
        const auto sums = all_reduce(values);
        return Output<float>(sums[0] + sums[1]);
      };
      const auto branch = cond(
          yes, [&] { return sums_of(x); }, [&] { return Output<float>(x - 1.0f); });
      const auto [last, power] = while_loop([&](auto i, auto) { return i < n; },
                                            [&](auto i, auto v) {
                                              return std::tuple{i + 1, Output<float>(sums_of(v) * 0.5f)};
                                            },
                                            std::tuple{constant(graph, 0), x});
      const auto dx = Output<float>(gradients(Output<float>(power), x));
      const auto devices = gpus_and_cpu(driver, 2);
      Session session(graph, {.devices = devices, .passes = passes});
      for (const bool side : {true, false, true}) {
        INFO("form " << form << ", side " << side);
        const std::vector<Feed> feeds{
            {x, Tensor<float>::full({20000}, 2)}, {n, Tensor<std::int32_t>(3)}, {yes, Tensor<bool>(side)}};
        const auto got = results_of(session, feeds, std::vector<Output<float>>{branch, power, dx});
        CHECK(got[0](19999) == (side ? 12 : 1));
        CHECK(got[1](0) == 54);
        CHECK(got[2](777) == 27);
      }
      CHECK(num_issued(*driver, CollectiveKind::sum) >= 2 + 3 * 3);
      CHECK(group_of(devices).counts().waiting == 0);
    }
    check_end(*driver);
  }
}

TEST_CASE("connections that were used last are kept, and no more", "[cuda][nccl]") {
  const auto driver = driver_with_nccl(4);
  {
    Graph graph;
    const Members<float> members(graph, member_devices("GPU", 4, 4), large_shape);
    const auto devices = gpus_and_cpu(driver, 4);
    Session session(graph, {.devices = devices});
    std::vector<std::size_t> order{0, 1, 2, 3};
    const Tensor<float> wanted = reduced(members.tensors, ReduceBy::sum);
    std::vector<Output<float>> of_first;
    do {
      std::vector<Output<float>> values;
      for (const std::size_t m : order) values.push_back(members.values[m]);
      const auto sums = all_reduce(values);
      if (of_first.empty()) of_first = sums;
      for (const auto& result : results_of(session, members.feeds(), sums)) CHECK(are_equal(result, wanted));
    } while (std::next_permutation(order.begin(), order.end()));
    CHECK(driver->nccl().num_made() == 24);
    CHECK(driver->nccl().num_alive() == cuda::DeviceGroup::max_communicators);
    // A set of communicators that went is made again by the step that needs it.
    for (const auto& result : results_of(session, members.feeds(), of_first)) CHECK(are_equal(result, wanted));
    CHECK(driver->nccl().num_made() == 25);
    CHECK(group_of(devices).counts().made == 25);
    CHECK(group_of(devices).counts().issued == 25);
  }
  check_end(*driver);
}

TEST_CASE("where the library is not there, or refuses the GPUs, collectives are nodes that are sent", "[cuda][nccl]") {
  // A missing library is not asked again. After a failure it is asked a few times; memory may be there another time.
  const std::pair<ErrorCode, int> refusals[] = {{ErrorCode::not_supported, 1},
                                                {ErrorCode::library_failed, cuda::DeviceGroup::max_refusals},
                                                {ErrorCode::out_of_memory, 5}};
  for (const auto& [code, asked] : refusals) {
    INFO(name_of(code));
    const auto driver = driver_with_nccl(2);
    driver->nccl().refuse(code);
    {
      Graph graph;
      const Members<float> members(graph, member_devices("GPU", 2, 2), large_shape);
      const auto devices = gpus_and_cpu(driver, 2);
      Session session(graph, {.devices = devices});
      const Tensor<float> sum = reduced(members.tensors, ReduceBy::sum);
      const auto run = [&] {
        for (const auto& result : results_of(session, members.feeds(), all_reduce(members.values))) {
          CHECK(are_equal(result, sum));
        }
      };
      for (int i = 0; i < 5; ++i) run();
      // When it is out of memory, the library is asked a second time, after cached memory has gone back.
      CHECK(driver->nccl().num_refused() ==
            static_cast<std::uint64_t>(code == ErrorCode::out_of_memory ? 2 * asked : asked));
      driver->nccl().refuse(ErrorCode::ok);
      run();
      CHECK(driver->nccl().num_made() == (code == ErrorCode::out_of_memory ? 1 : 0));
      CHECK(driver->nccl().issued().size() == driver->nccl().num_made());
    }
    check_end(*driver);
  }
}

TEST_CASE("where the library finds no memory, what is cached and captured makes way", "[cuda][nccl]") {
  const auto driver = driver_with_nccl(2);
  {
    Graph graph;
    const Members<float> members(graph, member_devices("GPU", 2, 2), large_shape);
    const auto devices = gpus_and_cpu(driver, 2);
    Session session(graph, {.devices = devices});
    const auto twice = members.values[0] * 2.0f + 1.0f;
    for (int i = 0; i < 4; ++i) results_of(session, members.feeds(), std::vector<Output<float>>{twice});
    const auto cached = [&] { return devices[0]->context().allocator->stats().bytes_cached; };
    REQUIRE(cached() > 0);
    driver->nccl().refuse(ErrorCode::out_of_memory, 1);
    const auto sums = all_reduce(members.values);
    for (const auto& result : results_of(session, members.feeds(), sums)) {
      CHECK(are_equal(result, reduced(members.tensors, ReduceBy::sum)));
    }
    CHECK(driver->nccl().num_refused() == 1);
    CHECK(driver->nccl().issued().size() == 1);
  }
  check_end(*driver);
}

TEST_CASE("all devices of a driver are one group, whoever made them, but those that are told not to be",
          "[cuda][nccl]") {
  const auto driver = driver_with_nccl(2);
  {
    const auto together = cuda_devices({.driver = driver});
    CHECK(together[0]->collectives() != nullptr);
    CHECK(together[0]->collectives() == together[1]->collectives());
    const auto others = gpus_and_cpu(driver, 2);
    CHECK(others[1]->collectives() == together[0]->collectives());
    const auto apart = cuda_devices({.driver = driver, .nccl = false});
    CHECK(apart[0]->collectives() == nullptr);
    const auto none = cuda_devices({.driver = std::make_shared<FakeDriver>()});
    CHECK(none[0]->collectives() == nullptr);
    const auto another = driver_with_nccl(2);
    CHECK(cuda_devices({.driver = another})[0]->collectives() != together[0]->collectives());
  }
  CHECK(driver.use_count() == 1);
  check_end(*driver);
}

TEST_CASE("devices that were made apart compute on the same GPUs at once, and go one after the other", "[cuda][nccl]") {
  const auto driver = driver_with_nccl(2);
  {
    Graph graph;
    const Members<float> members(graph, member_devices("GPU", 2, 2), large_shape);
    const auto sums = all_reduce(members.values);
    const Tensor<float> wanted = reduced(members.tensors, ReduceBy::sum);
    std::vector<std::unique_ptr<Session>> sessions;
    for (int i = 0; i < 3; ++i) {
      sessions.push_back(std::make_unique<Session>(graph, SessionOptions{.devices = gpus_and_cpu(driver, 2)}));
    }
    std::atomic<int> wrong{0};
    {
      std::vector<std::jthread> threads;
      for (auto& session : sessions) {
        threads.emplace_back([&] {
          for (int run = 0; run < 6; ++run) {
            for (const auto& result : results_of(*session, members.feeds(), sums)) wrong += !are_equal(result, wanted);
          }
          session = nullptr;
        });
      }
    }
    CHECK(wrong == 0);
    CHECK(driver->nccl().num_made() >= 1);
    CHECK(driver->nccl().num_alive() == 0);
    CHECK(driver->nccl().num_aborted() == 0);
  }
  check_end(*driver);
}

TEST_CASE("mirrored replicas whose gradients GPUs reduce together train as one does on the CPU", "[cuda][nccl]") {
  const auto losses_on = [&](const std::vector<std::string>& names,
                             const std::vector<std::shared_ptr<Device>>& devices) {
    Graph graph({.seed = 3});
    std::vector<Output<float>> x;
    train::MirroredReplicas mirrored(train::Adam(0.05f), names);
    const Operation train = mirrored.minimize(graph, [&](std::size_t) {
      x.push_back(placeholder<float>(graph, {dynamic, 200}));
      const Variable<float> w(graph, random_normal<float>(graph, {200, 100}, {.stddev = 0.1}), {.name = "w"});
      return reduce_mean(square(tanh(matmul(x.back(), w)) - 0.25f));
    });
    Session session(graph, {.devices = devices});
    session.run(initialize_variables(graph));
    session.run(mirrored.mirror());
    const std::vector<AnyOutput> loss{mirrored.loss()};
    const std::vector<Operation> update{train};
    const Tensor<float> batch = random_numbers<float>({12, 200}, 7);
    const auto share = 12 / static_cast<std::int64_t>(x.size());
    std::vector<Feed> feeds;
    for (std::size_t r = 0; r < x.size(); ++r) {
      const auto begin = static_cast<std::int64_t>(r) * share;
      feeds.emplace_back(x[r], Tensor<float>(batch.slice(begin, begin + share).deep_copy()));
    }
    std::vector<float> losses;
    for (int step = 0; step < 5; ++step) {
      std::vector<AnyTensor> result(1);
      session.run_erased({}, nullptr, feeds, loss, update, result);
      losses.push_back(Tensor<float>(result[0]).scalar());
    }
    return losses;
  };
  const std::vector<float> wanted = losses_on({"/cpu:0"}, {std::make_shared<CpuDevice>(CpuDeviceOptions{})});
  CHECK(wanted.back() < wanted.front());
  for (const int gpus : {2, 3}) {
    const auto driver = driver_with_nccl(gpus);
    std::vector<std::string> names;
    for (int i = 0; i < gpus; ++i) names.push_back(str_cat("/gpu:", i));
    const std::vector<float> got = losses_on(names, gpus_and_cpu(driver, gpus));
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == Approx(wanted[i]).epsilon(1e-3));
    CHECK(num_issued(*driver, CollectiveKind::sum) == 5);
    check_end(*driver);
  }
}
