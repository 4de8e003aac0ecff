#include <dflow/train/recurrent/sequences.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/dflow.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace df = dflow;

namespace {

df::Tensor<float> ripples(const df::Shape& shape, float scale = 1) {
  df::Tensor<float> tensor(shape);
  for (std::int64_t i = 0; i < tensor.num_elements(); ++i) {
    tensor.data()[i] = scale * std::sin(static_cast<float>(5 * i * i + 3 * i + 1));
  }
  return tensor;
}

constexpr std::int64_t num_symbols = 5, num_hidden = 3;

/// A sequence and the sum of the logarithms of its probabilities.
struct Scored {
  std::vector<std::int32_t> symbols;
  double score = 0;
};

/// A recurrent network in plain code: h' = tanh([one-hot of the symbol, h] kernel), logits = h' projection.
struct PlainNetwork {
  df::Tensor<float> kernel, projection;

  std::vector<double> next(std::int32_t symbol, const std::vector<double>& h) const {
    std::vector<double> result(num_hidden);
    for (std::int64_t u = 0; u < num_hidden; ++u) {
      double sum = static_cast<double>(kernel(symbol, u));
      for (std::int64_t v = 0; v < num_hidden; ++v) {
        sum += h[static_cast<std::size_t>(v)] * static_cast<double>(kernel(num_symbols + v, u));
      }
      result[static_cast<std::size_t>(u)] = std::tanh(sum);
    }
    return result;
  }
  std::vector<double> log_probabilities(const std::vector<double>& h) const {
    std::vector<double> result(num_symbols);
    double sum = 0;
    for (std::int64_t s = 0; s < num_symbols; ++s) {
      double& logit = result[static_cast<std::size_t>(s)];
      logit = 0;
      for (std::int64_t u = 0; u < num_hidden; ++u) {
        logit += h[static_cast<std::size_t>(u)] * static_cast<double>(projection(u, s));
      }
      sum += std::exp(logit);
    }
    for (double& logit : result) logit -= std::log(sum);
    return result;
  }
  /// All sequences that end with `end` or have `length` symbols.
  void visit(const Scored& so_far, std::int32_t last, const std::vector<double>& h, std::int32_t end,
             std::size_t length, std::vector<Scored>& all) const {
    const std::vector<double> state = next(last, h), log_probability = log_probabilities(state);
    for (std::int32_t s = 0; s < num_symbols; ++s) {
      Scored longer = so_far;
      longer.symbols.push_back(s);
      longer.score += log_probability[static_cast<std::size_t>(s)];
      if (s == end || longer.symbols.size() == length) {
        all.push_back(std::move(longer));
      } else {
        visit(longer, s, state, end, length, all);
      }
    }
  }
};

}  // namespace

// The formula of tensorflow/python/ops/seq2seq.py of version 0.8, in plain code.
TEST_CASE("a sequence loss is the weighted cross entropy, averaged as the options say") {
  constexpr std::int64_t batch = 2, time = 3, classes = 4;
  df::Graph graph;
  const df::Tensor<float> logit_values = ripples({batch, time, classes});
  const df::Tensor<std::int32_t> target_values({batch, time}, {0, 3, 1, 2, 2, 0});
  const df::Tensor<float> weight_values({batch, time}, {1, 0.5f, 0.25f, 1, 0, 0});
  auto logits = df::placeholder<float>(graph, {df::dynamic, df::dynamic, classes});
  auto targets = df::placeholder<std::int32_t>(graph, {df::dynamic, df::dynamic});
  auto weights = df::placeholder<float>(graph, {df::dynamic, df::dynamic});
  double sums[batch] = {}, weight_sums[batch] = {};
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t t = 0; t < time; ++t) {
      double sum = 0;
      for (std::int64_t c = 0; c < classes; ++c) sum += std::exp(static_cast<double>(logit_values(b, t, c)));
      const double loss = std::log(sum) - static_cast<double>(logit_values(b, t, target_values(b, t)));
      sums[b] += loss * static_cast<double>(weight_values(b, t));
      weight_sums[b] += static_cast<double>(weight_values(b, t));
    }
  }
  auto by_example = df::sequence_loss_by_example(logits, targets, weights);
  auto sum_by_example = df::sequence_loss_by_example(logits, targets, weights, {.average_across_timesteps = false});
  auto mean = df::sequence_loss(logits, targets, weights);
  auto sum = df::sequence_loss(logits, targets, weights, {.average_across_batch = false});
  auto own = df::sequence_loss_by(logits, targets, weights, [](auto rows, auto labels) {
    return df::sparse_softmax_cross_entropy(rows, labels) * 2.0f;
  });
  auto slope = df::gradients(mean, logits);
  CHECK(mean.shape() == df::PartialShape(std::vector<std::int64_t>{}));
  df::Session session(graph);
  const auto [a, b, c, d, e, g] =
      session.run({{logits, logit_values}, {targets, target_values}, {weights, weight_values}}, by_example,
                  sum_by_example, mean, sum, own, slope);
  const double first = sums[0] / weight_sums[0], second = sums[1] / weight_sums[1];
  CHECK(a(0) == Approx(first));
  CHECK(a(1) == Approx(second));
  CHECK(b(0) == Approx(sums[0]));
  CHECK(b(1) == Approx(sums[1]));
  CHECK(c.scalar() == Approx((first + second) / 2));
  CHECK(d.scalar() == Approx(first + second));
  CHECK(e.scalar() == Approx(first + second));
  for (std::int64_t k = 0; k < classes; ++k) CHECK(g(1, 2, k) == 0);  // no weight
  CHECK(g(0, 0, 0) < 0);
}

