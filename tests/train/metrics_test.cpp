#include <dflow/train/metrics.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/control/check.hpp>
#include <dflow/ops/control/no_op.hpp>
#include <dflow/ops/operators.hpp>
#include <dflow/ops/state/typed_variable.hpp>
#include <dflow/session/session.hpp>
#include <dflow/train/replicas/replica_device.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

using namespace dflow;
using metrics::StreamingMetric;

namespace {

constexpr std::int64_t num_metric_classes = 10;

/// A batch of tools/oracle/metric_values.py.
struct MetricRows {
  Tensor<bool> truth;
  Tensor<float> score;
  Tensor<std::int64_t> label, predicted;
  Tensor<float> weight, class_scores;
};

class MetricDraws {
 public:
  MetricRows next(std::int64_t rows) {
    MetricRows to{Tensor<bool>({rows}),         Tensor<float>({rows}), Tensor<std::int64_t>({rows}),
                  Tensor<std::int64_t>({rows}), Tensor<float>({rows}), Tensor<float>({rows, num_metric_classes})};
    for (std::int64_t i = 0; i < rows; ++i) {
      const std::uint32_t at = draw();
      to.truth(i) = at + draw() > 1u << 24;
      to.score(i) = share(at);
      to.label(i) = draw() % num_metric_classes;
      const std::uint32_t other = draw();
      to.predicted(i) = other % 4 != 0 ? to.label(i) : other / 4 % num_metric_classes;
      to.weight(i) = static_cast<float>(draw() % 8) / 4;
      for (std::int64_t k = 0; k < num_metric_classes; ++k) to.class_scores(i, k) = share(draw());
      if (draw() % 2 != 0) to.class_scores(i, to.label(i)) += 0.5f;
    }
    return to;
  }

 private:
  std::uint32_t draw() { return (state_ = state_ * 1664525u + 1013904223u) >> 8; }
  static float share(std::uint32_t bits) { return static_cast<float>(bits) / 16777216.0f; }

  std::uint32_t state_ = 1;
};

/// All metrics of the program, on placeholders.
struct AllMetrics {
  explicit AllMetrics(Graph& graph, const PartialShape& rows = {dynamic}) {
    truth = placeholder<bool>(graph, rows);
    score = placeholder<float>(graph, rows);
    label = placeholder<std::int64_t>(graph, rows);
    predicted = placeholder<std::int64_t>(graph, rows);
    weight = placeholder<float>(graph, rows);
    class_scores = placeholder<float>(graph, rows.appended(num_metric_classes));
    const auto high = score > 0.5f;
    for (const bool weighted : {false, true}) {
      const AnyOutput weights = weighted ? AnyOutput(weight) : AnyOutput();
      const auto add = [&](const std::string& name, StreamingMetric metric) {
        all.emplace(weighted ? name + "_weighted" : name, std::move(metric));
      };
      using namespace metrics;
      add("mean", mean(score, {weights}));
      add("accuracy", metrics::accuracy(label, predicted, {weights}));
      add("mean_squared_error", mean_squared_error(truth, score, {weights}));
      add("root_mean_squared_error", root_mean_squared_error(truth, score, {weights}));
      add("precision", precision(truth, high, {weights}));
      add("recall", recall(truth, high, {weights}));
      add("auc_roc", auc(truth, score, {.weights = weights}));
      add("auc_pr", auc(truth, score, {.curve = Curve::pr, .weights = weights}));
      add("auc_roc_7", auc(truth, score, {.num_thresholds = 7, .weights = weights}));
      add("recall_at_1", recall_at_k(label, class_scores, 1, {weights}));
      add("recall_at_3", recall_at_k(label, class_scores, 3, {weights}));
      add("mean_iou", mean_iou(label, predicted, num_metric_classes, {weights}));
    }
  }

  std::vector<Feed> feeds(const MetricRows& rows) const {
    return {{truth, rows.truth},         {score, rows.score},   {label, rows.label},
            {predicted, rows.predicted}, {weight, rows.weight}, {class_scores, rows.class_scores}};
  }

