#pragma once

#include <dflow/base/threads/thread_pool.hpp>
#include <dflow/kernels/cpu/cpu_kernel.hpp>

#include <memory>

namespace dflow::detail {

/// A kernel that blocks on files, in one of the device's file threads. The threads of the step go on meanwhile. The
/// file kernels of a device share its file threads, which start when a kernel needs them. A reader has a thread of its
/// own, since it keeps the thread while it waits for its queue.
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
