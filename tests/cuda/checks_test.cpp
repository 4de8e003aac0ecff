// Checks and streaming metrics, which are compositions of ops, on a GPU.
#include "cuda/gpu_that_is_none.hpp"

#include <dflow/dflow.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

using namespace dflow;
using namespace dflow::testing;

namespace {

/// The values, or the errors, of checks and metrics on a device.
std::vector<std::string> said_on(const std::string& device, const std::shared_ptr<FakeDriver>& driver) {
  Graph graph;
  const auto on = graph.device(device);
  const auto x = placeholder<float>(graph, {2, 3}, {.name = "x"});
  const auto labels = placeholder<std::int32_t>(graph, {2}, {.name = "labels"});
  const auto first = squeeze(slice(x, {0, 0}, {2, 1}), 1);
  const auto predicted = argmax(x, -1);
  std::vector<AnyOutput> edges{assert_less(x, Tensor<float>({3}, {2, 2, 5}), "limits"), assert_positive(x),
                               assert_non_decreasing(x), assert_equal(x, x)};
  for (const metrics::StreamingMetric& metric :
       {metrics::auc(labels, first), metrics::recall_at_k(labels, x, 2), metrics::mean_iou(labels, predicted, 3),
        metrics::accuracy(labels, predicted), metrics::root_mean_squared_error(labels, first)}) {
    edges.push_back(metric.updated);
  }
  Session session(graph, {.devices = gpus_and_cpu(driver)});
  session.run(initialize_local_variables(graph));
  std::vector<std::string> said;
  for (const Tensor<float>& fed :
       {Tensor<float>({2, 3}, {0.25f, 0.5f, 0.75f, 1, 1.5f, 4}), Tensor<float>({2, 3}, {0.5f, 1, 2, 0.25f, 3, 4}),
        Tensor<float>({2, 3}, {0.5f, 1, 2, 0, 1, 9})}) {
    for (const Tensor<std::int32_t>& labelled :
         {Tensor<std::int32_t>({2}, {0, 2}), Tensor<std::int32_t>({2}, {1, 3})}) {
      for (const AnyOutput& edge : edges) {
        try {
          said.push_back(session.run({{x, fed}, {labels, labelled}}, edge).to_string());
        } catch (const Error& error) {
          said.emplace_back(error.status().message());
        }
      }
    }
  }
  return said;
}

}  // namespace

TEST_CASE("checks and metrics on a GPU give what they give on the CPU", "[cuda]") {
  const auto driver = std::make_shared<FakeDriver>();
  CHECK(said_on("/gpu:0", driver) == said_on("/cpu:0", driver));
  check_end(*driver);
}
