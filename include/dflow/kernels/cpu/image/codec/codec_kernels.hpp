#pragma once

#include <dflow/image/image.hpp>
#include <dflow/kernels/cpu/cpu_kernel.hpp>

namespace dflow {

/// A kernel that decodes or encodes one file, which takes from microseconds to seconds.
template <class Op>
struct CodecKernel {
  static constexpr bool splits = false;
  typename Op::Attrs attrs;

  double cost_ns(const KernelInit&) const { return 1e6; }
};

template <>
struct Kernel<DecodeJpeg, Cpu> : CodecKernel<DecodeJpeg> {
  void operator()(KernelContext& context) const;
};
template <>
struct Kernel<EncodeJpeg, Cpu> : CodecKernel<EncodeJpeg> {
  void operator()(KernelContext& context) const;
};
template <>
struct Kernel<DecodePng, Cpu> : CodecKernel<DecodePng> {
  void operator()(KernelContext& context) const;
};
template <>
struct Kernel<EncodePng, Cpu> : CodecKernel<EncodePng> {
  void operator()(KernelContext& context) const;
};
template <>
struct Kernel<DecodeImage, Cpu> : CodecKernel<DecodeImage> {
  void operator()(KernelContext& context) const;
};

}  // namespace dflow
