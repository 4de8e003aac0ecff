#pragma once

#include <dflow/dflow.hpp>

#include "inception_v3.hpp"

#include <cstdint>
#include <functional>
#include <utility>

/// A model with the tensors of Inception-v3 on an accelerator that does nothing for as long as it would compute.
namespace dflow::bench {

/// Runs a task after a duration on the program's clock. Set before anything runs.
inline std::function<void(Duration, Task)> accelerate;

/// Gives back its inputs, which have the shapes of the gradients: as many bytes, without memory of their own.
struct LayerGradient : Op<"LayerGradient", TypeList<float>> {
  struct Attrs {
    std::int64_t nanoseconds = 0;
  };
  using Inputs = In<T, T, T>;  // dy, weights, offsets
  using Outputs = Out<T, T, T>;

  static void infer(InferContext& context) {
    for (int i = 0; i < 3; ++i) context.set_output(i, context.input(i));
  }
};

/// Hands on its input after computing for the given nanoseconds.
struct Layer : Op<"Layer", TypeList<float>> {
  struct Attrs {
    std::int64_t nanoseconds = 0;
  };
  using Inputs = In<T, T, T>;  // x, weights, offsets

  static PartialShape infer(const Attrs&, PartialShape x, const PartialShape&, const PartialShape&) { return x; }
  /// The backward pass has two products where the forward pass has one.
  static void gradient(GradientContext& context) {
    const BuiltNode back = build<LayerGradient>({context.dy(), context.input(1), context.input(2)},
                                                {.nanoseconds = 2 * context.attrs<Layer>().nanoseconds});
    for (int i = 0; i < 3; ++i) context.set_dx(i, back.output(i));
  }
};

inline constexpr auto accelerated_ops = standard_ops + ops<Layer, LayerGradient>;

/// The loss of the model. Parameters are zeros, a `scale`th of their number. A step computes for `time`, which is
/// divided among the layers in proportion to their multiplications.
inline Output<float> accelerated_model(Graph& graph, Duration time, std::int64_t scale) {
  const InceptionV3 inception;
  double all = 0;
  for (const auto& layer : inception.layers()) all += layer.multiplications;
  Output<float> x = constant(graph, 1.0f);
  for (const auto& layer : inception.layers()) {
    const auto variable = [&](std::int64_t size) {
      return Variable<float>(graph, zeros<float>(graph, {(size + scale - 1) / scale}));
    };
    const double forwards = static_cast<double>(time.count()) / 3 * layer.multiplications / all;
    x = apply<Layer>(x, variable(layer.weights), variable(layer.offsets),
                     {.nanoseconds = static_cast<std::int64_t>(forwards)});
  }
  return x;
}

}  // namespace dflow::bench

template <>
struct dflow::Kernel<dflow::bench::Layer, dflow::Cpu, float> {
  bench::Layer::Attrs attrs;
  void run_async(KernelContext& context, AsyncKernel::Done done) const {
    context.set_output(0, context.input(0));
    bench::accelerate(Duration(attrs.nanoseconds), [done = std::move(done)]() mutable { done({}); });
  }
};

template <>
struct dflow::Kernel<dflow::bench::LayerGradient, dflow::Cpu, float> {
  bench::LayerGradient::Attrs attrs;
  void run_async(KernelContext& context, AsyncKernel::Done done) const {
    for (int i = 0; i < 3; ++i) context.set_output(i, context.input(i));
    bench::accelerate(Duration(attrs.nanoseconds), [done = std::move(done)]() mutable { done({}); });
  }
};
