#pragma once

#include "cuda/gpu_that_is_none.hpp"

#include <dflow/dflow.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

namespace dflow::testing {

/// Builds the outputs that run on a device of a graph.
using Build = std::function<std::vector<AnyOutput>(Graph&)>;

inline std::vector<AnyTensor> run_all(Session& session, const std::vector<AnyOutput>& outputs) {
  std::vector<AnyTensor> results(outputs.size());
  session.run_erased({}, nullptr, {}, outputs, {}, results);
  return results;
}

inline std::vector<AnyTensor> run_on(const std::string& device, const std::vector<std::shared_ptr<Device>>& devices,
                                     const Build& build) {
  Graph graph;
  std::vector<AnyOutput> outputs;
  {
    const auto on = graph.device(device);
    outputs = build(graph);
  }
  Session session(graph, {.devices = devices, .passes = PassOptions::none()});
  return run_all(session, outputs);
}

template <class T>
Tensor<T> waves(const Shape& shape, double step, double phase = 0) {
  Tensor<T> tensor(shape);
  double at = phase;
  for (T& each : tensor) each = static_cast<T>(static_cast<float>(std::sin(at += step)));
  return tensor;
}

template <class T>
std::vector<double> numbers(const AnyTensor& tensor) {
  std::vector<double> values;
  for (const T& each : Tensor<T>(tensor)) values.push_back(static_cast<double>(each));
  return values;
}

template <class T>
void check_close(const AnyTensor& got, const AnyTensor& want, double tolerance) {
  REQUIRE(got.shape() == want.shape());
  const std::vector<double> a = numbers<T>(got), b = numbers<T>(want);
  for (std::size_t i = 0; i < a.size(); ++i) {
    INFO("element " << i);
    if (std::isnan(b[i])) {
      CHECK(std::isnan(a[i]));
    } else {
      CHECK(a[i] == Approx(b[i]).epsilon(tolerance).margin(tolerance));
    }
  }
}

template <class T>
constexpr double tolerance_of() {
  return std::is_same_v<T, double> ? 1e-12 : std::is_same_v<T, float> ? 1e-5 : std::is_same_v<T, Half> ? 4e-3 : 4e-2;
}

struct ConvCase {
  Shape x, filter;
  Conv2DAttrs attrs;
};

inline std::vector<ConvCase> conv_cases() {
  return {
      {{2, 7, 6, 3}, {3, 3, 3, 4}, {.padding = Padding::same}},
      {{3, 8, 9, 2}, {3, 2, 2, 5}, {.strides = {1, 2, 3, 1}}},
      {{2, 9, 9, 2}, {3, 3, 2, 3}, {.padding = Padding::same, .dilations = {1, 2, 3, 1}}},
      {{2, 5, 4, 3}, {1, 1, 3, 6}, {}},  // the images are the columns
      {{2, 5, 4, 3}, {1, 1, 3, 6}, {.strides = {1, 2, 2, 1}}},
      {{1, 3, 3, 1}, {5, 5, 1, 2}, {.padding = Padding::same}},  // a filter larger than the image
      {{0, 3, 3, 1}, {2, 2, 1, 2}, {}},
      {{2, 3, 3, 0}, {2, 2, 0, 2}, {}},
      {{2, 3, 3, 2}, {2, 2, 2, 0}, {}},
  };
}

template <class T>
Build convolution(const ConvCase& of) {
  return [of](Graph& graph) {
    const auto x = constant(graph, waves<T>(of.x, 0.7)), filter = constant(graph, waves<T>(of.filter, 1.3));
    const auto y = conv2d(x, filter, of.attrs);
    const auto sizes = [&](const Shape& shape) {
      Tensor<std::int32_t> values(Shape{4});
      for (int i = 0; i < 4; ++i) values.data()[i] = static_cast<std::int32_t>(shape[i]);
      return constant(graph, values);
    };
    const auto dy = constant(graph, waves<T>(y.shape().to_shape(), 0.9));
    return std::vector<AnyOutput>{y, conv2d_backprop_input(sizes(of.x), filter, dy, of.attrs),
                                  conv2d_backprop_filter(x, sizes(of.filter), dy, of.attrs)};
  };
}

inline std::vector<std::shared_ptr<Device>> gpu_of(const std::shared_ptr<FakeDriver>& driver,
                                                   std::size_t workspace_bytes) {
  return {
      std::make_shared<CudaDevice>(CudaDeviceOptions{.driver = driver, .convolution_workspace_bytes = workspace_bytes}),
      std::make_shared<CpuDevice>(CpuDeviceOptions{})};
}

}  // namespace dflow::testing
