#pragma once

#include <dflow/kernels/cpu/array/element_copy.hpp>
#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/kernels/shared/list_kernels.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace dflow {

namespace detail {

/// `Elements` of <dflow/kernels/shared/list_elements.hpp> in the host's memory.
struct CpuListElements {
  static AnyTensor zeros(KernelContext& context, int output, const Shape& shape) {
    return AnyTensor::zeros(context.output_dtype(output), shape, context.output_allocator(output));
  }
  static void put(const AnyTensor* found, AnyTensor& y, std::int64_t at, std::int64_t count) {
    if (found != nullptr) {
      copy_elements(y.dtype(), count, found->raw_data(), element(y, at));
    } else if (count > 0 && y.dtype() != DType::string) {
      std::memset(element(y, at), 0, static_cast<std::size_t>(count) * size_of(y.dtype()));
    }
  }
  template <class Find>
  static void put_rows(KernelContext& context, std::int64_t rows, std::int64_t count, Find find) {
    AnyTensor& y = context.output(0);
    for (std::int64_t row = 0; row < rows; ++row) put(find(row), y, row * count, count);
  }
  template <class Part>
  static void put_parts(KernelContext& context, std::int64_t parts, Part part) {
    AnyTensor& y = context.output(0);
    const double mean_count = static_cast<double>(y.num_elements()) / static_cast<double>(parts);
    const double cost_ns = 10 + mean_count * copy_cost_ns(y.dtype());
    context.pool().parallel_for(parts, cost_ns, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const ListPart each = part(i);
        put(each.from, y, each.at, each.count);
      }
    });
  }
  static void add(KernelContext& context, AnyTensor& sum, const AnyTensor& more) {
    add_list_elements(sum, more, *context.device().allocator);
  }
  static AnyTensor sum(KernelContext& context, std::span<const AnyTensor> terms) {
    return sum_of_list_elements(terms, *context.device().allocator);
  }
};

/// Kernels that move all elements of a list.
template <class Shared>
struct CpuListCopy : Shared {
  static constexpr bool splits = false;
  double cost_ns(const KernelInit& init) const { return move_cost_ns(init); }
};

}  // namespace detail

template <>
struct Kernel<EmptyTensorList, Cpu> : detail::EmptyListKernel {};
template <>
struct Kernel<TensorListReserve, Cpu> : detail::ReserveListKernel {};
template <>
struct Kernel<TensorListLength, Cpu> : detail::ListLengthKernel {};
template <>
struct Kernel<TensorListResize, Cpu> : detail::ResizeListKernel {};
template <>
struct Kernel<TensorListFromTensor, Cpu> : detail::UnstackListKernel {};
template <>
struct Kernel<TensorListSplit, Cpu> : detail::SplitListKernel {};
template <>
struct Kernel<TensorListGetItem, Cpu> : detail::GetListItemKernel<detail::CpuListElements> {};
template <>
struct Kernel<TensorListSetItem, Cpu> : detail::SetListItemKernel {};
template <>
struct Kernel<TensorListPushBack, Cpu> : detail::PushListItemKernel {};
template <>
struct Kernel<TensorListPopBack, Cpu> : detail::PopListItemKernel<detail::CpuListElements> {};
template <>
struct Kernel<TensorListScatter, Cpu> : detail::ScatterListKernel<detail::CpuListElements> {};
template <>
struct Kernel<TensorListSum, Cpu> : detail::SumListsKernel<detail::CpuListElements> {};
template <>
struct Kernel<TensorListOne, Cpu> : detail::OneInListKernel {};
template <>
struct Kernel<TensorListOneList, Cpu> : detail::OneListInListKernel {};
template <>
struct Kernel<TensorListUnset, Cpu> : detail::UnsetListItemKernel {};

template <>
struct Kernel<TensorListStack, Cpu> : detail::CpuListCopy<detail::StackListKernel<detail::CpuListElements>> {};
template <>
struct Kernel<TensorListToTensor, Cpu> : detail::CpuListCopy<detail::ListToTensorKernel<detail::CpuListElements>> {};
template <>
struct Kernel<TensorListGather, Cpu> : detail::CpuListCopy<detail::GatherListKernel<detail::CpuListElements>> {};
template <>
struct Kernel<TensorListGatherRows, Cpu> : detail::CpuListCopy<detail::GatherListRowsKernel<detail::CpuListElements>> {
};
template <>
struct Kernel<TensorListConcatV2, Cpu> : detail::ConcatListKernel<detail::CpuListElements> {
  double cost_ns(const KernelInit& init) const { return detail::move_cost_ns(init); }
};

template <>
struct Kernel<KeptListPush, Cpu> : detail::PushKeptKernel {};
template <>
struct Kernel<CallTape, Cpu> : detail::CallTapeKernel {};
template <>
struct Kernel<KeptElement, Cpu> : detail::KeptElementKernel {};
template <>
struct Kernel<KeptHandleElement, Cpu> : detail::KeptHandleElementKernel {};
template <>
struct Kernel<KeptListElement, Cpu> : detail::KeptListElementKernel {};

}  // namespace dflow
