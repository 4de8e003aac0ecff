#include <dflow/base/unique_function.hpp>

#include "catch.hpp"

#include <array>
#include <memory>
#include <string>
#include <utility>

using dflow::UniqueFunction;

namespace {
/// Counts how many copies of a callable are alive.
struct Tracked {
  explicit Tracked(int& alive) : alive_(&alive) { ++*alive_; }
  Tracked(Tracked&& other) noexcept : alive_(other.alive_) { ++*alive_; }
  Tracked(const Tracked&) = delete;
  ~Tracked() { --*alive_; }
  int operator()() const { return *alive_; }
  int* alive_;
};
struct TrackedAndLarge : Tracked {
  using Tracked::Tracked;
  std::array<char, 100> filler{};
};
}  // namespace

TEST_CASE("an empty UniqueFunction is false", "[unique_function]") {
  UniqueFunction<void()> f;
  CHECK_FALSE(f);
  f = [] {};
  CHECK(f);
  f = nullptr;
  CHECK_FALSE(f);
}

TEST_CASE("it holds what only moves and moves on with it", "[unique_function]") {
  UniqueFunction<int(int)> f = [p = std::make_unique<int>(3)](int x) { return *p + x; };
  CHECK(f(4) == 7);
  UniqueFunction<int(int)> g = std::move(f);
  CHECK_FALSE(f);
  CHECK(g(5) == 8);
  f = std::move(g);
  CHECK(f(1) == 4);
}

TEST_CASE("state is kept between calls", "[unique_function]") {
  UniqueFunction<int()> count = [n = 0]() mutable { return ++n; };
  CHECK(count() == 1);
  UniqueFunction<int()> moved = std::move(count);
  CHECK(moved() == 2);
}

TEMPLATE_TEST_CASE("what is held is destroyed once, small or large", "[unique_function]", Tracked, TrackedAndLarge) {
  int alive = 0;
  {
    UniqueFunction<int()> f = TestType(alive);
    CHECK(alive == 1);
    UniqueFunction<int()> g = std::move(f);
    CHECK(alive == 1);
    CHECK(g() == 1);
    f = std::move(g);
    CHECK(alive == 1);
    f = [] { return 0; };
    CHECK(alive == 0);
    CHECK(f() == 0);
  }
  CHECK(alive == 0);
}

TEST_CASE("references pass through", "[unique_function]") {
  UniqueFunction<std::string&(std::string&)> f = [](std::string& s) -> std::string& { return s += "!"; };
  std::string text = "a";
  CHECK(&f(text) == &text);
  CHECK(text == "a!");
}
