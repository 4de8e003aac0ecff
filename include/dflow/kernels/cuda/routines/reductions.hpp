#pragma once

#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/contract/typed_kernel.hpp>
#include <dflow/kernels/cuda/bodies/reductions.hpp>
#include <dflow/kernels/cuda/cuda.hpp>
#include <dflow/kernels/shared/dim_runs.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace dflow::cuda {

/// The two kernels of a reduction for one element type.
struct ReductionCode {
  const KernelFunction& (*by_thread)() = nullptr;
  const KernelFunction& (*by_block)() = nullptr;
};
template <class R, class T>
constexpr ReductionCode reduction_code() {
  using E = DeviceElement<T>;
  return {&kernel_function<ReduceByThreadBody<R, E>>, &kernel_function<ReduceByBlockBody<R, E>>};
}

/// Output 0 is input 0 reduced over the axes in input 1.
void reduce_axes(KernelContext& context, const ReductionCode& code);
/// Output 0 is input 0 reduced to the shape in input 1, which broadcasts to the shape of input 0.
void reduce_to_shape(KernelContext& context, const ReductionCode& code);
/// Output 0 [channels] is input 0 [..., channels], of rank 2 or more, reduced over all dimensions but the last.
void reduce_to_channels(KernelContext& context, const ReductionCode& code);
/// Output 0 is the position of an extreme of input 0 along the axis in input 1.
void find_extreme(KernelContext& context, const KernelFunction& function);
/// Output 0 is the sum of all inputs.
void add_inputs(KernelContext& context, const KernelFunction& function);
/// y = the sum of the terms in their order, all of n elements; y may be one of the first `AddNArgs::max_inputs`. `sums`
/// is null, or float [n], in which the sums of more 16-bit floats are kept. `uses`: all this memory.
void add_terms(const KernelContext& context, const KernelFunction& function, std::span<const void* const> terms,
               std::int64_t n, void* y, float* sums, const MemoryUses& uses);
/// Whether `add_terms` needs `sums`.
bool needs_wide_sums(DType dtype, std::size_t num_terms) noexcept;

}  // namespace dflow::cuda
