#pragma once

#include <dflow/kernels/cpu/strings/text_loop.hpp>
#include <dflow/ops/strings/string_hash.hpp>

namespace dflow {

template <>
struct Kernel<StringToHashBucketFast, Cpu> {
  StringToHashBucketFast::Attrs attrs;
  double cost_ns(const KernelInit& init) const { return detail::text_loop_cost_ns(init); }
  void operator()(KernelContext& context, const Tensor<std::string>& texts, Tensor<std::int64_t>& buckets) const;
};

template <>
struct Kernel<StringToHashBucketStrong, Cpu> {
  StringToHashBucketStrong::Attrs attrs;
  double cost_ns(const KernelInit& init) const { return detail::text_loop_cost_ns(init); }
  void operator()(KernelContext& context, const Tensor<std::string>& texts, Tensor<std::int64_t>& buckets) const;
};

template <>
struct Kernel<StringToHashBucket, Cpu> {
  StringToHashBucket::Attrs attrs;
  double cost_ns(const KernelInit& init) const { return detail::text_loop_cost_ns(init); }
  void operator()(KernelContext& context, const Tensor<std::string>& texts, Tensor<std::int64_t>& buckets) const;
};

}  // namespace dflow
