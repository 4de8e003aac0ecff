#pragma once

#include <dflow/base/threads/elastic_pool.hpp>
#include <dflow/kernels/cpu/file_kernel.hpp>
#include <dflow/kernels/state/device_files.hpp>

#include <utility>

namespace dflow {

namespace detail {

/// The threads of a device that block on its files.
class FileThreads final : public Resource {
 public:
  std::string debug_string() const override { return "FileThreads"; }

  ElasticPool pool{{.max_threads = FileKernel::max_threads, .name = "dflow-files"}};
};

std::shared_ptr<ThreadPool> file_threads(const DeviceContext& device) {
  const auto make = [] { return std::make_shared<FileThreads>(); };
  const std::shared_ptr<FileThreads> threads =
      device.resources == nullptr
          ? make()
          : device.resources->container(DeviceFiles::container_name)->lookup_or_create<FileThreads>("threads", make);
  return {threads, &threads->pool};
}

}  // namespace detail

detail::FileKernel::FileKernel(const KernelInit& init, Work work) : work_(work), threads_(file_threads(init.device)) {}

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