  Output<bool> truth;
  Output<float> score;
  Output<std::int64_t> label, predicted;
  Output<float> weight, class_scores;
  std::map<std::string, StreamingMetric> all;
};

/// Of tools/oracle/metric_values.py, TensorFlow 2.21.
const std::map<std::string, double> metric_values{{"accuracy", 0.775070012},
                                                  {"accuracy_weighted", 0.78910768},
                                                  {"auc_pr", 0.834402561},
                                                  {"auc_pr_weighted", 0.834924519},
                                                  {"auc_roc", 0.834076881},
                                                  {"auc_roc_7", 0.824832797},
                                                  {"auc_roc_7_weighted", 0.825160623},
                                                  {"auc_roc_weighted", 0.834079087},
                                                  {"mean", 0.499500662},
                                                  {"mean_iou", 0.632695973},
                                                  {"mean_iou_weighted", 0.651581168},
                                                  {"mean_squared_error", 0.166285768},
                                                  {"mean_squared_error_weighted", 0.166283578},
                                                  {"mean_weighted", 0.49932453},
                                                  {"precision", 0.7511217},
                                                  {"precision_weighted", 0.750425339},
                                                  {"recall", 0.751227021},
                                                  {"recall_at_1", 0.3509},
                                                  {"recall_at_1_weighted", 0.355200453},
                                                  {"recall_at_3", 0.54944},
                                                  {"recall_at_3_weighted", 0.552687367},
                                                  {"recall_weighted", 0.750292122},
                                                  {"root_mean_squared_error", 0.407781512},
                                                  {"root_mean_squared_error_weighted", 0.407778829}};

Operation all_updates(const AllMetrics& metrics) {
  std::vector<Operation> updates;
  for (const auto& [name, metric] : metrics.all) updates.push_back(metric.update);
  return group(updates);
}

void update_with(Session& session, const AllMetrics& metrics, const Operation& update, const MetricRows& rows) {
  session.run_erased({}, nullptr, metrics.feeds(rows), {}, {&update, 1}, {});
}

/// A metric of two placeholders.
template <Element L, Element P>
struct OfPairs {
  Graph graph;
  Output<L> labels = placeholder<L>(graph, PartialShape::unknown(), {.name = "labels"});
  Output<P> predictions = placeholder<P>(graph, PartialShape::unknown(), {.name = "predictions"});
  Session session{graph, {.num_threads = 1}};

  double after(const StreamingMetric& metric, const Tensor<L>& l, const Tensor<P>& p) {
    return session.run({{labels, l}, {predictions, p}}, metric.updated).scalar();
  }
};

}  // namespace

TEST_CASE("metrics of 100,000 rows in 100 batches equal TensorFlow's, in one task and merged over three") {
  Graph graph;
  std::vector<AllMetrics> tasks;
  tasks.emplace_back(graph);
  for (const char* device : {"/cpu:0", "/cpu:1", "/cpu:2"}) {
    const auto on = graph.device(device);
    tasks.emplace_back(graph);
  }
  std::map<std::string, Output<double>> everywhere;
  for (const auto& [name, metric] : tasks[1].all) {
    everywhere.emplace(name, metrics::merged({metric, tasks[2].all.at(name), tasks[3].all.at(name)}));
  }
  Session session(graph, {.num_threads = 2, .num_cpu_devices = 3});
  session.run(initialize_local_variables(graph));
  MetricDraws draws;
  std::vector<Operation> updates;
  for (const AllMetrics& task : tasks) updates.push_back(all_updates(task));
  for (std::size_t i = 0; i < 100; ++i) {
    const MetricRows rows = draws.next(1000);
    update_with(session, tasks[0], updates[0], rows);
    update_with(session, tasks[1 + i % 3], updates[1 + i % 3], rows);
  }
  CHECK(metric_values.size() == tasks[0].all.size());
  for (const auto& [name, expected] : metric_values) {
    CAPTURE(name);
    const double alone = session.run(tasks[0].all.at(name).value).scalar();
    CHECK(alone == Approx(expected).epsilon(2e-6));
    CHECK(session.run(everywhere.at(name)).scalar() == Approx(alone).epsilon(1e-12));
  }
  session.run(tasks[0].all.at("mean").reset);
  CHECK(session.run(tasks[0].all.at("mean").value).scalar() == 0);
  CHECK(session.run(tasks[0].all.at("recall").value).scalar() != 0);
}

TEST_CASE("metrics of rows of rank 2 and 3 are those of the rows in line") {
  Graph graph;
  AllMetrics flat(graph), deep(graph, {dynamic, 5, 4}), known(graph, {3, 20});
  Session session(graph, {.num_threads = 1});
  session.run(initialize_local_variables(graph));
  const MetricRows rows = MetricDraws().next(60);
  const auto shaped = [&](const Shape& shape) {
    return MetricRows{rows.truth.reshaped(shape),  rows.score.reshaped(shape),
                      rows.label.reshaped(shape),  rows.predicted.reshaped(shape),
                      rows.weight.reshaped(shape), rows.class_scores.reshaped(shape.appended(num_metric_classes))};
  };
  update_with(session, flat, all_updates(flat), rows);
  update_with(session, deep, all_updates(deep), shaped({3, 5, 4}));
  update_with(session, known, all_updates(known), shaped({3, 20}));
  for (const auto& [name, metric] : flat.all) {
    CAPTURE(name);
    const auto [a, b, c] = session.run(metric.value, deep.all.at(name).value, known.all.at(name).value);
    CHECK(a.scalar() == Approx(b.scalar()).epsilon(1e-14));
    CHECK(a.scalar() == Approx(c.scalar()).epsilon(1e-14));
    CHECK(a.scalar() > 0);
  }
}

