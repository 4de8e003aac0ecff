#pragma once

#include <dflow/kernels/contract/typed_kernel.hpp>
#include <dflow/kernels/cuda/bodies/moves.hpp>
#include <dflow/kernels/cuda/cuda.hpp>
#include <dflow/kernels/cuda/routines/copies.hpp>
#include <dflow/kernels/state/node_stream.hpp>
#include <dflow/ops/data_flow/partition.hpp>
#include <dflow/ops/random/shuffle.hpp>

#include <cstdint>

namespace dflow {

namespace cuda {

// Which row goes where is decided on the host, whose lists of it the GPU is given.

/// The outputs are the rows of input 0 that input 1, on the host, gives to each.
void partition_rows(KernelContext& context);
/// Output 0 has the rows of the second half of the inputs where the first half, on the host, says.
void stitch_rows(KernelContext& context);
/// Output 0 is the rows of input 0 in random order.
void shuffle_rows(KernelContext& context, const dflow::detail::NodeStream& stream);
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

template <>
struct Kernel<RandomShuffle, Cuda> : cuda::NoStrings {
  explicit Kernel(const KernelInit& init)
      : stream_(init, init.node.attrs_as<RandomShuffle>().seed, init.node.attrs_as<RandomShuffle>().seed2) {}
  void operator()(KernelContext& context) const { cuda::shuffle_rows(context, stream_); }

 private:
  dflow::detail::NodeStream stream_;
};

template <class T>
struct Kernel<ShardOfRow, Cuda, T> {
  ShardOfRow::Attrs attrs;
  void operator()(KernelContext& context) const {
    cuda::find_rows_in_shards(context, attrs, cuda::kernel_function<cuda::ShardBody<T>>());
  }
};

}  // namespace dflow
