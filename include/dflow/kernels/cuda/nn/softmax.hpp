#pragma once

#include <dflow/kernels/cuda/bodies/softmax.hpp>
#include <dflow/kernels/cuda/cuda.hpp>
#include <dflow/kernels/cuda/routines/copies.hpp>
#include <dflow/kernels/cuda/routines/reductions.hpp>
#include <dflow/ops/nn/losses.hpp>
#include <dflow/ops/nn/softmax.hpp>

namespace dflow {

namespace cuda {

/// Output 0, of the shape of input 0 [..., columns], row by row of input 0.
void map_rows(KernelContext& context, const KernelFunction& function);
/// The same of inputs 0 and 1, of one shape.
void map_row_gradients(KernelContext& context, const KernelFunction& function);
/// Output 0 [...rows] and output 1 [...rows, columns] from input 0 [...rows, columns], and labels of the same shape.
void cross_entropy(KernelContext& context, const KernelFunction& function);
/// The same with a class in [0, columns) for each row.
void sparse_cross_entropy(KernelContext& context, const KernelFunction& function);
/// Output 0 [] is input 0 reduced over all dimensions.
void reduce_all_elements(KernelContext& context, const ReductionCode& code);

}  // namespace cuda

template <class T>
struct Kernel<Softmax, Cuda, T> {
  void operator()(KernelContext& context) const {
    cuda::map_rows(context, cuda::kernel_function<cuda::SoftmaxBody<T, false>>());
  }
};
template <class T>
struct Kernel<LogSoftmax, Cuda, T> {
  void operator()(KernelContext& context) const {
    cuda::map_rows(context, cuda::kernel_function<cuda::SoftmaxBody<T, true>>());
  }
};
template <class T>
struct Kernel<SoftmaxGrad, Cuda, T> {
  void operator()(KernelContext& context) const {
    cuda::map_row_gradients(context, cuda::kernel_function<cuda::SoftmaxGradBody<T, false>>());
  }
};
template <class T>
struct Kernel<LogSoftmaxGrad, Cuda, T> {
  void operator()(KernelContext& context) const {
    cuda::map_row_gradients(context, cuda::kernel_function<cuda::SoftmaxGradBody<T, true>>());
  }
};

template <class T>
struct Kernel<SoftmaxCrossEntropyWithLogits, Cuda, T> {
  void operator()(KernelContext& context) const {
    cuda::cross_entropy(context, cuda::kernel_function<cuda::CrossEntropyBody<T>>());
  }
};
template <class T, class Index>
struct Kernel<SparseSoftmaxCrossEntropyWithLogits, Cuda, T, Index> {
  void operator()(KernelContext& context) const {
    cuda::sparse_cross_entropy(context, cuda::kernel_function<cuda::SparseCrossEntropyBody<T, Index>>());
  }
};

template <class T>
struct Kernel<L2Loss, Cuda, T> {
  void operator()(KernelContext& context) const {
    cuda::reduce_all_elements(context, cuda::reduction_code<cuda::detail::HalfSquareReduction, T>());
  }
};

}  // namespace dflow