TEST_CASE("a metric has the value with the batch of the step, and counts a thousand million rows exactly") {
  OfPairs<std::int32_t, std::int64_t> in;
  const auto accuracy = metrics::accuracy(in.labels, in.predictions);
  CHECK(code_of([&] { in.session.run(accuracy.value); }) == Code::failed_precondition);
  in.session.run(accuracy.reset);
  CHECK(in.session.run(accuracy.value).scalar() == 0);
  const Tensor<std::int32_t> labels({2, 2}, {1, 2, 3, 4});
  const Tensor<std::int64_t> predictions({2, 2}, {1, 2, 3, 5});
  CHECK(in.after(accuracy, labels, predictions) == 0.75);
  CHECK(in.after(accuracy, labels, Tensor<std::int64_t>({2, 2}, {1, 2, 0, 5})) == 0.625);
  CHECK(in.session.run(accuracy.value).scalar() == 0.625);
  CHECK(in.after(accuracy, Tensor<std::int32_t>({0}), Tensor<std::int64_t>({0})) == 0.625);
  REQUIRE(accuracy.totals.size() == 2);
  for (const AnyVariable& total : accuracy.totals) in.session.run(total.as<double>().assign(1e9));
  in.after(accuracy, labels, predictions);
  CHECK(in.session.run(accuracy.totals[0].read_edge()).as<double>().scalar() == 1000000003.0);
  CHECK(in.session.run(accuracy.totals[1].read_edge()).as<double>().scalar() == 1000000004.0);
  in.session.run(accuracy.reset);
  CHECK(in.session.run(accuracy.value).scalar() == 0);
  CHECK(global_variables(in.graph).empty());
  CHECK(local_variables(in.graph).size() == 2);
}

TEST_CASE("weights are scalars, or repeat along dimensions of extent 1, and no other shape of them is taken") {
  Graph graph;
  const auto x = placeholder<float>(graph, PartialShape::unknown());
  const auto w = placeholder<std::int32_t>(graph, PartialShape::unknown());
  const auto mean = metrics::mean(x, {w});
  const auto of_rows = metrics::mean(ensure_shape(x, {dynamic, 2}), {ensure_shape(w, {dynamic, 1})});
  Session session(graph, {.num_threads = 1});
  session.run(initialize_local_variables(graph));
  const Tensor<float> rows({2, 2}, {1, 2, 3, 5});
  const auto of = [&](const metrics::StreamingMetric& metric, const Tensor<std::int32_t>& weights) {
    session.run(metric.reset);
    return session.run({{x, rows}, {w, weights}}, metric.updated).scalar();
  };
  CHECK(of(mean, Tensor<std::int32_t>(3)) == 2.75);
  CHECK(of(mean, Tensor<std::int32_t>({2, 2}, {0, 1, 1, 0})) == 2.5);
  CHECK(of(mean, Tensor<std::int32_t>({1, 2}, {3, 1})) == (3 * 1 + 2 + 3 * 3 + 5) / 8.0);
  CHECK(of(of_rows, Tensor<std::int32_t>({2, 1}, {3, 1})) == (3 * 3 + 8) / 8.0);
  CHECK(of(mean, Tensor<std::int32_t>(0)) == 0);
  for (const Shape& shape : {Shape{2}, Shape{1}, Shape{3, 2}, Shape{1, 2, 2}}) {
    CAPTURE(shape.to_string());
    CHECK(code_of([&] { of(mean, Tensor<std::int32_t>::full(shape, 1)); }) == Code::invalid_argument);
  }
  CHECK(code_of([&] { of(of_rows, Tensor<std::int32_t>({3, 1}, {1, 1, 1})); }) == Code::invalid_argument);
}

