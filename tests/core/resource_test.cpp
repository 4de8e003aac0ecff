#include <dflow/core/resource.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

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
          return container.lookup_or_create<Counter>(
              "d", []() -> std::shared_ptr<Counter> { throw Error(Status::internal("no")); });
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

TEST_CASE("a resource that is taken is the taker's", "[resource]") {
  ResourceContainer container;
  CHECK(container.take("c") == nullptr);
  CHECK(container.take_all().empty());
  const auto counter = std::make_shared<Counter>();
  container.insert("c", counter);
  CHECK(container.take("c") == counter);
  CHECK(container.take("c") == nullptr);
  CHECK(counter.use_count() == 1);
  container.insert("c", counter);
  container.insert("q", std::make_shared<Queue>());
  const auto taken = container.take_all();
  CHECK(container.size() == 0);
  REQUIRE(taken.size() == 2);
  CHECK(taken.find("c")->second == counter);
  CHECK(taken.find("q")->second->debug_string() == "Queue");
}

TEST_CASE("a container's generation changes when resources are dropped, and only then", "[resource]") {
  ResourceContainer container;
  const std::uint64_t at_first = container.generation();
  container.insert("c", std::make_shared<Counter>());
  container.lookup_or_create<Counter>("d", [] { return std::make_shared<Counter>(); });
  CHECK_FALSE(container.remove("x"));
  CHECK(container.take("x") == nullptr);
  CHECK(container.generation() == at_first);
  container.remove("c");
  const std::uint64_t after_remove = container.generation();
  CHECK(after_remove != at_first);
  container.take("d");
  const std::uint64_t after_take = container.generation();
  CHECK(after_take != after_remove);
  container.clear();
  CHECK(container.generation() != after_take);
}

TEST_CASE("containers are told apart by their whole name", "[resource]") {
  ResourceContainers containers;
  containers.container("x")->insert("y/z", std::make_shared<Counter>(1));
  containers.container("x/y")->insert("z", std::make_shared<Counter>(2));
  containers.container()->insert("z", std::make_shared<Counter>(3));
  CHECK(containers.container("x")->lookup<Counter>("y/z")->value == 1);
  CHECK(containers.container("x/y")->lookup<Counter>("z")->value == 2);
  CHECK(containers.container("")->lookup<Counter>("z")->value == 3);
  CHECK(containers.container("x")->name() == "x");
  CHECK(containers.names() == std::vector<std::string>{"", "x", "x/y"});
}

TEST_CASE("a reset empties one container, which stays the same for those who hold it", "[resource]") {
  ResourceContainers containers;
  const auto held = containers.container("a");
  const auto counter = std::make_shared<Counter>();
  held->insert("c", counter);
  containers.container("b")->insert("c", std::make_shared<Counter>());
  const std::uint64_t before = held->generation(), other = containers.container("b")->generation();
  CHECK(containers.reset("a"));
  CHECK_FALSE(containers.reset("never asked for"));
  CHECK(held->size() == 0);
  CHECK(counter.use_count() == 1);
  CHECK(held->generation() != before);
  CHECK(containers.container("a") == held);
  CHECK(containers.container("b")->size() == 1);
  CHECK(containers.container("b")->generation() == other);
  containers.clear();
  CHECK(containers.container("b")->size() == 0);
  CHECK(containers.names() == std::vector<std::string>{"a", "b"});
}

TEST_CASE("threads ask for containers and reset them at once", "[resource][stress]") {
  ResourceContainers containers;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 500; ++i) {
        const auto container = containers.container(std::to_string(i % 5));
        container->lookup_or_create<Counter>("c", [] { return std::make_shared<Counter>(); })->value++;
        if (i % 7 == t) containers.reset(std::to_string(i % 3));
        if (i % 100 == 99) containers.clear();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(containers.names().size() == 5);
}

TEST_CASE("whatever threads make is taken by one of them, once", "[resource][stress]") {
  ResourceContainer container;
  std::atomic<int> made{0}, taken{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 1000; ++i) {
        const std::string name = std::to_string(i % 3);
        container.lookup_or_create<Counter>(name, [&] { return std::make_shared<Counter>(++made); });
        if (i % 4 == t && container.take(name) != nullptr) ++taken;
        if (i % 50 == t) taken += static_cast<int>(container.take_all().size());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  taken += static_cast<int>(container.take_all().size());
  CHECK(taken == made);
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
