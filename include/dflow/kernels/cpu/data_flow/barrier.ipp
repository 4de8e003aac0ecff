#pragma once

#include <dflow/kernels/cpu/data_flow/barrier.hpp>
#include <dflow/state/queue_state.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace dflow {

namespace detail {

void put_out(KernelContext& context, const BarrierState::Kind& kind, const std::vector<BarrierState::Element>& taken) {
  const Shape rows{static_cast<std::int64_t>(taken.size())};
  std::int64_t* const indices = context.allocate_output<std::int64_t>(0, rows).data();
  std::string* const keys = context.allocate_output<std::string>(1, rows).data();
  for (std::size_t i = 0; i < taken.size(); ++i) {
    indices[i] = taken[i].index;
    keys[i] = taken[i].key;
  }
  const QueueState::Kind joined{.dtypes = kind.dtypes, .shapes = kind.shapes};
  std::vector<QueuedElements> parts(taken.size());
  for (std::size_t i = 0; i < taken.size(); ++i) {
    parts[i].is_single = true;
    parts[i].components = taken[i].components;
  }
  for (std::size_t c = 0; c < kind.dtypes.size(); ++c) {
    context.set_output(static_cast<int>(c) + 2, join_elements(parts, c, joined, false, *context.device().allocator));
  }
}

}  // namespace detail

void Kernel<BarrierTakeMany, Cpu>::run_async(KernelContext& context, AsyncKernel::Done done) const {
  BarrierState& barrier = context.resource<BarrierState>(0);
  if (barrier.kind().dtypes != attrs.component_types) {
    context.fail(str_cat(barrier.debug_string(), " has other components than are taken out"));
  }
  barrier.take_async(
      {context.scalar_input<std::int32_t>(1), attrs.allow_small_batch, attrs.wait_for_incomplete},
      context.step().cancellation,
      [&context, &barrier, done = std::move(done)](Status status, std::vector<BarrierState::Element> taken) mutable {
        try {
          if (status.ok()) detail::put_out(context, barrier.kind(), taken);
        } catch (...) {
          status = status_of_current_exception();
          barrier.give_back(std::move(taken));
        }
        done(std::move(status));
      });
}

}  // namespace dflow
