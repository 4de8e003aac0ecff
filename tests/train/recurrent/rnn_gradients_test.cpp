// Gradients of loops over cells against finite differences, in double.
#include <dflow/train/recurrent/rnn.hpp>

#include "catch.hpp"
#include "support/sanitized.hpp"

#include <dflow/dflow.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace df = dflow;

namespace {

/// An edge to feed with smooth numbers, and its name.
struct FedEdge {
  std::string name;
  df::AnyOutput edge;
  df::Tensor<double> value;
};

df::Tensor<double> smooth_numbers(const df::Shape& shape, int seed) {
  df::Tensor<double> tensor(shape);
  for (std::int64_t i = 0; i < tensor.num_elements(); ++i) {
    tensor.data()[i] = 0.6 * std::sin(static_cast<double>(5 * seed + 3 * i + 1));
  }
  return tensor;
}

/// For a loss of outputs and last states: checks its gradients by x, the first states and all variables, and the
/// gradients of a weighted sum of its gradients.
template <class Cell>
void check_gradients_of(const Cell& cell, df::RnnOptions options, bool has_lengths) {
  constexpr std::int64_t batch = 2, time = 4, inputs = 3;
  df::Graph graph;
  std::vector<FedEdge> fed;
  const auto feed = [&](const std::string& name, const df::AnyOutput& edge, const df::Shape& shape) {
    fed.push_back({name, edge, smooth_numbers(shape, static_cast<int>(fed.size()))});
  };
  const df::Shape x_shape = options.time_major ? df::Shape{time, batch, inputs} : df::Shape{batch, time, inputs};
  auto x = df::placeholder<double>(graph, df::PartialShape(x_shape));
  feed("x", x, x_shape);
  auto lengths = df::placeholder<std::int32_t>(graph, {batch});
  if (has_lengths) options.sequence_length = lengths;
  // The states of zeros have the shapes that a first state has.
  std::vector<df::AnyOutput> first;
  for (const df::AnyOutput& zeros : df::detail::edges_of(cell.zero_state(x, options.time_major ? 1 : 0))) {
    const df::Shape shape{batch, zeros.shape().dim(1)};
    first.push_back(df::placeholder<double>(graph, df::PartialShape(shape)));
    feed("first state " + std::to_string(first.size() - 1), first.back(), shape);
  }
  using State = typename Cell::template State<double>;
  auto [outputs, state] = df::dynamic_rnn(cell, x, df::detail::from_edges<State>(first), options);
  for (const df::AnyVariable& variable : df::trainable_variables(graph)) {
    feed(variable.name(), variable.read_edge(), variable.shape().to_shape());
  }
  df::Output<double> loss = df::reduce_sum(df::sin(outputs * 2.0));
  for (const df::AnyOutput& last : df::detail::edges_of(state)) {
    loss = loss + df::reduce_sum(df::square(df::Output<double>(last)));
  }
  std::vector<df::AnyOutput> xs, slopes, again, weights;
  for (const FedEdge& each : fed) {
    xs.push_back(each.edge);
    weights.push_back(df::constant(graph, smooth_numbers(each.value.shape(), 1000 + static_cast<int>(xs.size()))));
  }
  const df::AnyOutput y = loss;
  const std::vector<df::Gradient> first_order = df::gradients({&y, 1}, xs);
  for (std::size_t i = 0; i < xs.size(); ++i) slopes.push_back(df::densify(first_order[i], xs[i]));
  const std::vector<df::Gradient> second_order = df::gradients(slopes, xs, {.grad_ys = weights});
  for (std::size_t i = 0; i < xs.size(); ++i) again.push_back(df::densify(second_order[i], xs[i]));
  std::vector<df::AnyOutput> all{y};
  all.insert(all.end(), slopes.begin(), slopes.end());
  all.insert(all.end(), again.begin(), again.end());
  for (const bool lowers : {false, true}) {
    df::PassOptions passes;
    passes.lower_control_flow = lowers;
    df::Session session(graph, {.passes = passes});
    const auto run = [&](const std::vector<df::AnyOutput>& edges) {
      std::vector<df::Feed> feeds;
      for (const FedEdge& each : fed) feeds.emplace_back(each.edge, df::AnyTensor(each.value));
      if (has_lengths) feeds.emplace_back(lengths, df::Tensor<std::int32_t>({batch}, {4, 2}));
      std::vector<df::AnyTensor> results(edges.size());
      session.run_erased({}, nullptr, feeds, edges, {}, results);
      return results;
    };
    const std::vector<df::AnyTensor> values = run(all);
    for (std::size_t k = 0; k < fed.size(); ++k) {
      const auto slope = values[k + 1].as<double>(), second = values[k + 1 + fed.size()].as<double>();
      REQUIRE(slope.shape() == fed[k].value.shape());
      for (std::int64_t i = 0; i < slope.num_elements(); i += df::testing::is_sanitized ? 5 : 1) {
        INFO(fed[k].name << ", element " << i << ", lowered: " << lowers);
        constexpr double step = 1e-5;
        const df::Tensor<double> before = fed[k].value;
        const auto at = [&](double offset) {
          fed[k].value = before.deep_copy();
          fed[k].value.data()[i] += offset;
          const std::vector<df::AnyTensor> there = run(all);
          double weighted = 0;
          for (std::size_t other = 0; other < fed.size(); ++other) {
            const auto g = there[other + 1].as<double>();
            const auto w = smooth_numbers(g.shape(), 1001 + static_cast<int>(other));
            for (std::int64_t j = 0; j < g.num_elements(); ++j) weighted += w.data()[j] * g.data()[j];
          }
          return std::pair(there[0].as<double>().scalar(), weighted);
        };
        const auto [more, more_slope] = at(step);
        const auto [less, less_slope] = at(-step);
        fed[k].value = before;
        CHECK(slope.data()[i] == Approx((more - less) / (2 * step)).epsilon(1e-6).margin(1e-7));
        CHECK(second.data()[i] == Approx((more_slope - less_slope) / (2 * step)).epsilon(1e-6).margin(1e-6));
      }
    }
  }
}

template <class MakeCell>
void check_all_gradients(MakeCell cell) {
  for (const bool has_lengths : {false, true}) {
    for (const bool reverse : {false, true}) {
      INFO("lengths: " << has_lengths << ", reverse: " << reverse);
      // The cells of each graph are its own.
      check_gradients_of(cell(), {.time_major = has_lengths == reverse, .reverse = reverse}, has_lengths);
    }
  }
}

}  // namespace

