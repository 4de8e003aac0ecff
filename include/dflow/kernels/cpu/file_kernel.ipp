#pragma once

#include <dflow/kernels/cpu/file_kernel.hpp>

#include <utility>

namespace dflow {

detail::FileKernel::FileKernel(Work work)
    : work_(work),
      threads_(std::make_unique<ElasticPool>(ElasticPoolOptions{.max_threads = 4, .name = "dflow-files"})) {}

void detail::FileKernel::run_async(KernelContext& context, AsyncKernel::Done done) const {
  threads_->schedule([work = work_, &context, done = std::move(done)]() mutable {
    Status status;
    try {
      work(context);
    } catch (...) {
      status = status_of_current_exception();
    }
    done(std::move(status));
  });
}

}  // namespace dflow
