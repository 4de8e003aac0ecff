#pragma once

#include <dflow/kernels/cpu/array/element_copy.hpp>
#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/kernels/shared/list_kernels.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

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
};

/// Those that move all elements.
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
template <class T>
struct Kernel<TensorListFromTensor, Cpu, T> : detail::UnstackListKernel {};
template <class T>
struct Kernel<TensorListSplit, Cpu, T> : detail::SplitListKernel {};
template <class T, class U>
struct Kernel<TensorListGetItem, Cpu, T, U> : detail::GetListItemKernel<detail::CpuListElements> {};
template <class T, class U>
struct Kernel<TensorListSetItem, Cpu, T, U> : detail::SetListItemKernel {};
template <class T>
struct Kernel<TensorListPushBack, Cpu, T> : detail::PushListItemKernel {};
template <class T>
struct Kernel<TensorListPopBack, Cpu, T> : detail::PopListItemKernel<detail::CpuListElements> {};
template <class T>
struct Kernel<TensorListScatter, Cpu, T> : detail::ScatterListKernel<detail::CpuListElements> {};
template <>
struct Kernel<TensorListSum, Cpu> : detail::SumListsKernel<detail::CpuListElements> {};
template <class T, class U>
struct Kernel<TensorListOne, Cpu, T, U> : detail::OneInListKernel {};
template <>
struct Kernel<TensorListOneList, Cpu> : detail::OneListInListKernel {};
template <class T>
struct Kernel<TensorListUnset, Cpu, T> : detail::UnsetListItemKernel {};

template <class T>
struct Kernel<TensorListStack, Cpu, T> : detail::CpuListCopy<detail::StackListKernel<detail::CpuListElements>> {};
template <class T>
struct Kernel<TensorListToTensor, Cpu, T> : detail::CpuListCopy<detail::ListToTensorKernel<detail::CpuListElements>> {};
template <class T>
struct Kernel<TensorListGather, Cpu, T> : detail::CpuListCopy<detail::GatherListKernel<detail::CpuListElements>> {};
template <class T>
struct Kernel<TensorListGatherRows, Cpu, T>
    : detail::CpuListCopy<detail::GatherListRowsKernel<detail::CpuListElements>> {};
template <class T>
struct Kernel<TensorListConcatV2, Cpu, T> : detail::ConcatListKernel<detail::CpuListElements> {
  double cost_ns(const KernelInit& init) const { return detail::move_cost_ns(init); }
};

template <>
struct Kernel<KeptListPush, Cpu> : detail::PushKeptKernel {};
template <class T>
struct Kernel<KeptElement, Cpu, T> : detail::KeptElementKernel<T> {};
template <>
struct Kernel<KeptHandleElement, Cpu> : detail::KeptHandleElementKernel {};
template <>
struct Kernel<KeptListElement, Cpu> : detail::KeptListElementKernel {};

}  // namespace dflow
