// Collectives between GPUs when something goes wrong: in the driver, the library, another node, or the step.
#include "cuda/gpus_with_nccl.hpp"

#include "support/collective_members.hpp"
#include "support/errors.hpp"
#include "support/sanitized.hpp"

#include <dflow/dflow.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <iostream>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace dflow;
using namespace dflow::testing;
using cuda::ErrorCode;

namespace {

// Threads and mappings are slow with sanitizers.
constexpr std::uint64_t call_stride = is_sanitized ? 17 : 3;

/// A sum, rows and copies of three GPUs; each is a collective.
struct CollectivesOnGpus {
  static constexpr int gpus = 3;
  Graph graph;
  Members<float> members{graph, member_devices("GPU", gpus, gpus), Shape{128, 129}};
  std::vector<Output<float>> edges;
  std::vector<Tensor<float>> wanted;

  CollectivesOnGpus() {
    add(all_reduce(members.values, ReduceBy::mean), reduced(members.tensors, ReduceBy::mean));
    add(all_gather(members.values), gathered(members.tensors));
    add(broadcast_to_devices(members.values[0], {"/gpu:1", "/gpu:2"}), members.tensors[0]);
  }
  void add(const std::vector<Output<float>>& results, const Tensor<float>& value) {
    edges.insert(edges.end(), results.begin(), results.end());
    wanted.insert(wanted.end(), results.size(), value);
  }
  void run(Session& session) const {
    const auto results = results_of(session, members.feeds(), edges);
    for (std::size_t i = 0; i < results.size(); ++i) REQUIRE(are_equal(results[i], wanted[i]));
  }
  /// One session that runs the program twice.
  void run(const std::shared_ptr<FakeDriver>& driver) const {
    Session session(graph, {.devices = gpus_and_cpu(driver, gpus), .soft_placement = true});
    for (int i = 0; i < 2; ++i) run(session);
  }
};

}  // namespace

TEST_CASE("every call of the driver and of NCCL may fail: the step says so, and nothing is left", "[cuda][nccl]") {
  const CollectivesOnGpus program;
  std::uint64_t calls = 0;
  {
    const auto driver = driver_with_nccl(program.gpus);
    program.run(driver);
    calls = driver->num_calls();
    CHECK(driver->nccl().issued().size() == 6);
    check_end(*driver);
  }
  int injected = 0, failed = 0;
  std::uint64_t aborted = 0;
  for (const ErrorCode code : {ErrorCode::out_of_memory, ErrorCode::library_failed, ErrorCode::illegal_address}) {
    for (std::uint64_t n = 0; n < calls; n += call_stride) {
      INFO("call " << n << " of " << calls << ", " << name_of(code));
      const auto driver = driver_with_nccl(program.gpus, n);
      driver->fail_call(n, code);
      ++injected;
      try {
        program.run(driver);
      } catch (const Error& error) {
        ++failed;
        CHECK(contains(error.what(), "GPU"));
      }
      aborted += driver->nccl().num_aborted();
      check_end(*driver);
    }
  }
  std::cout << "count: " << injected << " errors of the driver's and NCCL's calls injected into collectives, " << failed
            << " ended a step, " << aborted << " connections were aborted\n";
  CHECK(failed > 0);
  CHECK(aborted > 0);
}

TEST_CASE("work may fail beside collectives at any point: the step says so, and nothing is left", "[cuda][nccl]") {
  const CollectivesOnGpus program;
  int injected = 0, failed = 0;
  for (const ErrorCode code : {ErrorCode::illegal_address, ErrorCode::launch_failure}) {
    for (std::uint64_t n = 0; n < 60; ++n) {
      INFO("work " << n << ", " << name_of(code));
      const auto driver = driver_with_nccl(program.gpus, n);
      driver->fail_work(n, code);
      ++injected;
      try {
        program.run(driver);
      } catch (const Error& error) {
        ++failed;
        CHECK(error.code() == Code::unavailable);
      }
      check_end(*driver);
    }
  }
  std::cout << "count: " << injected << " errors of GPUs' work injected beside collectives, " << failed
            << " before the last step's end\n";
  CHECK(failed > 0);
}