TEST_CASE("scores on thresholds and at both ends are on the side that TensorFlow puts them") {
  OfPairs<bool, float> in;
  const std::int64_t n = GENERATE(2, 3, 4, 11, 200, 1000);
  CAPTURE(n);
  const auto roc = metrics::auc(in.labels, in.predictions, {.num_thresholds = n});
  in.session.run(roc.reset);
  std::vector<float> scores{0.0f, 1.0f, 0.5f, std::nextafter(0.5f, 0.0f), std::nextafter(1.0f, 0.0f)};
  for (std::int64_t i = 0; i < n; ++i) {
    const auto at = static_cast<float>(static_cast<double>(i) / static_cast<double>(n - 1));
    for (const float near : {std::nextafter(at, 0.0f), at, std::nextafter(at, 1.0f)}) scores.push_back(near);
  }
  const auto rows = static_cast<std::int64_t>(scores.size());
  Tensor<bool> labels({rows});
  for (std::int64_t i = 0; i < rows; ++i) labels(i) = i % 3 == 0;
  in.after(roc, labels, Tensor<float>({rows}, scores));
  // The totals are sums by the number of thresholds below a score.
  std::vector<double> positives(static_cast<std::size_t>(n) + 1), negatives(positives.size());
  for (std::int64_t i = 0; i < rows; ++i) {
    std::size_t below = 0;
    for (std::int64_t k = 0; k < n; ++k) {
      const double even = static_cast<double>(k) / static_cast<double>(n - 1);
      const auto threshold = static_cast<float>(k == 0 ? -1e-7 : k == n - 1 ? 1 + 1e-7 : even);
      below += scores[static_cast<std::size_t>(i)] > threshold;
    }
    (labels(i) ? positives : negatives)[below] += 1;
  }
  const auto total = [&](std::size_t i) { return in.session.run(roc.totals[i].read_edge()).as<double>(); };
  CHECK(total(0).to_string(2000) == Tensor<double>({n + 1}, positives).to_string(2000));
  CHECK(total(1).to_string(2000) == Tensor<double>({n + 1}, negatives).to_string(2000));
}

TEST_CASE("recall at k takes several labels, ties as top_k does, and labels that are no class as misses") {
  Graph graph;
  const auto labels = placeholder<std::int32_t>(graph, {dynamic, dynamic});
  const auto scores = placeholder<float>(graph, {dynamic, dynamic});
  const auto weights = placeholder<float>(graph, {dynamic});
  const auto of_two = metrics::recall_at_k(labels, scores, 2),
             weighted = metrics::recall_at_k(labels, scores, 2, {weights});
  Session session(graph, {.num_threads = 1});
  session.run(initialize_local_variables(graph));
  const Tensor<std::int32_t> l({3, 2}, {0, 1, 2, 3, -1, 4});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor<float> s({3, 4}, {1, 1, 1, 0, 0, 5, 5, 5, nan, 1, 2, 3});
  const auto [two, by_weight] = session.run({{labels, l}, {scores, s}, {weights, Tensor<float>({3}, {1, 0.5f, 2})}},
                                            of_two.updated, weighted.updated);
  CHECK(two.scalar() == Approx(3.0 / 6));                        // 0 and 1, then 2 of 2 and 3, then none
  CHECK(by_weight.scalar() == Approx((2 * 1 + 1 * 0.5) / 7.0));  // of two labels each
  const auto other = Tensor<std::int32_t>({3, 1}, {0, 3, 0});
  session.run(of_two.reset);
  CHECK(session.run({{labels, other}, {scores, s}}, of_two.updated).scalar() == Approx(1.0 / 3));
  CHECK(code_of([&] {
          session.run({{labels, Tensor<std::int32_t>::full({2, 2}, 0)}, {scores, s}}, of_two.update);
        }) == Code::invalid_argument);
}

TEST_CASE("a confusion matrix counts pairs of label and prediction, and a class without rows has no part in the mean") {
  OfPairs<std::int32_t, std::uint8_t> in;
  const auto matrix = metrics::confusion_matrix(in.labels, in.predictions, 3);
  const auto iou = metrics::mean_iou(in.labels, in.predictions, 3);
  CHECK(matrix.value.shape() == PartialShape{3, 3});
  in.session.run(initialize_local_variables(in.graph));
  const Tensor<std::int32_t> labels({4}, {0, 0, 2, 2});
  const Tensor<std::uint8_t> predictions({4}, {0, 2, 2, 2});
  const auto [counts, mean] =
      in.session.run({{in.labels, labels}, {in.predictions, predictions}}, matrix.updated, iou.updated);
  CHECK(counts.to_string() == Tensor<double>({3, 3}, {1, 0, 1, 0, 0, 0, 0, 0, 2}).to_string());
  CHECK(mean.scalar() == Approx((1.0 / 2 + 2.0 / 3) / 2));
  const auto error = error_of(
      [&] {
        in.session.run(
            {{in.labels, Tensor<std::int32_t>({2}, {1, 3})}, {in.predictions, Tensor<std::uint8_t>({2}, {0, 0})}},
            matrix.update);
      },
      Code::invalid_argument);
  CHECK(contains(error, "confusion_matrix: 'labels' is not in [0, 3)"));
  CHECK(contains(error, "int64[1] [1]"));
  CHECK(in.session.run(matrix.value).to_string() == counts.to_string());
  CHECK(code_of([&] {
          in.session.run({{in.labels, labels}, {in.predictions, Tensor<std::uint8_t>::full({1}, 0)}}, matrix.update);
        }) == Code::invalid_argument);
}

