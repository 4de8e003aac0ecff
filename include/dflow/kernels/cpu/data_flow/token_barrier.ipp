#pragma once

#include <dflow/kernels/cpu/data_flow/token_barrier.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace dflow {

namespace detail {

TokenBarrierState& barrier_input(const KernelContext& context) { return context.resource<TokenBarrierState>(0); }

std::int64_t step_input(const KernelContext& context, int i) { return context.scalar_input<std::int64_t>(i); }

void set_ranks(KernelContext& context, int i, const std::vector<std::int32_t>& ranks) {
  Tensor<std::int32_t>& output = context.allocate_output<std::int32_t>(i, {static_cast<std::int64_t>(ranks.size())});
  std::copy(ranks.begin(), ranks.end(), output.data());
}

}  // namespace detail

void Kernel<TokenBarrierOpen, Cpu>::operator()(KernelContext& context) const {
  const Tensor<std::int32_t>& left = context.input<std::int32_t>(3);
  detail::barrier_input(context).open(detail::step_input(context, 1), detail::step_input(context, 2),
                                      {left.data(), static_cast<std::size_t>(left.num_elements())});
}

void Kernel<TokenBarrierArrive, Cpu>::operator()(KernelContext& context) const {
  detail::barrier_input(context).arrive(attrs.rank, detail::step_input(context, 1));
}

void Kernel<TokenBarrierWait, Cpu>::run_async(KernelContext& context, AsyncKernel::Done done) const {
  detail::barrier_input(context).wait_async(
      attrs.rank, detail::step_input(context, 1), context.step().cancellation,
      [&context, done = std::move(done)](Status status, std::int64_t step) mutable {
        try {
          if (status.ok()) *context.allocate_output<std::int64_t>(0, {}).data() = step;
        } catch (...) {
          status = status_of_current_exception();
        }
        done(std::move(status));
      });
}

void Kernel<TokenBarrierCollect, Cpu>::run_async(KernelContext& context, AsyncKernel::Done done) const {
  detail::barrier_input(context).collect_async(
      detail::step_input(context, 1), context.step().cancellation,
      [&context, done = std::move(done)](Status status, const TokenBarrierState::Collected& collected) mutable {
        try {
          if (status.ok()) {
            detail::set_ranks(context, 0, collected.arrived);
            detail::set_ranks(context, 1, collected.left);
          }
        } catch (...) {
          status = status_of_current_exception();
        }
        done(std::move(status));
      },
      context.scalar_input<bool>(2));
}

void Kernel<TokenBarrierAdvance, Cpu>::operator()(KernelContext& context) const {
  detail::barrier_input(context).advance(detail::step_input(context, 1), detail::step_input(context, 2));
}

void Kernel<TokenBarrierLeave, Cpu>::run_async(KernelContext& context, AsyncKernel::Done done) const {
  TokenBarrierState& barrier = detail::barrier_input(context);
  const CancellationToken& cancellation = context.step().cancellation;
  if (attrs.ends_all) return barrier.end_async(attrs.rank, cancellation, std::move(done));
  barrier.leave_async(attrs.rank, cancellation, std::move(done), attrs.for_good);
}

void Kernel<TokenBarrierDropMissing, Cpu>::operator()(KernelContext& context) const {
  using GiveUp = TokenBarrierState::GiveUp;
  const GiveUp which = attrs.gives_up == "lost"   ? GiveUp::lost
                       : attrs.gives_up == "none" ? GiveUp::none
                                                  : GiveUp::missing;
  detail::set_ranks(context, 0, detail::barrier_input(context).drop_missing(detail::step_input(context, 1), which));
}

void Kernel<TokenBarrierHold, Cpu>::run_async(KernelContext& context, AsyncKernel::Done done) const {
  TokenBarrierState& barrier = detail::barrier_input(context);
  const CancellationToken& cancellation = context.step().cancellation;
  if (attrs.rank >= 0) return barrier.hold_replica_async(attrs.rank, cancellation, std::move(done));
  barrier.hold_leader_async(detail::step_input(context, 1), cancellation, std::move(done));
}

void Kernel<TokenBarrierClose, Cpu>::operator()(KernelContext& context) const {
  using Close = TokenBarrierState::Close;
  const Close why = attrs.reason == "late"      ? Close::late
                    : attrs.reason == "done"    ? Close::done
                    : attrs.reason == "stopped" ? Close::stopped
                                                : Close::lost;
  detail::barrier_input(context).close(why, detail::step_input(context, 1));
}

}  // namespace dflow
