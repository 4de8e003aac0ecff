#pragma once

#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/ops/array/bitcast.hpp>

#include <cstddef>
#include <cstring>

namespace dflow {

template <>
struct Kernel<Bitcast, Cpu> {
  static constexpr bool splits = false;
  double cost_ns(const KernelInit&) const { return 150; }

  void operator()(KernelContext& context) const {
    const Shape shape = detail::inferred_shape(context);
    const AnyTensor& x = context.input(0);
    const DType to = context.output_dtype(0);
    if (x.bytes() == 0 || !x.is_aligned()) {
      AnyTensor& y = context.allocate_output(0, shape);
      if (x.bytes() != 0) std::memcpy(y.raw_data(), x.raw_data(), x.bytes());
      return;
    }
    const auto* const begin = static_cast<const std::byte*>(x.buffer()->data());
    const std::ptrdiff_t offset = static_cast<const std::byte*>(x.raw_data()) - begin;
    context.set_output(0, AnyTensor::over(x.buffer(), static_cast<std::size_t>(offset), to, shape));
  }
};

}  // namespace dflow