TEST_CASE("a GPU that is lost leaves no other waiting for it, and the others go on", "[cuda][nccl]") {
  const CollectivesOnGpus program;
  int failed = 0, went_on = 0;
  for (std::uint64_t n = 0; n < 80; ++n) {
    INFO("work " << n);
    const auto driver = std::make_shared<FakeDriver>(
        FakeDriverOptions{.devices = program.gpus, .seed = n, .has_nccl = true, .loses_one = true});
    driver->fail_work(n, ErrorCode::illegal_address);
    {
      const auto devices = gpus_and_cpu(driver, program.gpus);
      try {
        Session session(program.graph, {.devices = devices, .soft_placement = true});
        for (int i = 0; i < 2; ++i) program.run(session);
      } catch (const Error& error) {
        ++failed;
        CHECK(error.code() == Code::unavailable);
        CHECK(contains(error.what(), "GPU"));
      }
      // Any two GPUs that are left work by a connection of their own.
      for (const auto& [a, b] : {std::pair{0, 1}, std::pair{1, 2}, std::pair{0, 2}}) {
        Graph graph;
        const Members<float> pair(graph, {str_cat("/gpu:", a), str_cat("/gpu:", b)}, Shape{128, 129});
        Session session(graph, {.devices = devices});
        try {
          const auto results = results_of(session, pair.feeds(), all_reduce(pair.values));
          CHECK(are_equal(results[1], reduced(pair.tensors, ReduceBy::sum)));
          ++went_on;
        } catch (const Error& error) {
          CHECK(error.code() == Code::unavailable);
        }
      }
    }
    check_end(*driver);
  }
  CHECK(failed > 20);
  CHECK(went_on >= failed);
}

TEST_CASE("a GPU that is lost before its step can ask how it has ended leaves no other waiting", "[cuda][nccl]") {
  int failed = 0;
  for (std::uint64_t n = 0; n < 30; ++n) {
    INFO("call " << n << " behind the first member's");
    const auto driver =
        std::make_shared<FakeDriver>(FakeDriverOptions{.devices = 3, .seed = n, .has_nccl = true, .loses_one = true});
    {
      Graph graph;
      const Members<float> members(graph, member_devices("GPU", 3, 3), Shape{128, 129});
      auto edges = all_reduce(members.values, ReduceBy::mean);
      for (int gpu = 0; gpu < 3; ++gpu) {  // which may note an error
        const auto on = graph.device(str_cat("/gpu:", gpu));
        edges.push_back(
            gather(members.values[static_cast<std::size_t>(gpu)], constant(graph, Tensor<std::int32_t>({2}, {0, 1}))));
      }
      std::thread later;
      driver->nccl().set_between([&] {
        driver->pause();
        driver->fail_call(n, ErrorCode::illegal_address);
        later = std::thread([&] {
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
          driver->resume();
        });
      });
      Session session(graph, {.devices = gpus_and_cpu(driver, 3), .soft_placement = true});
      failed += status_of([&] { return results_of(session, members.feeds(), edges); }).ok() ? 0 : 1;
      later.join();
    }
    check_end(*driver);
  }
  CHECK(failed > 15);
}

