// For asynchronous kernels of tests that wait for ever.
#pragma once

#include <dflow/core/cancellation.hpp>
#include <dflow/kernels/contract/kernel.hpp>
#include <dflow/kernels/contract/kernel_context.hpp>

#include <memory>
#include <mutex>
#include <utility>

/// Calls `done` with the status that the kernel's step is cancelled with, and not before.
inline void end_when_cancelled(const dflow::KernelContext& context, dflow::AsyncKernel::Done done) {
  struct Waiting {
    std::mutex mutex;  ///< guards the registration: another thread may cancel before it is stored
    dflow::CancellationRegistration registration;
    dflow::AsyncKernel::Done done;
  };
  const auto waiting = std::make_shared<Waiting>();
  waiting->done = std::move(done);
  auto registration = context.step().cancellation.on_cancel([kept = waiting](const dflow::Status& why) mutable {
    const std::shared_ptr<Waiting> mine = std::move(kept);
    {
      const std::lock_guard lock(mine->mutex);
      static_cast<void>(mine->registration.try_deregister());
    }
    std::exchange(mine->done, nullptr)(why);
  });
  const std::lock_guard lock(waiting->mutex);
  waiting->registration = std::move(registration);
}
