#pragma once

#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/contract/typed_kernel.hpp>
#include <dflow/kernels/cuda/bodies/random.hpp>
#include <dflow/kernels/cuda/cuda.hpp>
#include <dflow/kernels/state/node_stream.hpp>
#include <dflow/ops/random/random.hpp>

#include <cstdint>

namespace dflow {

namespace cuda::detail {

/// The kernel of a random op. Its input 0 is the shape of the output.
template <class O, class T>
class RandomKernel {
 public:
  explicit RandomKernel(const KernelInit& init)
      : stream_(init, init.node.attrs_as<O>().seed, init.node.attrs_as<O>().seed2) {}

 protected:
  template <class Distribution>
  void draw(KernelContext& context, const Distribution& distribution) const {
    const Shape shape = dflow::detail::inferred_shape(context);
    AnyTensor& y = context.allocate_output(0, shape);
    const PhiloxStream stream = stream_.reserve(shape.num_elements());
    if (y.num_elements() == 0) return;
    const RandomArgs<Distribution> args{y.num_elements(), stream, distribution, y.raw_data()};
    launch<RandomBody<T, Distribution>>(context, grid_for(args.n), args);
  }

 private:
  dflow::detail::NodeStream stream_;
};

template <class O, class T, class Distribution>
class PlainRandomKernel : public RandomKernel<O, T> {
 public:
  static constexpr std::uint64_t host_inputs = 1;
  using RandomKernel<O, T>::RandomKernel;

  void operator()(KernelContext& context) const { this->draw(context, Distribution{}); }
};

}  // namespace cuda::detail

template <class T>
struct Kernel<RandomUniform, Cuda, T> : cuda::detail::PlainRandomKernel<RandomUniform, T, UniformDistribution<T>> {
  using cuda::detail::PlainRandomKernel<RandomUniform, T, UniformDistribution<T>>::PlainRandomKernel;
};
template <class T>
struct Kernel<RandomStandardNormal, Cuda, T>
    : cuda::detail::PlainRandomKernel<RandomStandardNormal, T, NormalDistribution<T>> {
  using cuda::detail::PlainRandomKernel<RandomStandardNormal, T, NormalDistribution<T>>::PlainRandomKernel;
};
template <class T>
struct Kernel<TruncatedNormal, Cuda, T>
    : cuda::detail::PlainRandomKernel<TruncatedNormal, T, TruncatedNormalDistribution<T>> {
  using cuda::detail::PlainRandomKernel<TruncatedNormal, T, TruncatedNormalDistribution<T>>::PlainRandomKernel;
};
template <class T>
struct Kernel<RandomUniformInt, Cuda, T> : cuda::detail::RandomKernel<RandomUniformInt, T> {
  static constexpr std::uint64_t host_inputs = 7;
  using cuda::detail::RandomKernel<RandomUniformInt, T>::RandomKernel;

  void operator()(KernelContext& context) const {
    this->draw(context, UniformIntDistribution<T>::between(context.input<T>(1).scalar(), context.input<T>(2).scalar()));
  }
};

}  // namespace dflow
