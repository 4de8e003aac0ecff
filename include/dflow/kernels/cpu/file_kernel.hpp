#pragma once

#include <dflow/base/threads/thread_pool.hpp>
#include <dflow/kernels/cpu/cpu_kernel.hpp>

#include <memory>

namespace dflow::detail {

/// A kernel that blocks on files, in a thread of the device's file threads: the step's threads go on meanwhile. All
/// such kernels of a device share these threads, which are started when they are needed. Readers are not among them: a
/// reader that waits for its queue keeps its thread.
///
/// Thread safety: const after construction; runs may be concurrent.
class FileKernel {
 public:
  using Work = void (*)(KernelContext& context);

  /// No more runs of kernels of a device than this are under way at once; others wait.
  static constexpr int max_threads = 16;

  FileKernel(const KernelInit& init, Work work);
  void run_async(KernelContext& context, AsyncKernel::Done done) const;

 private:
  Work work_;
  std::shared_ptr<ThreadPool> threads_;
};

}  // namespace dflow::detail
