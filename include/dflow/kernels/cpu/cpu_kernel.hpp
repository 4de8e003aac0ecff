#pragma once

#include <dflow/kernels/contract/typed_kernel.hpp>
#include <dflow/kernels/cpu/cpu.hpp>
#include <dflow/kernels/cpu/routines/options.hpp>

namespace dflow {

/// The state that all kernels of a CPU device share.
struct CpuState final : DeviceState {
  cpu::CpuOptions options;
};

/// How the CPU device that a kernel runs on computes: backend, instruction set, reproducibility, kernel cache.
inline const cpu::CpuOptions& cpu_options(const KernelContext& context) {
  return context.device().state_as<CpuState>().options;
}

/// The number of elements of an edge if it is known when a kernel is made, else `guess`: for cost estimates.
inline double estimated_elements(const OutputInfo& edge, double guess = 1000.0) {
  if (!edge.shape.has_rank()) return guess;
  double elements = 1;
  for (const std::int64_t dim : edge.shape.dims()) elements *= dim == dynamic ? 32.0 : static_cast<double>(dim);
  return elements;
}

}  // namespace dflow
