#pragma once

#include <dflow/op/build.hpp>
#include <dflow/ops/math/matmul.hpp>
#include <dflow/ops/nn/activation.hpp>
#include <dflow/ops/nn/bias.hpp>
#include <dflow/ops/nn/conv2d.hpp>
#include <dflow/ops/nn/window.hpp>

#include <cstdint>
#include <vector>

// The pass `fuse` puts fused ops into a graph; they are never differentiated. Not for 16-bit floats: the unfused ops
// round after each op.

namespace dflow {

/// relu(a b + bias), or a b + bias: a, b, bias [n].
struct FusedMatMul : StandardOp<"_FusedMatMul", TypeList<float, double>> {
  struct Attrs {
    bool transpose_a = false;
    bool transpose_b = false;
    bool relu = false;
  };
  using Inputs = In<T, T, T>;
  using Fuses = TypeList<OpPair<MatMul, BiasAdd>, OpPair<FusedMatMul, Relu>>;
  static Attrs fuse(const MatMul::Attrs& product, const BiasAdd::Attrs&) {
    return {product.transpose_a, product.transpose_b, false};
  }
  static Attrs fuse(Attrs sum, const Relu::Attrs&) {
    sum.relu = true;
    return sum;
  }
  static void infer(InferContext& context);
};

/// relu(conv2d(x, filter) + bias), or without relu: x, filter, bias [out_channels].
struct FusedConv2D : StandardOp<"_FusedConv2D", TypeList<float, double>> {
  struct Attrs {
    std::vector<std::int64_t> strides{1, 1, 1, 1};
    Padding padding = Padding::valid;
    DataFormat data_format = DataFormat::nhwc;
    std::vector<std::int64_t> dilations{1, 1, 1, 1};
    bool relu = false;
    Conv2DAttrs convolution() const { return {strides, padding, data_format, dilations}; }
  };
  using Inputs = In<T, T, T>;
  using Fuses = TypeList<OpPair<Conv2D, BiasAdd>, OpPair<FusedConv2D, Relu>>;
  static Attrs fuse(const Conv2D::Attrs& conv, const BiasAdd::Attrs&) {
    return {conv.strides, conv.padding, conv.data_format, conv.dilations, false};
  }
  static Attrs fuse(Attrs sum, const Relu::Attrs&) {
    sum.relu = true;
    return sum;
  }
  static void infer(InferContext& context);
};

}  // namespace dflow
