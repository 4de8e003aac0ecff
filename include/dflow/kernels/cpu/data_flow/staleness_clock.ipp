#pragma once

#include <dflow/kernels/cpu/data_flow/staleness_clock.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace dflow {

namespace detail {

StalenessClockState& clock_input(const KernelContext& context) { return context.resource<StalenessClockState>(0); }

std::int64_t number_input(const KernelContext& context) { return context.scalar_input<std::int64_t>(1); }

void set_number(KernelContext& context, std::int64_t number) {
  *context.allocate_output<std::int64_t>(0, {}).data() = number;
}

/// Ends the kernel with the number that a clock tells.
auto done_with_number(KernelContext& context, AsyncKernel::Done done) {
  return [&context, done = std::move(done)](Status status, std::int64_t number) mutable {
    try {
      if (status.ok()) set_number(context, number);
    } catch (...) {
      status = status_of_current_exception();
    }
    done(std::move(status));
  };
}

}  // namespace detail

void Kernel<StalenessClockJoin, Cpu>::run_async(KernelContext& context, AsyncKernel::Done done) const {
  StalenessClockState& clock = detail::clock_input(context);
  const CancellationToken& cancellation = context.step().cancellation;
  auto joined = detail::done_with_number(context, std::move(done));
  if (attrs.only_awaits) return clock.await_leader_async(attrs.rank, cancellation, std::move(joined));
  clock.join_async(attrs.rank, cancellation, std::move(joined));
}

void Kernel<StalenessClockLead, Cpu>::run_async(KernelContext& context, AsyncKernel::Done done) const {
  detail::clock_input(context).lead_async(attrs.rank, context.step().cancellation, std::move(done));
}

void Kernel<StalenessClockWait, Cpu>::run_async(KernelContext& context, AsyncKernel::Done done) const {
  detail::clock_input(context).wait_async(detail::number_input(context), context.step().cancellation,
                                          detail::done_with_number(context, std::move(done)));
}

void Kernel<StalenessClockTick, Cpu>::operator()(KernelContext& context) const {
  detail::clock_input(context).tick(detail::number_input(context));
}

void Kernel<StalenessClockLeave, Cpu>::run_async(KernelContext& context, AsyncKernel::Done done) const {
  StalenessClockState& clock = detail::clock_input(context);
  const CancellationToken& cancellation = context.step().cancellation;
  if (attrs.ends_all) return clock.end_async(attrs.rank, cancellation, std::move(done));
  clock.leave_async(attrs.rank, cancellation, std::move(done));
}

void Kernel<StalenessClockWatch, Cpu>::run_async(KernelContext& context, AsyncKernel::Done done) const {
  const Tensor<std::int32_t>& known = context.input<std::int32_t>(1);
  detail::clock_input(context).watch_async(
      {known.begin(), known.end()}, context.step().cancellation,
      [&context, done = std::move(done)](Status status, const std::vector<std::int32_t>& ranks) mutable {
        try {
          if (status.ok()) {
            const auto size = static_cast<std::int64_t>(ranks.size());
            std::copy(ranks.begin(), ranks.end(), context.allocate_output<std::int32_t>(0, {size}).data());
          }
        } catch (...) {
          status = status_of_current_exception();
        }
        done(std::move(status));
      });
}

void Kernel<StalenessClockDropLate, Cpu>::operator()(KernelContext& context) const {
  const std::int64_t since = detail::number_input(context);
  detail::set_number(context, detail::clock_input(context).drop_late(since, attrs.fails, attrs.only_names));
}

}  // namespace dflow
