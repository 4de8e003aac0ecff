// A small trained network, for tests of models.
#pragma once

#include <dflow/dflow.hpp>
#include <dflow/models/models.hpp>

#include <dflow/base/files/memory_file_system.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace dflow::testing {

/// Four points of the plane in two classes, and a network that learns them by heart.
struct Trained {
  explicit Trained(int steps = 20) {
    session.run(initialize_variables(graph));
    for (int i = 0; i < steps; ++i) session.run({{x, points}, {labels, classes}}, train);
  }

  Tensor<float> logits_value() { return session.run({{x, points}}, logits); }
  std::vector<Signature> signatures() const {
    return {{"serving_default", {{"points", x}}, {{"logits", logits}, {"label", label}}}};
  }
  models::SaveOptions save_options(std::shared_ptr<FileSystem> files) const {
    return {.signatures = signatures(), .metadata = {{"version", "7"}}, .files = std::move(files)};
  }

  Tensor<float> points = Tensor<float>({4, 2}, {0, 0, 0, 1, 1, 0, 1, 1});
  Tensor<std::int32_t> classes = Tensor<std::int32_t>({4}, {0, 1, 1, 0});
  Graph graph{{.seed = 3}};
  Output<float> x = placeholder<float>(graph, {dynamic, 2}, {.name = "x"});
  Output<std::int32_t> labels = placeholder<std::int32_t>(graph, {dynamic}, {.name = "labels"});
  Dense hidden{6, {.activation = Activation::tanh}}, out{2};
  Output<float> logits = out(hidden(x));
  Output<std::int64_t> label = argmax(logits, 1);
  Output<float> loss = reduce_mean(sparse_softmax_cross_entropy(logits, labels));
  Operation train = train::Adam(0.05f).minimize(loss);
  Session session{graph};
};

inline std::vector<std::string> ops_of(const Graph& graph) {
  std::vector<std::string> ops;
  for (const NodeDef& node : to_graph_def(graph).nodes) ops.push_back(node.op);
  return ops;
}

inline bool has_op(const Graph& graph, std::string_view op) {
  for (const std::string& one : ops_of(graph)) {
    if (one == op) return true;
  }
  return false;
}

}  // namespace dflow::testing
