#pragma once

#include <dflow/kernels/contract/typed_kernel.hpp>
#include <dflow/kernels/cuda/bodies/moves.hpp>
#include <dflow/kernels/cuda/cuda.hpp>
#include <dflow/kernels/cuda/routines/copies.hpp>
#include <dflow/ops/data_flow/partition.hpp>

#include <cstdint>

namespace dflow {

namespace cuda {

/// The outputs are the rows of input 0 that input 1, on the host, gives to each.
void partition_rows(KernelContext& context);
/// Output 0 has the rows of the second half of the inputs where the first half, on the host, says.
void stitch_rows(KernelContext& context);
/// Outputs 0 and 1: the shards of the ids in input 0, and the rows there.
void find_rows_in_shards(KernelContext& context, const ShardOfRow::Attrs& attrs, const KernelFunction& function);

}  // namespace cuda

template <>
struct Kernel<DynamicPartition, Cuda> : cuda::NoStrings {
  static constexpr bool repeats = false;  // it uploads what it reads on the host
  static constexpr std::uint64_t host_inputs = 2;
  void operator()(KernelContext& context) const { cuda::partition_rows(context); }
};

template <>
struct Kernel<DynamicStitch, Cuda> : cuda::NoStrings {
  static constexpr bool repeats = false;  // it uploads what it reads on the host
  static constexpr std::uint64_t host_inputs = 1;
  void operator()(KernelContext& context) const { cuda::stitch_rows(context); }
};

template <class T>
struct Kernel<ShardOfRow, Cuda, T> {
  ShardOfRow::Attrs attrs;
  void operator()(KernelContext& context) const {
    cuda::find_rows_in_shards(context, attrs, cuda::kernel_function<cuda::ShardBody<T>>());
  }
};

}  // namespace dflow
