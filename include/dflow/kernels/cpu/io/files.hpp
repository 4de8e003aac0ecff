#pragma once

#include <dflow/kernels/cpu/file_kernel.hpp>
#include <dflow/ops/io/files.hpp>

namespace dflow {

namespace detail {

void read_whole_file(KernelContext& context);
void write_whole_file(KernelContext& context);
void find_matching_files(KernelContext& context);

}  // namespace detail

template <>
struct Kernel<ReadFile, Cpu> : detail::FileKernel {
  explicit Kernel(const KernelInit& init) : FileKernel(init, &detail::read_whole_file) {}
};
template <>
struct Kernel<WriteFile, Cpu> : detail::FileKernel {
  explicit Kernel(const KernelInit& init) : FileKernel(init, &detail::write_whole_file) {}
};
template <>
struct Kernel<MatchingFiles, Cpu> : detail::FileKernel {
  explicit Kernel(const KernelInit& init) : FileKernel(init, &detail::find_matching_files) {}
};

}  // namespace dflow
