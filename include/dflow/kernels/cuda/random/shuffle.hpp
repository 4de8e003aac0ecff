#pragma once

#include <dflow/kernels/cuda/routines/copies.hpp>
#include <dflow/kernels/state/node_stream.hpp>
#include <dflow/ops/random/shuffle.hpp>

namespace dflow {

namespace cuda {

/// Output 0 is the rows of input 0 in random order.
void shuffle_rows(KernelContext& context, const dflow::detail::NodeStream& stream);

}  // namespace cuda

template <>
struct Kernel<RandomShuffle, Cuda> : cuda::NoStrings {
  explicit Kernel(const KernelInit& init)
      : stream_(init, init.node.attrs_as<RandomShuffle>().seed, init.node.attrs_as<RandomShuffle>().seed2) {}
  void operator()(KernelContext& context) const { cuda::shuffle_rows(context, stream_); }

 private:
  dflow::detail::NodeStream stream_;
};

}  // namespace dflow
