#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/graph/output.hpp>
#include <dflow/passes/prune.hpp>
#include <dflow/runtime/cpu_device.hpp>
#include <dflow/runtime/op_set.hpp>
#include <dflow/runtime/plan/plan.hpp>
#include <dflow/runtime/unit_queue.hpp>

#include <memory>
#include <utility>
#include <vector>

namespace dflow::testing {

/// Makes plans of a graph on one CPU device, and runs them.
struct Planned {
  Planned(OpSet op_set, std::shared_ptr<ThreadPool> thread_pool)
      : ops(std::move(op_set)),
        pool(std::move(thread_pool)),
        device(std::make_shared<CpuDevice>(CpuDeviceOptions{.pool = pool})),
        queue(std::make_shared<UnitQueue>(*pool)) {}

  std::shared_ptr<const Plan> plan(const Graph& graph, const std::vector<AnyOutput>& feeds,
                                   const std::vector<AnyOutput>& fetches, bool streams = false,
                                   InterOp inter_op = InterOp::parallel) const {
    std::vector<Endpoint> in, out;
    for (const AnyOutput& feed : feeds) in.push_back(feed.endpoint());
    for (const AnyOutput& fetch : fetches) out.push_back(fetch.endpoint());
    PlanOptions options;
    options.kernels = &ops.kernels();
    options.device = &device->context();
    options.device_owner = device;
    options.inter_op = inter_op;
    options.streams = streams;
    return Plan::compile(prune(*graph.store(), in, out, {}), options);
  }

  OpSet ops;
  std::shared_ptr<ThreadPool> pool;
  std::shared_ptr<CpuDevice> device;
  std::shared_ptr<UnitQueue> queue;
};

}  // namespace dflow::testing
