// Connectionist temporal classification: what the rows of tests/oracle/sequence.json do not say.
#include <dflow/ops/nn/ctc.hpp>
#include <dflow/ops/nn/ctc_decoders.hpp>
#include <dflow/ops/sparse/edit_distance.hpp>

#include <dflow/autodiff/gradients.hpp>
#include <dflow/graph/graph.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/operators.hpp>
#include <dflow/ops/reduction/reduce.hpp>
#include <dflow/session/session.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace df = dflow;

namespace {

template <class T>
df::SparseOutput<T> rows_of_labels(df::Graph& graph, const std::vector<std::vector<T>>& rows) {
  std::vector<std::int64_t> indices;
  std::vector<T> values;
  std::size_t most = 0;
  for (std::size_t b = 0; b < rows.size(); ++b) {
    for (std::size_t i = 0; i < rows[b].size(); ++i) {
      indices.push_back(static_cast<std::int64_t>(b));
      indices.push_back(static_cast<std::int64_t>(i));
      values.push_back(rows[b][i]);
    }
    most = std::max(most, rows[b].size());
  }
  const auto count = static_cast<std::int64_t>(values.size());
  const df::Tensor<std::int64_t> shape({2}, {static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(most)});
  return {df::constant(graph, df::Tensor<std::int64_t>({count, 2}, std::span<const std::int64_t>(indices))),
          df::constant(graph, df::Tensor<T>({count}, std::span<const T>(values))), df::constant(graph, shape)};
}

template <class T>
std::vector<T> ctc_elements(const df::Tensor<T>& tensor) {
  return {tensor.begin(), tensor.end()};
}

/// Logits in [-2, 2).
df::Tensor<double> drawn_logits(std::int64_t time, std::int64_t classes, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  df::Tensor<double> logits({time, 1, classes});
  for (double& x : logits) x = static_cast<double>(random() >> 11) * 0x1p-51 - 2;
  return logits;
}

/// All sequences of labels with their probabilities, by going through all paths of classes, the most likely first.
std::vector<std::pair<double, std::vector<std::int64_t>>> all_label_sequences(const df::Tensor<double>& logits) {
  const std::int64_t time = logits.dim(0), classes = logits.dim(2);
  std::vector<double> softmax(logits.begin(), logits.end());
  for (std::int64_t t = 0; t < time; ++t) {
    double sum = 0;
    for (std::int64_t k = 0; k < classes; ++k) sum += std::exp(logits(t, 0, k));
    for (std::int64_t k = 0; k < classes; ++k) {
      softmax[static_cast<std::size_t>(t * classes + k)] = std::exp(logits(t, 0, k)) / sum;
    }
  }
  std::map<std::vector<std::int64_t>, double> probabilities;
  std::vector<std::int64_t> path(static_cast<std::size_t>(time), 0);
  for (bool is_over = false; !is_over;) {
    double product = 1;
    std::vector<std::int64_t> labels;
    for (std::size_t t = 0; t < path.size(); ++t) {
      product *= softmax[t * static_cast<std::size_t>(classes) + static_cast<std::size_t>(path[t])];
      if (path[t] != classes - 1 && (t == 0 || path[t] != path[t - 1])) labels.push_back(path[t]);
    }
    probabilities[labels] += product;
    std::size_t t = 0;
    while (t < path.size() && ++path[t] == classes) path[t++] = 0;
    is_over = t == path.size();
  }
  std::vector<std::pair<double, std::vector<std::int64_t>>> sorted;
  for (const auto& [labels, probability] : probabilities) sorted.emplace_back(probability, labels);
  std::sort(sorted.rbegin(), sorted.rend());
  return sorted;
}

}  // namespace

TEST_CASE("the loss of CTC is minus the logarithm of the sum over all paths") {
  // Graves 2012, figure 7.5: the paths of "a" are a-, aa and -a, with 0.3 and 0.4 for a.
  df::Graph graph;
  const auto x = df::placeholder<double>(graph, {2, 1, 2});
  const auto loss = df::ctc_loss(x, rows_of_labels<std::int32_t>(graph, {{0}}), df::Tensor<std::int32_t>({1}, {2}));
  CHECK(loss.shape() == df::PartialShape({1}));
  df::Session session(graph);
  const df::Tensor<double> logits({2, 1, 2}, {std::log(0.3), std::log(0.7), std::log(0.4), std::log(0.6)});
  CHECK(session.run({{x, logits}}, loss)(0) == Approx(-std::log(0.58)).epsilon(1e-14));
  const auto best = df::ctc_beam_search_decoder(x, df::Tensor<std::int32_t>({1}, {2}), {.top_paths = 2});
  CHECK(best.log_probability.shape() == df::PartialShape({1, 2}));
  const auto [first, second, scores] =
      session.run({{x, logits}}, best.decoded[0].values, best.decoded[1].values, best.log_probability);
  CHECK(ctc_elements(first) == std::vector<std::int64_t>{0});
  CHECK(second.num_elements() == 0);
  CHECK(scores(0, 0) == Approx(std::log(0.58)).epsilon(1e-14));
  CHECK(scores(0, 1) == Approx(std::log(0.42)).epsilon(1e-14));
  // The best path is the two blanks.
  const auto greedy = df::ctc_greedy_decoder(x, df::Tensor<std::int32_t>({1}, {2}));
  const auto [labels, dense_shape] = session.run({{x, logits}}, greedy.decoded.values, greedy.decoded.dense_shape);
  CHECK(labels.num_elements() == 0);
  CHECK(ctc_elements(dense_shape) == std::vector<std::int64_t>{1, 0});
}

