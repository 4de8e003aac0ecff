#include <dflow/runtime/op_set.hpp>

#include <dflow/dflow.hpp>

#include "catch.hpp"

using namespace dflow;

TEST_CASE("the first table of a type that has an op counts: given, added, then the list's own", "[kernels][ops]") {
  const auto table = [] { return KernelTable("CPU", {{.op = &op_def<Add>, .make = &make_library_kernel<Mul, Cpu>}}); };
  const KernelTable first = table(), second = table(), third = table();
  const auto add_of = [](const OpSet& set) { return set.kernels().find("CPU", "Add"); };
  OpSet added = ops<Add, Mul>;
  const KernelEntry* own = add_of(added);
  REQUIRE(own != nullptr);
  added.add(first);
  CHECK(add_of(added) == first.find("Add"));
  CHECK(added.kernels().find("CPU", "Mul") != nullptr);
  added.add(second);
  CHECK(add_of(added) == first.find("Add"));

  OpSet given(ops<Add, Mul>, {third});
  given.add(first);
  CHECK(add_of(given) == third.find("Add"));
  OpSet bare(OpTable(ops<Add>), {second});
  bare.add(first);
  CHECK(add_of(bare) == second.find("Add"));
}
