#include <dflow/train/recurrent/attention.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/dflow.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace df = dflow;

namespace {

using PlainMatrix = std::vector<std::vector<double>>;

df::Tensor<float> swell(const df::Shape& shape, int seed) {
  df::Tensor<float> tensor(shape);
  for (std::int64_t i = 0; i < tensor.num_elements(); ++i) {
    tensor.data()[i] = std::sin(static_cast<float>(11 * seed + 2 * i + 1));
  }
  return tensor;
}

PlainMatrix plain_matrix(const df::Tensor<float>& of) {
  PlainMatrix result(static_cast<std::size_t>(of.shape().dim(0)));
  const std::int64_t columns = of.num_elements() / of.shape().dim(0);
  for (std::int64_t i = 0; i < of.num_elements(); ++i) {
    result[static_cast<std::size_t>(i / columns)].push_back(static_cast<double>(of.data()[i]));
  }
  return result;
}

/// x matrix, with the rows from `begin` on.
std::vector<double> row_times(const std::vector<double>& x, const PlainMatrix& matrix, std::size_t begin = 0) {
  std::vector<double> result(matrix.at(0).size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    for (std::size_t j = 0; j < result.size(); ++j) result[j] += x[i] * matrix.at(begin + i)[j];
  }
  return result;
}

/// Sets all variables to values, and gives these by name.
std::map<std::string, PlainMatrix> set_all(df::Session& session, df::Graph& graph) {
  std::map<std::string, PlainMatrix> all;
  session.run(df::initialize_variables(graph));
  int seed = 1;
  for (const df::AnyVariable& variable : df::trainable_variables(graph)) {
    const df::Variable<float> typed(variable);
    const df::Tensor<float> value = swell(typed.shape().to_shape(), seed++);
    session.run(typed.assign(df::constant(graph, value)));
    const df::Tensor<float> as_rows =
        value.shape().rank() == 1 ? df::Tensor<float>({1, value.num_elements()}, {value.begin(), value.end()}) : value;
    all.emplace(std::string(variable.name()), plain_matrix(as_rows));
  }
  return all;
}

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

}  // namespace

// ONNX's GRU with linear_before_reset = 1 and other names: z is u, Rbh is the recurrent bias.
TEST_CASE("a gated cell that resets after its product follows ONNX's formula") {
  constexpr std::int64_t inputs = 2, units = 3;
  df::Graph graph;
  df::GruCell cell(units, {.reset_after = true});
  const df::Tensor<float> x_values = swell({1, inputs}, 8), h_values = swell({1, units}, 9);
  auto [output, next] = cell(df::constant(graph, x_values), df::constant(graph, h_values));
  df::Session session(graph);
  const auto variables = set_all(session, graph);
  REQUIRE(variables.size() == 5);
  const std::vector<double> x = plain_matrix(x_values)[0], h = plain_matrix(h_values)[0];
  const auto of = [&](const char* name) { return variables.at(std::string("gru_cell/") + name); };
  const std::vector<double> gx = row_times(x, of("gates/kernel")), gh = row_times(h, of("gates/kernel"), inputs);
  const std::vector<double> cx = row_times(x, of("candidate/kernel")),
                            ch = row_times(h, of("candidate/kernel"), inputs);
  const auto values = session.run(output);
  for (std::size_t i = 0; i < units; ++i) {
    const double r = logistic(gx[i] + gh[i] + of("gates/bias")[0][i]);
    const double u = logistic(gx[units + i] + gh[units + i] + of("gates/bias")[0][units + i]);
    const double c = std::tanh(cx[i] + of("candidate/bias")[0][i] + r * (ch[i] + of("candidate/recurrent_bias")[0][i]));
    CHECK(values(0, static_cast<std::int64_t>(i)) == Approx(u * h[i] + (1 - u) * c));
  }
  CHECK_THROWS_AS(cell(df::constant(graph, swell({1, 1}, 2)), df::constant(graph, h_values)), df::Error);
}

// ONNX's LSTM with input_forget = 1.
TEST_CASE("a cell of long short-term memory with coupled gates forgets what it does not take in") {
  constexpr std::size_t units = 2;
  df::Graph graph;
  df::LstmCell cell(units, {.couple_gates = true});
  const df::Tensor<float> x = swell({1, 2}, 8), c = swell({1, units}, 9), h = swell({1, units}, 3);
  auto [output, next] = cell(df::constant(graph, x), std::tuple{df::constant(graph, c), df::constant(graph, h)});
  df::Session session(graph);
  const auto variables = set_all(session, graph);
  std::vector<double> joint = plain_matrix(x)[0];
  for (const float value : h) joint.push_back(static_cast<double>(value));
  std::vector<double> gates = row_times(joint, variables.at("lstm_cell/kernel"));
  for (std::size_t k = 0; k < gates.size(); ++k) gates[k] += variables.at("lstm_cell/bias")[0][k];
  const auto [y, of_cell] = session.run(output, std::get<0>(next));
  for (std::size_t u = 0; u < units; ++u) {  // the quarters are i, j, f, o
    const double i = logistic(gates[u]), before = plain_matrix(c)[0][u];
    const double wanted = (1 - i) * before + i * std::tanh(gates[units + u]);
    CHECK(of_cell(0, static_cast<std::int64_t>(u)) == Approx(wanted).margin(1e-6));
    CHECK(y(0, static_cast<std::int64_t>(u)) ==
          Approx(std::tanh(wanted) * logistic(gates[3 * units + u])).margin(1e-6));
  }
}

