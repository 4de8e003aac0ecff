#pragma once

#include <dflow/dflow.hpp>
#include <dflow/kernels/cpu/elementwise/library_code.hpp>
#include <dflow/kernels/cpu/routines/array/rows.hpp>
#include <dflow/kernels/cpu/routines/array/transpose.hpp>
#include <dflow/kernels/cpu/routines/kernel_cache.hpp>
#include <dflow/kernels/cpu/routines/math/gemm.hpp>
#include <dflow/kernels/cpu/routines/math/reduce.hpp>
#include <dflow/kernels/cpu/routines/math/vector_math.hpp>
#include <dflow/kernels/cpu/routines/nn/batch_norm.hpp>
#include <dflow/kernels/cpu/routines/nn/bias.hpp>
#include <dflow/kernels/cpu/routines/nn/conv2d.hpp>
#include <dflow/kernels/cpu/routines/nn/pool2d.hpp>
#include <dflow/kernels/cpu/routines/nn/softmax.hpp>
#include <dflow/kernels/cpu/routines/state/optimizers.hpp>

#include "interleaved.hpp"

#include <algorithm>
#include <complex>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <tuple>
#include <unsupported/Eigen/CXX11/Tensor>
#include <utility>
#include <vector>

#include <dlfcn.h>
#include <dnnl.hpp>

/// The parts of the rows of kernels_eigen.cpp: numbers, Eigen's names for them, oneDNN's primitives, the library's
/// kernels.
namespace kernel_rows {

using namespace dflow;
using namespace dflow::cpu;

using Side = std::function<void()>;
/// An empty side is left out.
struct Sides {
  Side ours, eigen, onednn;
};
struct Row {
  std::string name;
  std::function<Sides()> make;
};
struct Family {
  const char* name;
  std::vector<const char*> files;  ///< under include/dflow/kernels/cpu/, each a header with the .ipp of its name if any
  std::vector<Row> rows;
};

inline InlinePool pool;
inline KernelCache cache;
inline const CpuOptions options{.cache = &cache};
inline const CpuOptions builtin{.backend = CpuBackend::builtin, .cache = &cache};

// --- numbers ---

template <class T>
struct Numbers {
  std::shared_ptr<Tensor<T>> tensor;
  T* data() const { return tensor->data(); }
};

template <class T = float>
Numbers<T> numbers(std::int64_t n, int scale = 1000) {
  Numbers<T> x{std::make_shared<Tensor<T>>(Tensor<T>::zeros({n}))};
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t at = i * 7919 % scale;
    if constexpr (std::is_integral_v<T>) {
      x.data()[i] = static_cast<T>(at);
    } else {
      x.data()[i] = T(static_cast<float>(at) * 0.004f - 1.998f);
    }
  }
  return x;
}

/// Scattered over [0, limit).
inline Numbers<std::int64_t> positions(std::int64_t n, std::int64_t limit) {
  auto x = numbers<std::int64_t>(n);
  for (std::int64_t i = 0; i < n; ++i) x.data()[i] = i * 7919 * 131 % limit;
  return x;
}

// --- Eigen's names for elements at a pointer ---

template <class T>
struct EigenElement {
  using type = T;
};
template <>
struct EigenElement<Half> {
  using type = Eigen::half;
};
template <>
struct EigenElement<BFloat16> {
  using type = Eigen::bfloat16;
};
template <class T>
auto flat(T* x, std::int64_t n) {
  using E = typename EigenElement<T>::type;
  return Eigen::Map<Eigen::Array<E, Eigen::Dynamic, 1>>(reinterpret_cast<E*>(x), n);
}
template <class T>
auto matrix(T* x, std::int64_t rows, std::int64_t columns) {
  using E = typename EigenElement<T>::type;
  using M = Eigen::Array<E, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  return Eigen::Map<M>(reinterpret_cast<E*>(x), rows, columns);
}
template <class T, class... Extents>
auto tensor(T* x, Extents... extents) {
  return Eigen::TensorMap<Eigen::Tensor<T, sizeof...(Extents), Eigen::RowMajor>>(x, static_cast<long>(extents)...);
}
using Axes1 = Eigen::array<int, 1>;
using Axes2 = Eigen::array<int, 2>;

// --- oneDNN ---

using Dims = std::vector<std::int64_t>;
using dnnl::memory;
inline const dnnl::engine& engine() {
  static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}
