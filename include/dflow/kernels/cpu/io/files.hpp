#pragma once

#include <dflow/kernels/cpu/file_kernel.hpp>
#include <dflow/ops/io/files.hpp>

#include <mutex>

namespace dflow {

namespace detail {

void read_whole_file(KernelContext& context);
void write_whole_file(KernelContext& context);
void find_matching_files(KernelContext& context);

/// The file is read in the first run that gets so far, once for each run that begins before it has been read.
class ImmutableConstKernel : FileKernel {
 public:
  explicit ImmutableConstKernel(const KernelInit& init);
  void run_async(KernelContext& context, AsyncKernel::Done done) const;

 private:
  mutable std::mutex mutex_;
  mutable AnyTensor kept_;  ///< empty before; guarded by the mutex
};

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
struct Kernel<ImmutableConst, Cpu> : detail::ImmutableConstKernel {
  using ImmutableConstKernel::ImmutableConstKernel;
};
template <>
struct Kernel<MatchingFiles, Cpu> : detail::FileKernel {
  explicit Kernel(const KernelInit& init) : FileKernel(init, &detail::find_matching_files) {}
};

}  // namespace dflow
