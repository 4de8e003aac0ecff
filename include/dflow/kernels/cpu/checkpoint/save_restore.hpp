#pragma once

#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/kernels/cpu/file_kernel.hpp>
#include <dflow/ops/checkpoint/save_restore.hpp>

namespace dflow {

namespace detail {

void save_shard(KernelContext& context);
void restore_tensors(KernelContext& context);
void merge_shards(KernelContext& context);

}  // namespace detail

template <>
struct Kernel<SaveV2, Cpu> : detail::FileKernel {
  explicit Kernel(const KernelInit& init) : FileKernel(init, &detail::save_shard) {}
};
template <>
struct Kernel<RestoreV2, Cpu> : detail::FileKernel {
  explicit Kernel(const KernelInit& init) : FileKernel(init, &detail::restore_tensors) {}
};
template <>
struct Kernel<MergeV2Checkpoints, Cpu> : detail::FileKernel {
  explicit Kernel(const KernelInit& init) : FileKernel(init, &detail::merge_shards) {}
};

}  // namespace dflow
