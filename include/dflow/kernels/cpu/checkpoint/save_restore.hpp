#pragma once

#include <dflow/base/threads/elastic_pool.hpp>
#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/ops/checkpoint/save_restore.hpp>

#include <memory>

namespace dflow {

namespace detail {

/// A kernel that blocks on files, in a thread of its own: those of the step go on meanwhile.
class FileKernel {
 public:
  using Work = void (*)(KernelContext& context);

  explicit FileKernel(Work work);
  void run_async(KernelContext& context, AsyncKernel::Done done) const;

 private:
  Work work_;
  std::unique_ptr<ElasticPool> threads_;
};

void save_shard(KernelContext& context);
void restore_tensors(KernelContext& context);
void merge_shards(KernelContext& context);

}  // namespace detail

template <>
struct Kernel<SaveV2, Cpu> : detail::FileKernel {
  explicit Kernel(const KernelInit&) : FileKernel(&detail::save_shard) {}
};
template <>
struct Kernel<RestoreV2, Cpu> : detail::FileKernel {
  explicit Kernel(const KernelInit&) : FileKernel(&detail::restore_tensors) {}
};
template <>
struct Kernel<MergeV2Checkpoints, Cpu> : detail::FileKernel {
  explicit Kernel(const KernelInit&) : FileKernel(&detail::merge_shards) {}
};

}  // namespace dflow

#if defined(DFLOW_HEADER_ONLY)
#include <dflow/kernels/cpu/checkpoint/save_restore.ipp>
#endif
