#pragma once

#include <dflow/kernels/cuda/array/kernel.hpp>
#include <dflow/kernels/cuda/array/list_bodies.hpp>
#include <dflow/kernels/shared/list_kernels.hpp>

#include <cstdint>

namespace dflow {

namespace cuda {

/// `Elements` of <dflow/kernels/shared/list_elements.hpp> in a GPU's memory. A list is an object of the host, its
/// elements are tensors of the GPU.
struct ListElements {
  static AnyTensor zeros(KernelContext& context, int output, const Shape& shape);
  template <class Find>
  static void put_rows(KernelContext& context, std::int64_t rows, std::int64_t count, Find find) {
    put_parts(context, rows, [&](std::int64_t i) { return dflow::detail::ListPart{find(i), i * count, count}; });
  }
  template <class Part>
  static void put_parts(KernelContext& context, std::int64_t parts, Part part) {
    Batch batch(context);
    for (std::int64_t i = 0; i < parts; ++i) batch.add(part(i));
    batch.issue();
  }
  static void add(KernelContext& context, AnyTensor& sum, const AnyTensor& more);

 private:
  /// Parts that one launch copies.
  class Batch {
   public:
    explicit Batch(KernelContext& context);
    void add(const dflow::detail::ListPart& part);
    void issue();

   private:
    KernelContext& context_;
    PartsArgs args_;
    MemoryUses uses_;
  };
};

}  // namespace cuda

// What is computed on the host, numbers and shapes, is in its memory.

template <>
struct Kernel<EmptyTensorList, Cuda> : detail::EmptyListKernel {};
template <>
struct Kernel<TensorListReserve, Cuda> : detail::ReserveListKernel {
  static constexpr std::uint64_t host_inputs = 1;
};
template <>
struct Kernel<TensorListLength, Cuda> : detail::ListLengthKernel {
  static constexpr std::uint64_t host_outputs = 1;
};
template <>
struct Kernel<TensorListResize, Cuda> : detail::ResizeListKernel {
  static constexpr std::uint64_t host_inputs = 2;
};
template <class T>
  requires cuda::is_device_type<T>
struct Kernel<TensorListFromTensor, Cuda, T> : detail::UnstackListKernel {};
template <class T>
  requires cuda::is_device_type<T>
struct Kernel<TensorListSplit, Cuda, T> : detail::SplitListKernel {
  static constexpr std::uint64_t host_inputs = 6;
};
template <class T, class U>
  requires cuda::is_device_type<T>
struct Kernel<TensorListGetItem, Cuda, T, U> : detail::GetListItemKernel<cuda::ListElements> {
  static constexpr std::uint64_t host_inputs = 6;
};
template <class T, class U>
  requires cuda::is_device_type<T>
struct Kernel<TensorListSetItem, Cuda, T, U> : detail::SetListItemKernel {
  static constexpr std::uint64_t host_inputs = 2;
};
template <class T>
  requires cuda::is_device_type<T>
struct Kernel<TensorListPushBack, Cuda, T> : detail::PushListItemKernel {
  static constexpr std::uint64_t host_outputs = 2;
};
template <class T>
  requires cuda::is_device_type<T>
struct Kernel<TensorListPopBack, Cuda, T> : detail::PopListItemKernel<cuda::ListElements> {
  static constexpr std::uint64_t host_inputs = 2, host_outputs = 4;
};
template <class T>
  requires cuda::is_device_type<T>
struct Kernel<TensorListScatter, Cuda, T> : detail::ScatterListKernel<cuda::ListElements> {
  static constexpr std::uint64_t host_inputs = 6;
};
template <>
struct Kernel<TensorListSum, Cuda> : detail::SumListsKernel<cuda::ListElements> {};
template <class T, class U>
  requires cuda::is_device_type<T>
struct Kernel<TensorListOne, Cuda, T, U> : detail::OneInListKernel {
  static constexpr std::uint64_t host_inputs = 1;
};
template <>
struct Kernel<TensorListOneList, Cuda> : detail::OneListInListKernel {
  static constexpr std::uint64_t host_inputs = 1;
};
template <class T>
struct Kernel<TensorListUnset, Cuda, T> : detail::UnsetListItemKernel {
  static constexpr std::uint64_t host_inputs = 2;
};

template <class T>
  requires cuda::is_device_type<T>
struct Kernel<TensorListStack, Cuda, T> : detail::StackListKernel<cuda::ListElements> {
  static constexpr std::uint64_t host_inputs = 2;
};
template <class T>
  requires cuda::is_device_type<T>
struct Kernel<TensorListToTensor, Cuda, T> : detail::ListToTensorKernel<cuda::ListElements> {
  static constexpr std::uint64_t host_inputs = 2;
};
template <class T>
  requires cuda::is_device_type<T>
struct Kernel<TensorListGather, Cuda, T> : detail::GatherListKernel<cuda::ListElements> {
  static constexpr std::uint64_t host_inputs = 6;
};
template <class T>
  requires cuda::is_device_type<T>
struct Kernel<TensorListGatherRows, Cuda, T> : detail::GatherListRowsKernel<cuda::ListElements> {
  static constexpr std::uint64_t host_inputs = 6;
};
template <class T>
  requires cuda::is_device_type<T>
struct Kernel<TensorListConcatV2, Cuda, T> : detail::ConcatListKernel<cuda::ListElements> {
  static constexpr std::uint64_t host_inputs = 6, host_outputs = 2;
};

template <>
struct Kernel<KeptListPush, Cuda> : detail::PushKeptKernel {};
template <class T>
  requires cuda::is_device_type<T>
struct Kernel<KeptElement, Cuda, T> : detail::KeptElementKernel<T> {
  static constexpr std::uint64_t host_inputs = 2;
};
template <>
struct Kernel<KeptHandleElement, Cuda> : detail::KeptHandleElementKernel {
  static constexpr std::uint64_t host_inputs = 2;
};
template <>
struct Kernel<KeptListElement, Cuda> : detail::KeptListElementKernel {
  static constexpr std::uint64_t host_inputs = 2;
};

}  // namespace dflow
