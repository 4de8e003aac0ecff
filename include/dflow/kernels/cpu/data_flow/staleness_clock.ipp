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

}  // namespace detail

void Kernel<StalenessClockJoin, Cpu>::operator()(KernelContext& context) const {
  detail::set_number(context, detail::clock_input(context).join(attrs.rank));
}

void Kernel<StalenessClockWait, Cpu>::run_async(KernelContext& context, AsyncKernel::Done done) const {
  detail::clock_input(context).wait_async(detail::number_input(context), context.step().cancellation,
                                          [&context, done = std::move(done)](Status status, std::int64_t step) mutable {
                                            try {
                                              if (status.ok()) detail::set_number(context, step);
                                            } catch (...) {
                                              status = status_of_current_exception();
                                            }
                                            done(std::move(status));
                                          });
}

void Kernel<StalenessClockTick, Cpu>::operator()(KernelContext& context) const {
  detail::clock_input(context).tick(detail::number_input(context));
}

void Kernel<StalenessClockLeave, Cpu>::run_async(KernelContext& context, AsyncKernel::Done done) const {
  detail::clock_input(context).leave_async(attrs.rank, context.step().cancellation, std::move(done));
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