TEST_CASE("a collective that fails ends its step with op and line, and the next one connects the GPUs anew",
          "[cuda][nccl]") {
  const CollectivesOnGpus program;
  const auto sums = all_reduce(program.members.values);
  // The failure is found by the call itself, when one GPU waits already, or after the call has been issued.
  for (const bool is_late : {false, true}) {
    const auto driver = driver_with_nccl(program.gpus);
    {
      const auto devices = gpus_and_cpu(driver, program.gpus);
      Session session(program.graph, {.devices = devices});
      const auto sum = [&] { return results_of(session, program.members.feeds(), sums); };
      sum();
      if (is_late) {
        driver->nccl().set_between([&] { driver->nccl().fail_later(ErrorCode::library_failed); });
      } else {
        driver->nccl().fail_member(1, ErrorCode::library_failed);
      }
      const Status status = status_of([&] { sum(); });
      INFO(status.to_string());
      CHECK(status.code() == Code::internal);
      CHECK(mentions(status, "AllReduce"));
      CHECK(mentions(status, "nccl_errors_test.cpp"));
      CHECK(mentions(status, "GPUs 0 1 2"));
      CHECK(mentions(status, is_late ? "a member was lost" : "could not be issued"));
      CHECK(driver->nccl().num_aborted() == 1);
      for (const auto& result : sum()) CHECK(are_equal(result, reduced(program.members.tensors, ReduceBy::sum)));
      CHECK(driver->nccl().num_made() == 2);
      CHECK(group_of(devices).counts().waiting == 0);
    }
    check_end(*driver);
  }
}

TEST_CASE("an error that nobody was told of is no error of the next step", "[cuda][nccl]") {
  const CollectivesOnGpus program;
  const auto sums = all_reduce(program.members.values);
  const auto driver = driver_with_nccl(program.gpus);
  {
    Session session(program.graph, {.devices = gpus_and_cpu(driver, program.gpus)});
    const auto sum = [&] {
      for (const auto& result : results_of(session, program.members.feeds(), sums)) {
        CHECK(are_equal(result, reduced(program.members.tensors, ReduceBy::sum)));
      }
    };
    sum();
    driver->nccl().fail_later(ErrorCode::library_failed);
    sum();
    CHECK(driver->nccl().num_aborted() == 1);
    CHECK(driver->nccl().num_made() == 2);
  }
  check_end(*driver);
}

