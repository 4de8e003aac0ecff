#include <dflow/core/resource.hpp>

#include "catch.hpp"
#include "core/status_of.hpp"

#include <atomic>
#include <thread>

using namespace dflow;

namespace test {
struct Counter : Resource {
  explicit Counter(int start = 0) : value(start) {}
  std::string debug_string() const override { return "Counter(" + std::to_string(value.load()) + ")"; }
  std::atomic<int> value;
};
struct Queue : Resource {
  std::string debug_string() const override { return "Queue"; }
};
}  // namespace test

using test::Counter;
using test::Queue;

TEST_CASE("a resource is found by name and type", "[resource]") {
  ResourceContainer container("state");
  const auto counter = std::make_shared<Counter>(3);
  container.insert("c", counter);
  CHECK(container.lookup<Counter>("c") == counter);
  CHECK(container.lookup<Resource>("c") == counter);
  CHECK(container.lookup_if_exists<Counter>("d") == nullptr);
  CHECK(container.names() == std::vector<std::string>{"c"});
}

TEST_CASE("missing, mistyped, duplicate and nameless resources", "[resource]") {
  ResourceContainer container("state");
  container.insert("c", std::make_shared<Counter>(3));
  Status status = status_of([&] { return container.lookup<Counter>("x"); });
  CHECK(status.code() == Code::not_found);
  CHECK(status.message() == "there is no resource 'x' in container 'state'");
  status = status_of([&] { return container.lookup<Queue>("c"); });
  CHECK(status.code() == Code::invalid_argument);
  CHECK(status.message() == "resource 'c' is Counter(3), test::Queue was asked for");
  CHECK(status_of([&] { return container.lookup_if_exists<Queue>("c"); }).code() == Code::invalid_argument);
  const auto insert = [&](const char* name, std::shared_ptr<Resource> resource) {
    return status_of([&] { return container.insert(name, resource), 0; }).code();
  };
  CHECK(insert("c", std::make_shared<Queue>()) == Code::already_exists);
  CHECK(insert("", std::make_shared<Queue>()) == Code::invalid_argument);
  CHECK(insert("q", nullptr) == Code::invalid_argument);
}

TEST_CASE("lookup_or_create makes it once", "[resource]") {
  ResourceContainer container;
  int made = 0;
  const auto make = [&] {
    ++made;
    return std::make_shared<Counter>(made);
  };
  const auto first = container.lookup_or_create<Counter>("c", make);
  CHECK(container.lookup_or_create<Counter>("c", make) == first);
  CHECK(made == 1);
  CHECK(status_of([&] {
          return container.lookup_or_create<Queue>("c", [] { return std::make_shared<Queue>(); });
        }).code() == Code::invalid_argument);
  CHECK(status_of([&] {
          return container.lookup_or_create<Counter>("d",
                                                     []() -> std::shared_ptr<Counter> { throw Error(internal("no")); });
        }).code() == Code::internal);
  CHECK(status_of([&] {
          return container.lookup_or_create<Counter>("d", [] { return std::shared_ptr<Counter>(); });
        }).code() == Code::internal);
  CHECK(container.size() == 1);
}

TEST_CASE("a removed resource lives on with its holders", "[resource]") {
  ResourceContainer container;
  container.insert("c", std::make_shared<Counter>(3));
  const auto held = container.lookup<Counter>("c");
  CHECK(container.remove("c"));
  CHECK_FALSE(container.remove("c"));
  CHECK(held.use_count() == 1);
  container.insert("a", std::make_shared<Counter>());
  container.insert("b", std::make_shared<Queue>());
  container.clear();
  CHECK(container.size() == 0);
}

TEST_CASE("threads look up, create and remove at once", "[resource][stress]") {
  ResourceContainer container;
  std::atomic<int> alive{0};
  struct Tracked : Resource {
    explicit Tracked(std::atomic<int>& count) : count_(count) { ++count_; }
    ~Tracked() override { --count_; }
    std::string debug_string() const override { return "Tracked"; }
    std::atomic<int>& count_;
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 1000; ++i) {
        const std::string name = std::to_string(i % 7);
        const auto found = container.lookup_or_create<Tracked>(name, [&] { return std::make_shared<Tracked>(alive); });
        if (found->debug_string() != "Tracked") ++alive;
        if (i % 5 == t) container.remove(name);
        if (i % 300 == 299) container.clear();
        static_cast<void>(container.names());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(alive == static_cast<int>(container.size()));
  container.clear();
  CHECK(alive == 0);
}
