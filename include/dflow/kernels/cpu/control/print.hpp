#pragma once

#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/ops/control/print.hpp>

#include <atomic>
#include <cstdint>
#include <string>

namespace dflow {

namespace detail {

/// The first elements of a tensor in rows, as TensorFlow's SummarizeValue writes them: "[1 2][3...]...". Below 0: all.
/// Strings are written unchanged but for escapes of unprintable characters; bool as 1 and 0.
std::string summarized(const AnyTensor& tensor, std::int64_t max_elements);

class PrintKernel {
 public:
  static constexpr bool splits = false;
  static constexpr bool keeps_state = true;

  explicit PrintKernel(const KernelInit& init) : attrs_(init.node.attrs_as<Print>()) {}
  double cost_ns(const KernelInit&) const { return 2000; }
  void operator()(KernelContext& context) const;

 private:
  void write(const KernelContext& context) const;

  const Print::Attrs attrs_;
  mutable std::atomic<std::int64_t> lines_{0};
};

}  // namespace detail

template <>
struct Kernel<Print, Cpu> : detail::PrintKernel {
  using PrintKernel::PrintKernel;
};

}  // namespace dflow