TEST_CASE("a collective that fails lets those before it end, or their steps are told that it has ended them",
          "[cuda][nccl]") {
  const CollectivesOnGpus program;
  const auto sums = all_reduce(program.members.values),
             products = all_reduce(program.members.values, ReduceBy::product);
  for (const bool do_end : {true, false}) {
    INFO("those before it end: " << do_end);
    const auto driver = driver_with_nccl(program.gpus);
    {
      const auto devices = gpus_and_cpu(driver, program.gpus);
      Session session(program.graph, {.devices = devices}), other(program.graph, {.devices = devices});
      const auto start = [&](Session& with, const std::vector<Output<float>>& edges) {
        auto ended = std::make_shared<std::promise<std::pair<Status, std::vector<AnyTensor>>>>();
        with.run_async_erased({}, program.members.feeds(), std::vector<AnyOutput>(edges.begin(), edges.end()), {},
                              [ended](Status status, std::vector<AnyTensor> results) {
                                ended->set_value({std::move(status), std::move(results)});
                              });
        return ended;
      };
      start(session, sums)->get_future().wait();
      start(other, products)->get_future().wait();
      const auto wait_until_issued = [&](std::size_t number) {
        for (int i = 0; i < 5000 && driver->nccl().issued().size() < number; ++i) {
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
      };
      driver->pause();
      const auto first = start(session, sums);
      wait_until_issued(3);
      driver->nccl().set_between([&] {
        if (do_end) driver->resume();
      });
      driver->nccl().fail_member(1, ErrorCode::library_failed);
      const auto second = start(other, products);
      wait_until_issued(4);
      for (int i = 0; i < 10000 && driver->nccl().num_aborted() == 0; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      CHECK(driver->nccl().num_aborted() == 1);
      driver->resume();
      const auto [status, results] = first->get_future().get();
      INFO(status.to_string());
      CHECK(status.ok() == do_end);
      if (do_end) {
        for (const AnyTensor& each : results) {
          CHECK(are_equal(each.as<float>(), reduced(program.members.tensors, ReduceBy::sum)));
        }
      } else {
        CHECK(status.code() == Code::internal);
        CHECK(mentions(status, "AllReduce"));
        CHECK(mentions(status, "could not be issued"));
      }
      CHECK(second->get_future().get().first.code() == Code::internal);
      // The next step finds the GPUs connected again.
      start(session, sums)->get_future().wait();
      CHECK(driver->nccl().num_made() == 2);
    }
    check_end(*driver);
  }
}

TEST_CASE("a member that never comes leaves nobody waiting when the step ends", "[cuda][nccl]") {
  const auto driver = driver_with_nccl(2);
  {
    Graph graph;
    const Members<float> members(graph, member_devices("GPU", 2, 2), Shape{40000});
    FifoQueue<float> queue(graph, {.capacity = 4, .shapes = {Shape{40000}}});
    const auto late = queue.dequeue();
    const auto there = [&] {
      const auto on = graph.device("/gpu:1");
      return late * 1.0f;
    }();
    const auto sums = all_reduce(std::vector<Output<float>>{members.values[0], there});
    const Operation enqueue = queue.enqueue(members.fed[1]);
    const auto devices = gpus_and_cpu(driver, 2);
    Session session(graph, {.devices = devices});
    cuda::DeviceGroup& group = group_of(devices);
    const std::vector<AnyOutput> edges(sums.begin(), sums.end());
    const auto wait_for_member = [&] {
      for (int i = 0; i < 5000 && group.counts().waiting == 0; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      CHECK(group.counts().waiting == 1);
    };
    for (int run = 0; run < 4; ++run) {
      INFO("run " << run);
      std::stop_source stop;
      std::promise<Status> ended;
      RunOptions options;
      options.stop = stop.get_token();
      session.run_async_erased(options, members.feeds(), edges, {},
                               [&](Status status, std::vector<AnyTensor>) { ended.set_value(std::move(status)); });
      wait_for_member();
      if (run % 2 == 0) {
        stop.request_stop();
        CHECK(ended.get_future().get().code() == Code::cancelled);
      } else {
        std::vector<AnyTensor> none;
        const std::vector<Operation> target{enqueue};
        session.run_erased({}, nullptr, members.feeds(), {}, target, none);
        CHECK(ended.get_future().get().ok());
      }
      CHECK(group.counts().waiting == 0);
    }
    CHECK(driver->nccl().issued().size() == 2);
  }
  check_end(*driver);
}

TEST_CASE("a step whose deadline passes, or another node of which fails, ends the members that wait", "[cuda][nccl]") {
  const auto driver = driver_with_nccl(2);
  {
    Graph graph;
    const Members<float> members(graph, member_devices("GPU", 2, 2), Shape{40000});
    FifoQueue<float> queue(graph, {.capacity = 4, .shapes = {Shape{40000}}});
    const auto never = [&] {
      const auto on = graph.device("/gpu:1");
      return queue.dequeue() * 1.0f;
    }();
    const auto sums = all_reduce(std::vector<Output<float>>{members.values[0], never});
    const auto devices = gpus_and_cpu(driver, 2);
    Session session(graph, {.devices = devices});
    std::vector<AnyOutput> edges(sums.begin(), sums.end());
    std::vector<AnyTensor> results(2);
    RunOptions options;
    options.deadline = std::chrono::milliseconds(30);
    CHECK(code_of([&] { session.run_erased(options, nullptr, members.feeds(), edges, {}, results); }) ==
          Code::deadline_exceeded);
    CHECK(group_of(devices).counts().waiting == 0);
    const auto row = placeholder<std::int32_t>(graph, {1});
    edges.emplace_back(gather(members.fed[0], row));
    auto feeds = members.feeds();
    feeds.emplace_back(row, Tensor<std::int32_t>(Shape{1}, {-5}));
    results.resize(3);
    const Status status = status_of([&] { session.run_erased({}, nullptr, feeds, edges, {}, results); });
    INFO(status.to_string());
    CHECK_FALSE(status.ok());
    CHECK(mentions(status, "Gather"));
    CHECK(group_of(devices).counts().waiting == 0);
    CHECK(driver->nccl().issued().empty());
  }
  check_end(*driver);
}

TEST_CASE("what a kernel that failed has left behind goes into no sum, and into no variable of another GPU",
          "[cuda][nccl]") {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    INFO("seed " << seed);
    const auto driver = driver_with_nccl(2, seed);
    {
      Graph graph;
      const auto x = placeholder<std::int32_t>(graph, {40000});
      std::vector<Output<std::int32_t>> values;
      std::vector<Operation> updates;
      std::vector<Variable<std::int32_t>> variables;
      for (int i = 0; i < 2; ++i) {
        const auto on = graph.device(str_cat("/gpu:", i));
        values.push_back(i == 0 ? 12 / x : x + 0);
        variables.emplace_back(graph, Tensor<std::int32_t>::full({40000}, 7), VariableOptions{.name = str_cat("v", i)});
      }
      const auto sums = all_reduce(values);
      for (std::size_t i = 0; i < 2; ++i) updates.push_back(variables[i].assign_add(sums[i]));
      const auto devices = gpus_and_cpu(driver, 2);
      Session session(graph, {.devices = devices});
      session.run(initialize_variables(graph));
      std::vector<AnyTensor> none;
      const auto update = [&](int number) {
        const std::vector<Feed> feeds{{x, Tensor<std::int32_t>::full({40000}, number)}};
        session.run_erased({}, nullptr, feeds, {}, updates, none);
      };
      update(4);
      const Status status = status_of([&] { update(0); });
      INFO(status.to_string());
      CHECK(status.code() == Code::invalid_argument);
      CHECK(mentions(status, "zero"));
      CHECK(mentions(status, "nccl_errors_test.cpp"));
      for (const Variable<std::int32_t>& each : variables) CHECK(session.run(each.read())(17) == 7 + 3 + 4);
      CHECK(group_of(devices).counts().waiting == 0);
      CHECK(driver->nccl().issued().size() == 1);
    }
    check_end(*driver);
  }
}

TEST_CASE("session and devices may go while GPUs compute together", "[cuda][nccl]") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    INFO("seed " << seed);
    const auto driver = driver_with_nccl(3, seed);
    std::promise<Status> ended;
    {
      const CollectivesOnGpus program;
      auto devices = gpus_and_cpu(driver, program.gpus);
      auto session = std::make_unique<Session>(program.graph, SessionOptions{.devices = devices});
      program.run(*session);
      const std::vector<AnyOutput> edges(program.edges.begin(), program.edges.end());
      if (seed % 2 == 0) driver->pause();
      session->run_async_erased({}, program.members.feeds(), edges, {},
                                [&](Status status, std::vector<AnyTensor>) { ended.set_value(std::move(status)); });
      devices.clear();
      session = nullptr;
      driver->resume();
    }
    CHECK(ended.get_future().get().ok());
    check_end(*driver);
  }
}

TEST_CASE("a device that goes undoes its connections, and the others connect without it", "[cuda][nccl]") {
  const auto driver = driver_with_nccl(3);
  {
    const CollectivesOnGpus program;
    auto devices = gpus_and_cpu(driver, program.gpus);
    {
      Session session(program.graph, {.devices = devices});
      program.run(session);
    }
    CHECK(driver->nccl().num_alive() == 1);
    devices.erase(devices.begin() + 2);
    for (int i = 0; i < 5000 && driver->nccl().num_alive() != 0; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    CHECK(driver->nccl().num_alive() == 0);
    Session session(program.graph, {.devices = devices});
    const std::vector<Output<float>> of_two{program.members.values[0], program.members.values[1]};
    auto feeds = program.members.feeds();
    feeds.pop_back();
    const auto sums = all_reduce(of_two);
    for (const auto& result : results_of(session, feeds, sums)) {
      CHECK(are_equal(result, reduced<float>({program.members.tensors[0], program.members.tensors[1]}, ReduceBy::sum)));
    }
    CHECK(driver->nccl().num_alive() == 1);
  }
  check_end(*driver);
}
