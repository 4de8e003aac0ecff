#include <dflow/session/session.hpp>

#include <dflow/dflow.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

using namespace dflow;

namespace {

/// A branch that is never taken.
struct Untaken : Op<"Untaken", TypeList<float>> {
  static void infer(InferContext& context) { context.set_output(0, context.input(0)); }
};

}  // namespace

template <>
struct dflow::Kernel<Untaken, Cpu, float> {
  static constexpr bool makes_dead_outputs = true;
  void operator()(KernelContext& context) const { context.set_output_dead(0); }
};

TEST_CASE("the error of a fetch that is dead names its node and the line of the program", "[session]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {});
  const auto line = __LINE__ + 1;
  const auto y = apply<Untaken>(x, {}, {.name = "other_side"});
  Session session(graph, {.ops = standard_ops + ops<Untaken>});
  const Status status = status_of([&] { return session.run({{x, 1.0f}}, y); });
  CHECK(status.code() == Code::invalid_argument);
  CHECK(status.node() == "other_side");
  CHECK(status.op() == "Untaken");
  CHECK(status.where().line() == line);
}