TEST_CASE("metrics refuse other element types, other shapes and scores outside of their range") {
  Graph graph;
  const auto x = placeholder<float>(graph, {dynamic, 3}), other = placeholder<float>(graph, {dynamic, 4});
  const auto text = placeholder<std::string>(graph, {dynamic});
  const auto ids = placeholder<std::int32_t>(graph, {dynamic});
  const std::size_t before = graph.num_nodes();
  const auto refuses = [&](const std::function<void()>& build, std::string_view with) {
    const std::string error = error_of(build, Code::invalid_argument);
    INFO(error);
    return contains(error, with) && contains(error, "metrics_test.cpp:");
  };
  CHECK(refuses([&] { metrics::mean(text); }, "mean: values string[?] have an element type"));
  CHECK(refuses([&] { metrics::mean(AnyOutput()); }, "mean: values are an empty Output"));
  CHECK(refuses([&] { metrics::mean(x, {ids}); }, "mean: weights int32[?] do not fit rows of shape [?,3]"));
  CHECK(refuses([&] { metrics::accuracy(text, ids); }, "different element types"));
  CHECK(refuses([&] { metrics::mean_squared_error(x, other); }, "have different shapes"));
  CHECK(refuses([&] { metrics::precision(text, ids); }, "precision: labels string"));
  CHECK(refuses([&] { metrics::auc(ids, ids); }, "auc: scores int32"));
  CHECK(refuses([&] { metrics::auc(x, x, {.num_thresholds = 1}); }, "auc: 1 thresholds"));
  CHECK(refuses([&] { metrics::recall_at_k(ids, x, 0); }, "recall_at_k: k is 0"));
  CHECK(refuses([&] { metrics::recall_at_k(ids, placeholder<float>(graph, {}), 1); }, "are not [...rows]"));
  CHECK(refuses([&] { metrics::mean_iou(ids, ids, 0); }, "mean_iou: 0 classes"));
  CHECK(refuses([&] { metrics::mean_iou(x, ids, 2); }, "mean_iou: labels float"));
  CHECK(refuses([&] { metrics::merged({}); }, "there are no metrics"));
  CHECK(graph.num_nodes() == before + 1);  // the placeholder

  OfPairs<bool, float> in;
  const auto roc = metrics::auc(in.labels, in.predictions);
  const auto squares = metrics::mean_squared_error(in.labels, in.predictions);
  in.session.run(initialize_local_variables(in.graph));
  for (const float wrong : {-0.001f, 1.5f, std::numeric_limits<float>::quiet_NaN()}) {
    const std::string error = error_of(
        [&] {
          in.after(roc, Tensor<bool>::full({1, 2}, true), Tensor<float>({1, 2}, {0.5f, wrong}));
        },
        Code::invalid_argument);
    CHECK(contains(error, "auc: 'predictions' is not in [0, 1]"));
    CHECK(contains(error, "int64[2] [0, 1]"));
  }
  CHECK(code_of([&] {
          in.after(squares, Tensor<bool>::full({2}, true), Tensor<float>::full({1, 2}, 0.5f));
        }) == Code::invalid_argument);
  CHECK(code_of([&] { metrics::merged({roc, squares}); }) == Code::invalid_argument);
}

TEST_CASE("the totals of a metric are in its own task, where variables go to parameter servers") {
  Graph graph;
  const auto on = graph.device(train::replica_device(2, "/job:worker/task:1"));
  const auto x = placeholder<float>(graph, {dynamic});
  const Variable<float> trained(graph, 1.0f, {.name = "trained"});
  const auto mean = metrics::mean(x * trained);
  CHECK(contains(trained.handle().node().device, "/job:ps"));
  for (const AnyVariable& total : mean.totals) CHECK(contains(total.handle().node().device, "/job:worker/task:1"));
  CHECK(mean.totals[0].name() == "mean/total");
}
