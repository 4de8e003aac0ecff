#include <dflow/net/transport/strand.hpp>

#include "catch.hpp"

#include <dflow/base/threads/elastic_pool.hpp>

#include <atomic>
#include <future>
#include <memory>
#include <new>
#include <thread>
#include <utility>
#include <vector>

using namespace dflow;
using namespace dflow::net;

namespace {

/// Has no memory for the first task.
class ForgetfulPool final : public ThreadPool {
 public:
  int num_threads() const noexcept override { return 1; }
  void schedule(Task task) override {
    if (!std::exchange(has_failed_, true)) throw std::bad_alloc();
    kept_.schedule(std::move(task));
  }
  bool current_thread_is_worker() const noexcept override { return kept_.current_thread_is_worker(); }

 private:
  bool has_failed_ = false;
  ElasticPool kept_;
};

}  // namespace

TEST_CASE("tasks of a strand run in the order of their posting, one at a time, those of three threads too", "[net]") {
  const auto strand = std::make_shared<Strand>(std::make_shared<WorkStealingPool>(4));
  std::vector<int> order[3];
  int running = 0, overlaps = 0;  // of the strand alone
  std::promise<void> done;
  std::atomic<int> left{3 * 500};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 500; ++i) {
        strand->post([&, t, i] {
          if (running++ != 0) ++overlaps;
          order[t].push_back(i);
          --running;
          if (--left == 0) done.set_value();
        });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  done.get_future().wait();
  CHECK(overlaps == 0);
  for (const std::vector<int>& of : order) {
    REQUIRE(of.size() == 500);
    for (int i = 0; i < 500; ++i) CHECK(of[static_cast<std::size_t>(i)] == i);
  }
}

TEST_CASE("a task that posts goes on after itself", "[net]") {
  const auto strand = std::make_shared<Strand>(std::make_shared<WorkStealingPool>(1));
  std::vector<int> order;
  std::promise<void> done;
  strand->post([&] {
    strand->post([&] {
      order.push_back(2);
      done.set_value();
    });
    order.push_back(1);
  });
  done.get_future().wait();
  CHECK(order == std::vector<int>{1, 2});
}

TEST_CASE("a strand goes on after its pool had no memory for it", "[net]") {
  const auto strand = std::make_shared<Strand>(std::make_shared<ForgetfulPool>());
  CHECK_THROWS_AS(strand->post([] {}), std::bad_alloc);
  std::promise<void> done;
  strand->post([&] { done.set_value(); });
  done.get_future().wait();
}
