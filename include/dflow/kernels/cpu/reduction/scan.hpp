#pragma once

#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/ops/reduction/scan.hpp>

namespace dflow {

namespace cpu {
enum class ScanRule : std::uint8_t { sum, product, linear };
/// The kernel of Cumsum, Cumprod and LinearScan. `initial`: of LinearScan.
void scan(KernelContext& context, ScanRule rule, ScanAttrs attrs, float initial = 0);
}  // namespace cpu

template <>
struct Kernel<Cumsum, Cpu> {
  ScanAttrs attrs;
  double cost_ns(const KernelInit& init) const { return 500 + estimated_elements(init.inputs[0]) * 2; }
  void operator()(KernelContext& context) const { cpu::scan(context, cpu::ScanRule::sum, attrs); }
};

template <>
struct Kernel<Cumprod, Cpu> {
  ScanAttrs attrs;
  double cost_ns(const KernelInit& init) const { return 500 + estimated_elements(init.inputs[0]) * 2; }
  void operator()(KernelContext& context) const { cpu::scan(context, cpu::ScanRule::product, attrs); }
};

template <>
struct Kernel<LinearScan, Cpu> {
  LinearScan::Attrs attrs;
  double cost_ns(const KernelInit& init) const { return 500 + estimated_elements(init.inputs[0]) * 2; }
  void operator()(KernelContext& context) const {
    cpu::scan(context, cpu::ScanRule::linear, {.exclusive = true, .reverse = attrs.reverse}, attrs.initial);
  }
};

}  // namespace dflow