TEST_CASE("the gradient of CTC's losses is weighted by item, and has none itself") {
  df::Graph graph;
  const auto x = df::placeholder<float>(graph, {3, 2, 3});
  const auto labels = rows_of_labels<std::int32_t>(graph, {{0}, {1, 0}});
  const df::Tensor<std::int32_t> lengths({2}, {2, 3});
  const auto losses = df::ctc_loss(x, labels, lengths);
  const auto slope = df::gradients(df::reduce_sum(losses * df::Tensor<float>({2}, {2, -1})), x);
  const auto [all, plain] = df::apply<df::CTCLoss>(x, labels.indices, labels.values, lengths);
  df::Session session(graph);
  df::Tensor<float> at({3, 2, 3});
  for (std::int64_t i = 0; i < at.num_elements(); ++i) at.data()[i] = static_cast<float>(i * 7 % 5) / 4;
  const auto [dx, gradient] = session.run({{x, at}}, slope, plain);
  for (std::int64_t t = 0; t < 3; ++t) {
    for (std::int64_t k = 0; k < 3; ++k) {
      CHECK(dx(t, 0, k) == 2 * gradient(t, 0, k));
      CHECK(dx(t, 1, k) == -gradient(t, 1, k));
      if (t == 2) CHECK(dx(t, 0, k) == 0);
    }
  }
  CHECK(code_of([&] { return df::gradients(df::reduce_sum(slope), x); }) == df::Code::unimplemented);
}

TEST_CASE("a beam that holds all prefixes finds what a search through all paths finds") {
  // 5 symbols and the blank, 6 time steps: 6^6 paths, and 19531 prefixes.
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    INFO("seed " << seed);
    const df::Tensor<double> logits = drawn_logits(6, 6, seed);
    const auto expected = all_label_sequences(logits);
    df::Graph graph;
    const auto x = df::placeholder<double>(graph);
    const auto found = df::ctc_beam_search_decoder(x, df::Tensor<std::int32_t>({1}, {6}),
                                                   {.beam_width = 20000, .top_paths = 4, .merge_repeated = false});
    df::Session session(graph);
    const auto scores = session.run({{x, logits}}, found.log_probability);
    for (std::size_t p = 0; p < 4; ++p) {
      const auto labels = session.run({{x, logits}}, found.decoded[p].values);
      CHECK(ctc_elements(labels) == expected[p].second);
      CHECK(scores(0, static_cast<std::int64_t>(p)) == Approx(std::log(expected[p].first)).epsilon(1e-12));
    }
    // And the loss of the best sequence is minus its score.
    const std::vector<std::int32_t> best(expected[0].second.begin(), expected[0].second.end());
    const auto loss = df::ctc_loss(x, rows_of_labels<std::int32_t>(graph, {best}), df::Tensor<std::int32_t>({1}, {6}));
    CHECK(session.run({{x, logits}}, loss)(0) == Approx(-scores(0, 0)).epsilon(1e-12));
  }
}

TEST_CASE("distances of decoded labels from the truth are those of an edge") {
  df::Graph graph;
  const auto x = df::placeholder<float>(graph);
  // Classes by time: item 0 says 0 0 1, item 1 says 2 (the blank) 1 2.
  df::Tensor<float> at = df::Tensor<float>::zeros({3, 2, 3});
  at(0, 0, 0) = at(1, 0, 0) = at(2, 0, 1) = at(0, 1, 2) = at(1, 1, 1) = at(2, 1, 2) = 1;
  const auto [decoded, score] =
      df::ctc_greedy_decoder(x, df::Tensor<std::int32_t>({2}, {3, 3}), {.merge_repeated = true});
  const auto truth = rows_of_labels<std::int64_t>(graph, {{0, 1, 1, 0}, {1}});
  const auto distances = df::edit_distance(decoded, truth), edits = df::edit_distance(decoded, truth, {false});
  CHECK(distances.shape() == df::PartialShape({df::dynamic}));
  df::Session session(graph);
  const auto [normalized, plain, scores] = session.run({{x, at}}, distances, edits, score);
  CHECK(ctc_elements(normalized) == std::vector<float>{0.5f, 0});
  CHECK(ctc_elements(plain) == std::vector<float>{2, 0});
  CHECK(ctc_elements(scores) == std::vector<float>{-3, -3});
  const auto texts = df::edit_distance(rows_of_labels<std::string>(graph, {{"a", "b"}}),
                                       rows_of_labels<std::string>(graph, {{"b", "b", "c"}}), {.normalize = false});
  CHECK(texts.shape() == df::PartialShape({1}));
  CHECK(session.run(texts)(0) == 2);
}

TEST_CASE("an error of CTC names the op, the position and the line") {
  df::Graph graph;
  const auto x = df::placeholder<float>(graph);
  const auto fed = df::placeholder<std::int32_t>(graph);
  const auto loss = df::ctc_loss(x, rows_of_labels<std::int32_t>(graph, {{0, 1}, {1}}), fed);
  df::Session session(graph);
  const df::Tensor<float> at = df::Tensor<float>::zeros({4, 2, 3});
  const df::Status status = status_of([&] {
    return session.run({{x, at}, {fed, df::Tensor<std::int32_t>({2}, {1, 4})}}, loss);
  });
  CHECK(status.code() == df::Code::invalid_argument);
  CHECK(mentions(status, "CTCLoss"));
  CHECK(mentions(status, "item 0 has 2 labels"));
  CHECK(mentions(status, "ctc_test.cpp"));
}
