#include <dflow/runtime/plan/plan.hpp>

#include <dflow/dflow.hpp>
#include <dflow/passes/prune.hpp>
#include <dflow/runtime/cpu_device.hpp>

#include "catch.hpp"

#include <algorithm>
#include <memory>
#include <vector>

using namespace dflow;

namespace {

/// A thousand operations an element, as its kernel says.
struct Heavy : Op<"Heavy", TypeList<float>> {
  static PartialShape infer(const Attrs&, PartialShape x) { return x; }
};
/// An op that does not state its cost.
struct Silent : Op<"Silent", TypeList<float>> {
  static PartialShape infer(const Attrs&, PartialShape x) { return x; }
};
constexpr auto plan_cost_ops = standard_ops + ops<Heavy, Silent>;

}  // namespace

template <>
struct dflow::Kernel<Heavy, Cpu, float> {
  static KernelCost cost(const KernelInit& init) {
    return {.flops = 1000 * static_cast<double>(init.inputs[0].shape[0]), .bytes = 0};
  }
  void operator()(KernelContext& context) const { context.set_output(0, context.input(0)); }
};
template <>
struct dflow::Kernel<Silent, Cpu, float> {
  void operator()(KernelContext& context) const { context.set_output(0, context.input(0)); }
};

TEST_CASE("flops and bytes of a kernel table's row decide what is worth another thread", "[runtime][plan]") {
  const OpSet ops = plan_cost_ops;
  const CpuDevice device(CpuDeviceOptions{.pool = std::make_shared<WorkStealingPool>(4)});
  const auto expensive_units = [&]<class O>(std::int64_t elements) {
    Graph graph;
    const auto x = placeholder<float>(graph, {elements});
    StepGraph step = prune(*graph.store(), std::vector{x.endpoint()},
                           std::vector{apply<O>(x).endpoint(), apply<O>(x).endpoint()}, {});
    PlanOptions options;
    options.kernels = &ops.kernels();
    options.device = &device.context();
    options.inter_op = InterOp::parallel;
    const auto plan = Plan::compile(std::move(step), options);
    return std::count_if(plan->units().begin(), plan->units().end(),
                         [](const Plan::Unit& unit) { return unit.is_expensive; });
  };
  CHECK(expensive_units.operator()<Heavy>(1) == 0);
  CHECK(expensive_units.operator()<Heavy>(1000) == 2);
  CHECK(expensive_units.operator()<Silent>(1000) == 0);
  CHECK(expensive_units.operator()<Silent>(1'000'000) == 2);  // four megabytes each way
}
