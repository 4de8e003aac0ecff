#pragma once

#include <dflow/base/threads/elastic_pool.hpp>
#include <dflow/kernels/cpu/cpu_kernel.hpp>

#include <memory>

namespace dflow::detail {

/// A kernel that blocks on files, in a thread of its own: the step's threads go on meanwhile.
///
/// Thread safety: const after construction; runs may be concurrent, at most four of them at once.
class FileKernel {
 public:
  using Work = void (*)(KernelContext& context);

  explicit FileKernel(Work work);
  void run_async(KernelContext& context, AsyncKernel::Done done) const;

 private:
  Work work_;
  std::unique_ptr<ElasticPool> threads_;
};

}  // namespace dflow::detail