inline memory::desc packed(const Dims& dims, memory::data_type type = memory::data_type::f32) {
  Dims strides(dims.size(), 1);
  for (std::size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return {dims, type, strides};
}
inline memory::desc channels_last(const Dims& nchw) { return {nchw, memory::data_type::f32, memory::format_tag::nhwc}; }

struct Argument {
  int name;
  memory::desc desc;
  const void* data;
};
/// `make` gives the primitive; where oneDNN has none the side is left out.
template <class Make>
Side onednn(const Make& make, const std::vector<Argument>& arguments) try {
  const dnnl::primitive primitive = make();
  std::unordered_map<int, memory> memories;
  for (const Argument& a : arguments) memories[a.name] = memory(a.desc, engine(), const_cast<void*>(a.data));
  return [primitive, memories, stream = dnnl::stream(engine())]() mutable {
    primitive.execute(stream, memories);
    stream.wait();
  };
} catch (const dnnl::error&) {
  return {};
}
inline Side eltwise(dnnl::algorithm algorithm, std::int64_t n, const float* x, float* y, float alpha = 0) {
  const auto d = packed({n});
  return onednn(
      [&] {
        return dnnl::eltwise_forward({{dnnl::prop_kind::forward_inference, algorithm, d, alpha, 0.0f}, engine()});
      },
      {{DNNL_ARG_SRC, d, x}, {DNNL_ARG_DST, d, y}});
}
inline Side binary(dnnl::algorithm algorithm, const Dims& a_dims, const Dims& b_dims, const float* a, const float* b,
                   float* y) {
  const auto d = packed(a_dims), e = packed(b_dims);
  return onednn(
      [&] {
        return dnnl::binary({{algorithm, d, e, d}, engine()});
      },
      {{DNNL_ARG_SRC_0, d, a}, {DNNL_ARG_SRC_1, e, b}, {DNNL_ARG_DST, d, y}});
}
inline Side reduction(dnnl::algorithm algorithm, const Dims& from, const Dims& to, const float* x, float* y) {
  const auto d = packed(from), e = packed(to);
  return onednn(
      [&] {
        return dnnl::reduction({{algorithm, d, e, 0.0f, 0.0f}, engine()});
      },
      {{DNNL_ARG_SRC, d, x}, {DNNL_ARG_DST, e, y}});
}
template <class Softmax>
Side softmax_of(std::int64_t rows, std::int64_t columns, const float* x, float* y) {
  const auto d = packed({rows, columns});
  return onednn(
      [&] {
        return Softmax({{dnnl::prop_kind::forward_inference, d, 1}, engine()});
      },
      {{DNNL_ARG_SRC, d, x}, {DNNL_ARG_DST, d, y}});
}
inline Side reorder(const memory::desc& from, const memory::desc& to, const void* x, void* y) {
  return onednn(
      [&] {
        return dnnl::reorder({engine(), from, engine(), to});
      },
      {{DNNL_ARG_FROM, from, x}, {DNNL_ARG_TO, to, y}});
}

// --- rows ---

inline constexpr std::int64_t n = 100'000, million = 1'000'000, rows = 4096, columns = 1024, classes = 8000,
                              batch = 512;
inline constexpr std::int64_t images = 32, side = 56, channels = 64, pixels = images * side * side;

/// Inputs a and b of `inputs` elements and a result y of `outputs`: `ours` and `eigen` are called with them again and
/// again, `primitive` once, to make oneDNN's side.
template <class T = float, class R = T, class Ours, class Peer, class Primitive = std::nullptr_t>
Row row(const char* name, std::int64_t inputs, std::int64_t outputs, const Ours& ours, const Peer& eigen,
        const Primitive& primitive = nullptr) {
  return {name, [=] {
            const auto a = numbers<T>(inputs), b = numbers<T>(inputs, 997);
            const auto y = numbers<R>(outputs), z = numbers<R>(outputs);
            Sides sides;
            sides.ours = [=] { ours(a.data(), b.data(), y.data()); };
            if constexpr (!std::is_same_v<Peer, std::nullptr_t>)
              sides.eigen = [=] { eigen(a.data(), b.data(), z.data()); };
            if constexpr (!std::is_same_v<Primitive, std::nullptr_t>)
              sides.onednn = primitive(a.data(), b.data(), z.data());
            return sides;
          }};
}

/// The library's loop of an elementwise op.
template <class O, class T>
auto loop_of() {
  return [code = ElementwiseCodeOf<O, T>::get(options.max_level)](auto* a, auto* b, auto* y) {
    const void* const inputs[] = {a, b};
    code.dense(n, inputs, y, code.max_level);
  };
}
/// `expression` of a, b, called with Eigen's arrays.
template <class Expression>
auto arrays(const Expression& expression, std::int64_t size = n) {
  return [=](auto* a, auto* b, auto* y) { flat(y, size) = expression(flat(a, size), flat(b, size)); };
}
inline auto eltwise_of(dnnl::algorithm algorithm, float alpha = 0) {
  return [=](float* a, float*, float* y) { return eltwise(algorithm, n, a, y, alpha); };
}
inline auto binary_of(dnnl::algorithm algorithm) {
  return [=](float* a, float* b, float* y) { return binary(algorithm, {n}, {n}, a, b, y); };
}

/// An elementary function, of arguments from 0.002 to 2.
template <class T, class Expression, class Primitive = std::nullptr_t>
Row function(const char* name, void (*ours)(std::int64_t, const T*, T*, CpuLevel), const Expression& expression,
             const Primitive& primitive = nullptr) {
  return row<T>(
      name, n, n,
      [=](T* a, T*, T* y) {
        if (a[0] < 0) flat(a, n) = flat(a, n).abs();
        ours(n, a, y, options.max_level);
      },
      [=](T* a, T*, T* y) { flat(y, n) = expression(flat(a, n)); }, primitive);
}

/// A prepared step of a session of one thread; its outputs are allocated anew each time.
template <class Build, class... T>
Side step(const Build& build, const Tensor<T>&... values) {
  struct Made {
    Graph graph;
    std::unique_ptr<Session> session;
  };
  auto made = std::make_shared<Made>();
  const std::tuple edges{placeholder<T>(made->graph, PartialShape(values.shape()))...};
  return std::apply(
      [&](const auto&... edge) -> Side {
        const auto y = build(made->graph, edge...);
        made->session = std::make_unique<Session>(made->graph, SessionOptions{.num_threads = 1});
        auto prepared = std::make_shared<decltype(made->session->prepare(feeds(edge...), fetches(y)))>(
            made->session->prepare(feeds(edge...), fetches(y)));
        return [made, prepared, values...] { (*prepared)(values...); };
      },
      edges);
}

inline void softmax_by_rows(float* x, float* y, std::int64_t height, std::int64_t width) {
  const auto from = matrix(x, height, width);
  auto to = matrix(y, height, width);
  for (std::int64_t r = 0; r < height; ++r) {
    to.row(r) = (from.row(r) - from.row(r).maxCoeff()).exp();
    to.row(r) *= 1 / to.row(r).sum();
  }
}

inline constexpr Pool2dShape pooling(std::int64_t window) {
  return {images, side, side, channels, window, window, 2, 2, 0, 0, window - 2, window - 2};
}
inline auto pooling_of(dnnl::algorithm algorithm, std::int64_t window) {
  return [=](float* a, float*, float* y) {
    const auto from = channels_last({images, channels, side, side}),
               to = channels_last({images, channels, side / 2, side / 2});
    const Dims strides{2, 2}, extents{window, window}, before{0, 0}, after{window - 2, window - 2};
    return onednn(
        [&] {
          return dnnl::pooling_forward(
              {{dnnl::prop_kind::forward_inference, algorithm, from, to, strides, extents, before, after}, engine()});
        },
        {{DNNL_ARG_SRC, from, a}, {DNNL_ARG_DST, to, y}});
  };
}

/// a [m, k] and b [k, width], or [width, k].
template <class T, class Primitive = std::nullptr_t>
Row product(const char* name, std::int64_t m, std::int64_t width, std::int64_t k, bool transpose_b = false,
            const Primitive& primitive = nullptr) {
  return row<T>(
      name, std::max(m * k, k * width), m * width,
      [=](T* a, T* b, T* y) { gemm(pool, false, transpose_b, m, width, k, a, b, y, {}, builtin); },
      [=](T* a, T* b, T* y) {
        auto to = matrix(y, m, width).matrix();
        if (transpose_b) {
          to.noalias() = matrix(a, m, k).matrix() * matrix(b, width, k).matrix().transpose();
        } else {
          to.noalias() = matrix(a, m, k).matrix() * matrix(b, k, width).matrix();
        }
      },
      primitive);
}
inline auto sgemm_of(std::int64_t m, std::int64_t width, std::int64_t k) {
  return [=](float* a, float* b, float* y) -> Side {
    return [=] { dnnl_sgemm('N', 'N', m, width, k, 1.0f, a, k, b, width, 0.0f, y, width); };
  };
}

/// 3 x 3, padded.
inline Row convolution(const char* name, std::int64_t count, std::int64_t extent, std::int64_t depth) {
  const Conv2dShape s{count, extent, extent, depth, 3, 3, depth, 1, 1, 1, 1, 1, 1, 1, 1};
  const std::int64_t size = std::max(count * extent * extent * depth, 9 * depth * depth);
  return row(
      name, size, size, [=](float* x, float* w, float* y) { conv2d(pool, s, x, w, y, {}, builtin); },
      [=](float* x, float* w, float* y) {
        // In Eigen's row-major order an image is [batch, columns, rows, depth].
        const Eigen::array<long, 2> lines{count * extent * extent, 9 * depth};
        const Eigen::array<Eigen::IndexPair<int>, 1> inner{Eigen::IndexPair<int>(1, 0)};
        tensor(y, count * extent * extent, depth) = tensor(x, count, extent, extent, depth)
                                                        .extract_image_patches(3, 3)
                                                        .reshape(lines)
                                                        .contract(tensor(w, 9 * depth, depth), inner);
      },
      [=](float* x, float* w, float* y) {
        const auto d = channels_last({count, depth, extent, extent});
        const memory::desc filter({depth, depth, 3, 3}, memory::data_type::f32, memory::format_tag::hwio);
        const Dims one{1, 1};
        return onednn(
            [&] {
              return dnnl::convolution_forward({{dnnl::prop_kind::forward_inference,
                                                 dnnl::algorithm::convolution_direct, d, filter, d, one, one, one},
                                                engine()});
            },
            {{DNNL_ARG_SRC, d, x}, {DNNL_ARG_WEIGHTS, filter, w}, {DNNL_ARG_DST, d, y}});
      });
}

}  // namespace kernel_rows