TEST_CASE("a sequence loss of 16 bits is summed in float, and that of no weight is zero") {
  constexpr std::int64_t time = 3000;  // beyond 2048 a sum of ones in float16 stays
  df::Graph graph;
  auto logits = df::constant(graph, df::Tensor<df::Half>::full({2, time, 2}, df::Half(0.0f)));
  auto targets = df::constant(graph, df::Tensor<std::int32_t>::zeros({2, time}));
  df::Tensor<df::Half> given = df::Tensor<df::Half>::zeros({2, time});
  for (std::int64_t t = 0; t < time; ++t) given(0, t) = df::Half(1.0f);
  auto losses = df::sequence_loss_by_example(logits, targets, df::constant(graph, given));
  df::Session session(graph);
  const df::Tensor<df::Half> each = session.run(losses);
  CHECK(static_cast<float>(each(0)) == Approx(std::log(2.0)).epsilon(1e-3));
  CHECK(static_cast<float>(each(1)) == 0);
}

TEST_CASE("a sequence loss rejects shapes that do not fit") {
  df::Graph graph;
  auto logits = df::placeholder<float>(graph, {2, 3, 4});
  auto targets = df::placeholder<std::int32_t>(graph, {2, 3});
  auto weights = df::placeholder<float>(graph, {3, 2});
  CHECK_THROWS_AS(df::sequence_loss(logits, targets, weights), df::Error);
  CHECK_THROWS_AS(df::sequence_loss(df::placeholder<float>(graph, {2, 4}), targets, weights), df::Error);
  CHECK_THROWS_AS(df::sequence_loss(df::Output<float>(), targets, weights), df::Error);
}

