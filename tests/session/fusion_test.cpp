#include <dflow/dflow.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

using namespace dflow;

namespace {

const Shape images{6, 12, 12, 1};

/// A convolution, a hidden layer and logits; layer `i` is on device i of `devices`.
Output<float> small_lenet(Graph& graph, const Output<float>& x, int devices) {
  const auto on = [&](int layer) { return graph.device("/cpu:" + std::to_string(layer % devices)); };
  Output<float> y;
  {
    const auto device = on(0);
    y = max_pool(conv2d(x, 8, 3, {.activation = Activation::relu, .name = "conv"}), 2);
  }
  {
    const auto device = on(1);
    y = dense(flatten(y), 20, {.activation = Activation::relu, .name = "hidden"});
  }
  const auto device = on(2);
  return dense(y, 10, {.name = "logits"});
}

struct Trained {
  std::vector<float> losses;
  StepStats stats;
};

Trained trained(int devices, SessionOptions options) {
  Graph graph({.seed = 3});
  const auto x = placeholder<float>(graph, images);
  const auto labels = placeholder<std::int32_t>(graph, {images[0]});
  const auto loss = reduce_mean(sparse_softmax_cross_entropy(small_lenet(graph, x, devices), labels));
  const auto step = train::GradientDescent(0.1f).minimize(loss);
  options.num_cpu_devices = devices;
  options.reproducible = true;
  Session session(graph, options);
  session.run(initialize_variables(graph));
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  Trained result;
  for (int i = 0; i < 5; ++i) {
    Tensor<float> batch(images);
    Tensor<std::int32_t> wanted({images[0]});
    for (float& value : batch.span()) value = normal(random);
    for (std::int32_t& label : wanted.span()) label = static_cast<std::int32_t>(random() % 10);
    RunMetadata metadata;
    result.losses.push_back(
        session.run({.trace = true}, &metadata, {{x, batch}, {labels, wanted}}, loss, step).scalar());
    result.stats = std::move(metadata.stats);
  }
  return result;
}

std::vector<std::string> nodes_of(const StepStats& stats, std::string_view op) {
  std::vector<std::string> names;
  for (const NodeStats& node : stats.nodes) {
    if (node.op == op) names.push_back(node.node);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

TEST_CASE("a training step fuses each layer's bias and relu, on one device and on three, and changes no bit",
          "[session][passes]") {
  SessionOptions apart;
  apart.passes.fusion = false;
  const Trained plain = trained(1, apart);
  CHECK(nodes_of(plain.stats, "_FusedMatMul").empty());
  CHECK(nodes_of(plain.stats, "BiasAdd").size() == 3);
  for (const int devices : {1, 3}) {
    for (const int threads : {1, 3}) {
      const Trained fused = trained(devices, {.num_threads = threads});
      CHECK(fused.losses == plain.losses);
      CHECK(nodes_of(fused.stats, "BiasAdd").empty());
      CHECK(nodes_of(fused.stats, "Relu").empty());
      CHECK(nodes_of(fused.stats, "_FusedConv2D") ==
            std::vector<std::string>{"conv/Conv2D + conv/BiasAdd + conv/Relu"});
      CHECK(nodes_of(fused.stats, "_FusedMatMul") ==
            std::vector<std::string>{"hidden/MatMul + hidden/BiasAdd + hidden/Relu", "logits/MatMul + logits/BiasAdd"});
    }
  }
}

TEST_CASE("an error of a fused node names all that it stands for, and the program's line", "[session][passes]") {
  Graph graph;
  const auto x = placeholder<float>(graph), w = placeholder<float>(graph), b = placeholder<float>(graph);
  const auto product_of = matmul(x, w, {}, {.name = "product"});
  const auto y = relu(bias_add(product_of, b), {.name = "hidden"});
  Session session(graph);
  const auto run = [&](const Shape& x_shape, const Shape& w_shape, const Shape& b_shape) {
    return error_of([&] {
      session.run({{x, Tensor<float>(x_shape)}, {w, Tensor<float>(w_shape)}, {b, Tensor<float>(b_shape)}}, y);
    });
  };
  const std::string product = run({2, 3}, {4, 5}, {5}), bias = run({2, 3}, {3, 5}, {4});
  for (const std::string& message : {product, bias}) {
    INFO(message);
    CHECK(contains(message, "product + BiasAdd + hidden"));
    CHECK(contains(message, "fusion_test.cpp"));
  }
  CHECK(contains(product, "inner dimensions 3 and 4 differ"));
  CHECK(contains(bias, "the bias has 4 elements for 5 channels"));
  CHECK(contains(run({2, 3}, {3}, {5}), "rank"));
}

TEST_CASE("what is fetched, fed or traced in the midst of a fused chain is found", "[session][passes]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {2, 2}), b = placeholder<float>(graph, {2});
  const auto product = matmul(x, x), sum = bias_add(product, b), y = relu(sum);
  Session session(graph);
  const Tensor<float> at({2, 2}, {1, 0, 0, -1}), bias({2}, {1, -2});
  const auto [all, early, middle] = session.run({{x, at}, {b, bias}}, y, product, sum);
  CHECK(all(1, 1) == 0);
  CHECK(early(1, 1) == 1);
  CHECK(middle(1, 1) == -1);
  CHECK(session.run({{x, at}, {b, bias}}, y)(0, 0) == 2);
  CHECK(session.run({{sum, Tensor<float>({2, 2}, {-1, 2, -3, 4})}}, y)(1, 1) == 4);
  CHECK(session.run({{product, Tensor<float>({2, 2}, {5, 5, 5, 5})}, {b, bias}}, y)(0, 1) == 3);
}