TEST_CASE("a cell with an embedding gives what the cell gives of the rows of its table") {
  df::Graph graph({.seed = 3});
  df::LstmCell inner(3);
  df::EmbeddingCell cell(inner, 5, 2);
  auto ids = df::constant(graph, df::Tensor<std::int32_t>({2}, {4, 1}));
  auto [output, next] = cell(ids, cell.zero_state(ids));
  const df::Variable<float> table(df::trainable_variables(graph).at(0));
  CHECK(table.shape() == df::PartialShape({5, 2}));
  auto x = df::embedding_lookup(table, ids);
  auto [wanted, wanted_next] = inner(x, inner.zero_state(x));
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  const auto [a, b] = session.run(output, wanted);
  for (std::int64_t i = 0; i < a.num_elements(); ++i) CHECK(a.data()[i] == b.data()[i]);
}

TEST_CASE("an attention reads the memory by the formula of Bahdanau, as far as the lengths say") {
  constexpr std::int64_t batch = 2, time = 3, columns = 2, units = 3, inputs = 2, attended = 4, outputs = 5;
  const bool has_lengths = GENERATE(false, true);
  df::Graph graph;
  const df::Tensor<float> memory_values = swell({batch, time, columns}, 4), x_values = swell({batch, inputs}, 5);
  auto memory = df::placeholder<float>(graph, {df::dynamic, df::dynamic, columns});
  df::AttentionOptions options{.units = attended, .outputs = outputs};
  if (has_lengths) options.memory_length = df::constant(graph, df::Tensor<std::int32_t>({batch}, {3, 1}));
  const df::BasicRnnCell inner(units);
  df::AttentionCell cell(inner, memory, options);
  auto x = df::constant(graph, x_values);
  auto [output, state] = cell(x, cell.zero_state(x));
  auto again = std::get<0>(cell.with_memory(memory, options.memory_length)(x, cell.zero_state(x)));
  df::Session session(graph);
  const auto variables = set_all(session, graph);
  const auto [y, context, same] = session.run({{memory, memory_values}}, output, std::get<1>(state), again);
  for (std::int64_t i = 0; i < y.num_elements(); ++i) CHECK(same.data()[i] == y.data()[i]);
  for (std::int64_t b = 0; b < batch; ++b) {
    std::vector<double> h =
        row_times(plain_matrix(x_values)[static_cast<std::size_t>(b)], variables.at("rnn_cell/kernel"));
    for (std::size_t u = 0; u < h.size(); ++u) h[u] = std::tanh(h[u] + variables.at("rnn_cell/bias")[0][u]);
    const std::vector<double> query = row_times(h, variables.at("attention_query/kernel"));
    std::vector<double> weights, wanted(columns);
    double sum = 0;
    const std::int64_t length = has_lengths && b == 1 ? 1 : time;
    for (std::int64_t t = 0; t < length; ++t) {
      const std::vector<double> key =
          row_times({static_cast<double>(memory_values(b, t, 0)), static_cast<double>(memory_values(b, t, 1))},
                    variables.at("attention_keys/kernel"));
      double score = 0;
      for (std::size_t k = 0; k < key.size(); ++k) {
        score += std::tanh(key[k] + query[k]) * variables.at("attention_scores/kernel")[k][0];
      }
      weights.push_back(std::exp(score));
      sum += weights.back();
    }
    for (std::int64_t t = 0; t < length; ++t) {
      for (std::size_t c = 0; c < columns; ++c) {
        wanted[c] += weights[static_cast<std::size_t>(t)] / sum *
                     static_cast<double>(memory_values(b, t, static_cast<std::int64_t>(c)));
      }
    }
    for (std::size_t c = 0; c < columns; ++c) {
      CHECK(context(b, static_cast<std::int64_t>(c)) == Approx(wanted[c]).margin(1e-6));
    }
    h.insert(h.end(), wanted.begin(), wanted.end());
    const std::vector<double> result = row_times(h, variables.at("attention_output/kernel"));
    for (std::size_t k = 0; k < outputs; ++k) {
      CHECK(y(b, static_cast<std::int64_t>(k)) ==
            Approx(result[k] + variables.at("attention_output/bias")[0][k]).margin(1e-6));
    }
  }
}

TEST_CASE("an attention rejects a memory without three dimensions") {
  df::Graph graph;
  const auto over = [&](const df::Output<float>& memory) { return df::AttentionCell(df::BasicRnnCell(2), memory); };
  CHECK_THROWS_AS(over(df::placeholder<float>(graph, {2, 3})), df::Error);
  CHECK_THROWS_AS(over(df::placeholder<float>(graph, {2, 3, df::dynamic})), df::Error);
  CHECK_THROWS_AS(over(df::Output<float>()), df::Error);
}
