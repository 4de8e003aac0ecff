#include <dflow/base/function_ref.hpp>

#include "catch.hpp"

#include <memory>
#include <utility>

using dflow::FunctionRef;

namespace {
int twice(int x) { return 2 * x; }
int apply(FunctionRef<int(int)> f, int x) { return f(x); }
}  // namespace

TEST_CASE("a FunctionRef calls lambdas, functions and const callables", "[function_ref]") {
  int calls = 0;
  CHECK(apply([&](int x) { return x + ++calls; }, 4) == 5);
  CHECK(calls == 1);
  CHECK(apply(twice, 4) == 8);
  CHECK(apply(&twice, 5) == 10);
  const auto minus = [](int x) { return -x; };
  CHECK(apply(minus, 4) == -4);
}

TEST_CASE("arguments are forwarded and a result may be dropped", "[function_ref]") {
  const auto open = [](std::unique_ptr<int> p) { return *p; };
  const FunctionRef<int(std::unique_ptr<int>)> ref = open;
  CHECK(ref(std::make_unique<int>(9)) == 9);
  const FunctionRef<void(int)> dropped = twice;
  dropped(1);
  int value = 1;
  const auto add = [](int& x) { ++x; };
  const FunctionRef<void(int&)> increment = add;
  increment(value);
  CHECK(value == 2);
}