TEST_CASE("gradients of recurrent networks are those of finite differences, twice") {
  SECTION("basic") {
    check_all_gradients([] { return df::BasicRnnCell(2); });
  }
  SECTION("gated") {
    check_all_gradients([] { return df::GruCell(2); });
  }
  SECTION("long short-term memory") {
    check_all_gradients([] { return df::LstmCell(2); });
  }
  SECTION("long short-term memory of all parts") {
    check_all_gradients([] { return df::LstmCell(2, {.use_peepholes = true, .projection = 3}); });
  }
  SECTION("one on the other") {
    check_all_gradients([] { return df::StackedCells(df::GruCell(2), df::LstmCell(2)); });
  }
}

TEST_CASE("the gradients of a cell that computes in 16 bits are summed over the steps in float") {
  constexpr std::int64_t time = 1000;
  for (const df::DType compute : {df::DType::float32, df::DType::bfloat16, df::DType::float16}) {
    for (const bool is_dynamic : {true, false}) {
      df::Graph graph({.seed = 3});
      const auto x = df::placeholder<float>(graph, {1, is_dynamic ? df::dynamic : time, 1});
      df::Output<float> loss;
      {
        const df::VariableScope scope(graph, "", {.compute = compute});
        const df::BasicRnnCell cell(1);
        if (is_dynamic) {
          loss = df::reduce_sum(std::get<0>(df::dynamic_rnn(cell, x)));
        } else {
          loss = df::reduce_sum(df::pack(std::get<0>(df::static_rnn(cell, df::unpack(x, time, 1)))));
        }
      }
      df::Session session(graph);
      session.run(df::initialize_variables(graph));
      for (const df::AnyVariable& variable : df::trainable_variables(graph)) {
        const auto typed = variable.as<float>();
        df::Tensor<float> zeros = session.run(typed).copy();
        for (float& each : zeros) each = 0;
        session.run(typed.assign(df::constant(graph, zeros)));
      }
      for (const df::AnyVariable& variable : df::trainable_variables(graph)) {
        INFO(variable.name() << " in " << df::dtype_name(compute));
        // The state is 0, and tanh'(0) = 1: each step adds 1.
        const auto slope =
            session.run({{x, df::Tensor<float>::full({1, time, 1}, 1.0f)}}, df::gradients(loss, variable.as<float>()));
        CHECK(slope.data()[0] == time);
      }
    }
  }
}
