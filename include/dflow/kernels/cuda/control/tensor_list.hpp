#pragma once

#include <dflow/kernels/cuda/bodies/lists.hpp>
#include <dflow/kernels/cuda/routines/copies.hpp>
#include <dflow/kernels/shared/list_kernels.hpp>

#include <cstdint>
#include <span>

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
  static AnyTensor sum(KernelContext& context, std::span<const AnyTensor> terms);

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

// Numbers and shapes are computed on the host and lie in its memory.

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
template <>
struct Kernel<TensorListFromTensor, Cuda> : detail::UnstackListKernel, cuda::NoStrings {};
template <>
struct Kernel<TensorListSplit, Cuda> : detail::SplitListKernel, cuda::NoStrings {
  static constexpr std::uint64_t host_inputs = 6;
};
template <>
struct Kernel<TensorListGetItem, Cuda> : detail::GetListItemKernel<cuda::ListElements>, cuda::NoStrings {
  static constexpr std::uint64_t host_inputs = 6;
};
template <>
struct Kernel<TensorListSetItem, Cuda> : detail::SetListItemKernel, cuda::NoStrings {
  static constexpr std::uint64_t host_inputs = 2;
};
template <>
struct Kernel<TensorListPushBack, Cuda> : detail::PushListItemKernel, cuda::NoStrings {
  static constexpr std::uint64_t host_outputs = 2;
};
template <>
struct Kernel<TensorListPopBack, Cuda> : detail::PopListItemKernel<cuda::ListElements>, cuda::NoStrings {
  static constexpr std::uint64_t host_inputs = 2, host_outputs = 4;
};
template <>
struct Kernel<TensorListScatter, Cuda> : detail::ScatterListKernel<cuda::ListElements>, cuda::NoStrings {
  static constexpr std::uint64_t host_inputs = 6;
};
template <>
struct Kernel<TensorListSum, Cuda> : detail::SumListsKernel<cuda::ListElements> {};
template <>
struct Kernel<TensorListOne, Cuda> : detail::OneInListKernel, cuda::NoStrings {
  static constexpr std::uint64_t host_inputs = 1;
};
template <>
struct Kernel<TensorListOneList, Cuda> : detail::OneListInListKernel {
  static constexpr std::uint64_t host_inputs = 1;
};
template <>
struct Kernel<TensorListUnset, Cuda> : detail::UnsetListItemKernel {
  static constexpr std::uint64_t host_inputs = 2;
};

template <>
struct Kernel<TensorListStack, Cuda> : detail::StackListKernel<cuda::ListElements>, cuda::NoStrings {
  static constexpr std::uint64_t host_inputs = 2;
};
template <>
struct Kernel<TensorListToTensor, Cuda> : detail::ListToTensorKernel<cuda::ListElements>, cuda::NoStrings {
  static constexpr std::uint64_t host_inputs = 2;
};
template <>
struct Kernel<TensorListGather, Cuda> : detail::GatherListKernel<cuda::ListElements>, cuda::NoStrings {
  static constexpr std::uint64_t host_inputs = 6;
};
template <>
struct Kernel<TensorListGatherRows, Cuda> : detail::GatherListRowsKernel<cuda::ListElements>, cuda::NoStrings {
  static constexpr std::uint64_t host_inputs = 6;
};
template <>
struct Kernel<TensorListConcatV2, Cuda> : detail::ConcatListKernel<cuda::ListElements>, cuda::NoStrings {
  static constexpr std::uint64_t host_inputs = 6, host_outputs = 2;
};

template <>
struct Kernel<KeptListPush, Cuda> : detail::PushKeptKernel {};
template <>
struct Kernel<CallTape, Cuda> : detail::CallTapeKernel {};
template <>
struct Kernel<KeptElement, Cuda> : detail::KeptElementKernel, cuda::NoStrings {
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