TEST_CASE("a beam search finds what an exhaustive search finds, with and without an end symbol") {
  constexpr std::int32_t length = 6, start = 1;
  const std::int32_t end = GENERATE(-1, 4);
  // All beginnings of five symbols are kept if the beam is as wide as their number.
  const std::int64_t width = end < 0 ? 3125 : 1365;
  const PlainNetwork plain{ripples({num_symbols + num_hidden, num_hidden}, 1.5f),
                           ripples({num_hidden, num_symbols}, 2)};
  const df::Tensor<float> begin = ripples({2, num_hidden}, 0.7f);

  df::Graph graph;
  df::BasicRnnCell cell(num_hidden, {.kernel_initializer = df::init::constant(0)});
  auto projection = df::constant(graph, plain.projection);
  auto state = df::placeholder<float>(graph, {df::dynamic, num_hidden});
  auto embed = [](df::Output<std::int32_t> ids) { return df::one_hot<float>(ids, num_symbols); };
  auto project = [&](df::Output<float> output) { return df::matmul(output, projection); };
  auto beams =
      df::beam_search<float>(cell, state, embed, project,
                             {.beam_width = width, .max_length = length, .start_symbol = start, .end_symbol = end});
  auto greedy = df::beam_search<float>(
      cell, state, embed, project, {.beam_width = 1, .max_length = length, .start_symbol = start, .end_symbol = end});
  CHECK(beams.symbols.shape() == df::PartialShape({df::dynamic, width, length}));
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  const df::Variable<float> kernel(df::trainable_variables(graph).at(0));
  session.run(kernel.assign(df::constant(graph, plain.kernel)));
  const auto [symbols, lengths, scores, first_symbols, first_scores] =
      session.run({{state, begin}}, beams.symbols, beams.lengths, beams.scores, greedy.symbols, greedy.scores);
  for (std::int64_t b = 0; b < 2; ++b) {
    std::vector<double> h;
    for (std::int64_t u = 0; u < num_hidden; ++u) h.push_back(static_cast<double>(begin(b, u)));
    std::vector<Scored> all;
    plain.visit({}, start, h, end, length, all);
    std::stable_sort(all.begin(), all.end(), [](const Scored& x, const Scored& y) { return x.score > y.score; });
    std::int64_t num_compared = 0;
    for (std::int64_t w = 0; w < 200; ++w) {
      const Scored& wanted = all[static_cast<std::size_t>(w)];
      CHECK(scores(b, w) == Approx(wanted.score).epsilon(1e-4));
      const auto near = [&](std::size_t other) { return std::abs(all[other].score - wanted.score) < 1e-4; };
      if ((w > 0 && near(static_cast<std::size_t>(w) - 1)) || near(static_cast<std::size_t>(w) + 1)) continue;
      ++num_compared;
      REQUIRE(lengths(b, w) == static_cast<std::int32_t>(wanted.symbols.size()));
      for (std::int64_t t = 0; t < length; ++t) {
        CHECK(symbols(b, w, t) == (t < lengths(b, w) ? wanted.symbols[static_cast<std::size_t>(t)] : end));
      }
    }
    CHECK(num_compared > 50);
    double score = 0;  // a beam of one: the best symbol of each step
    std::int32_t last = start;
    for (std::int64_t t = 0; t < length; ++t) {
      h = plain.next(last, h);
      const std::vector<double> log_probability = plain.log_probabilities(h);
      const auto best = std::max_element(log_probability.begin(), log_probability.end());
      last = static_cast<std::int32_t>(best - log_probability.begin());
      CHECK(first_symbols(b, 0, t) == last);
      score += *best;
      if (last != end) continue;
      for (std::int64_t rest = t; rest < length; ++rest) CHECK(first_symbols(b, 0, rest) == end);
      break;
    }
    CHECK(first_scores(b, 0) == Approx(score).epsilon(1e-4));
  }
}

TEST_CASE("a beam that is wider than there are sequences has scores of minus infinity") {
  df::Graph graph;
  df::GruCell cell(2);
  df::Dense dense(2);
  auto x = df::constant(graph, df::Tensor<float>({1, 2}, {0, 0}));
  auto beams = df::beam_search<float>(
      cell, cell.zero_state(x), [](auto ids) { return df::one_hot<float>(ids, 2); },
      [&](auto output) { return dense(output); }, {.beam_width = 5, .max_length = 2, .end_symbol = 1});
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  const auto scores = session.run(beams.scores);
  CHECK(std::exp(scores(0, 0)) + std::exp(scores(0, 1)) + std::exp(scores(0, 2)) == Approx(1));
  for (std::int64_t w = 3; w < 5; ++w) CHECK(scores(0, w) == -std::numeric_limits<float>::infinity());
}

TEST_CASE("a beam search rejects options and logits that do not fit") {
  df::Graph graph;
  df::BasicRnnCell cell(2);
  auto state = df::placeholder<float>(graph, {1, 2});
  const auto search = [&](const df::BeamSearchOptions& options) {
    return df::beam_search<float>(
        cell, state, [](auto ids) { return df::one_hot<float>(ids, 2); }, [](auto output) { return output; }, options);
  };
  CHECK_THROWS_AS(search({.beam_width = 0, .max_length = 2}), df::Error);
  CHECK_THROWS_AS(search({.beam_width = 2, .max_length = 0}), df::Error);
  CHECK_THROWS_AS(search({.beam_width = 2, .max_length = 2, .end_symbol = 2}), df::Error);
}
