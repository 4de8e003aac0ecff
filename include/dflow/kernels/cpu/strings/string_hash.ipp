#pragma once

#include <dflow/base/text/string_hash.hpp>
#include <dflow/kernels/cpu/strings/string_hash.hpp>

namespace dflow {

namespace detail {

template <class Hash>
void fill_buckets(const KernelContext& context, const Tensor<std::string>& texts, std::int64_t num_buckets,
                  Tensor<std::int64_t>& buckets, Hash hash) {
  each_text(context, texts.num_elements(), [&](std::int64_t i) {
    buckets.data()[i] = static_cast<std::int64_t>(hash(texts.data()[i]) % static_cast<std::uint64_t>(num_buckets));
  });
}

}  // namespace detail

void Kernel<StringToHashBucketFast, Cpu>::operator()(KernelContext& context, const Tensor<std::string>& texts,
                                                     Tensor<std::int64_t>& buckets) const {
  detail::fill_buckets(context, texts, attrs.num_buckets, buckets, farm_fingerprint64);
}

void Kernel<StringToHashBucketStrong, Cpu>::operator()(KernelContext& context, const Tensor<std::string>& texts,
                                                       Tensor<std::int64_t>& buckets) const {
  const std::array<std::uint64_t, 2> key{static_cast<std::uint64_t>(attrs.key[0]),
                                         static_cast<std::uint64_t>(attrs.key[1])};
  detail::fill_buckets(context, texts, attrs.num_buckets, buckets,
                       [&](const std::string& text) { return sip_hash(key, text); });
}

void Kernel<StringToHashBucket, Cpu>::operator()(KernelContext& context, const Tensor<std::string>& texts,
                                                 Tensor<std::int64_t>& buckets) const {
  detail::fill_buckets(context, texts, attrs.num_buckets, buckets, murmur_hash64);
}

}  // namespace dflow
