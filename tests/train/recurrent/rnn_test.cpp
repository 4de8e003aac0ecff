#include <dflow/train/recurrent/rnn.hpp>

#include "catch.hpp"
#include "support/control_flow_forms.hpp"
#include "support/errors.hpp"

#include <dflow/dflow.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <source_location>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace df = dflow;

namespace {

df::Tensor<float> waves(const df::Shape& shape, int seed = 0) {
  df::Tensor<float> tensor(shape);
  for (std::int64_t i = 0; i < tensor.num_elements(); ++i) {
    tensor.data()[i] = std::sin(static_cast<float>(7 * seed + 3 * i + 1));
  }
  return tensor;
}

df::Output<float> row(df::Graph& graph, std::vector<float> of) {
  return df::constant(graph, df::Tensor<float>({1, static_cast<std::int64_t>(of.size())}, of));
}

template <class T>
std::vector<T> values(const df::Tensor<T>& tensor) {
  return {tensor.begin(), tensor.end()};
}

/// A loop adds the products of inputs and of states in another order.
void require_close(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == Approx(b[i]).margin(1e-6));
}

}  // namespace

// tensorflow/python/kernel_tests/rnn_cell_test.py of version 0.8, with weights of 0.5.
TEST_CASE("cells give what TensorFlow's tests expect of them") {
  df::Graph graph;
  const auto half = df::init::constant(0.5);
  auto x = row(graph, {1.0f, 1.0f});
  SECTION("basic") {
    df::BasicRnnCell cell(2, {.kernel_initializer = half});
    auto [output, state] = cell(x, row(graph, {0.1f, 0.1f}));
    df::Session session(graph, {.passes = df::testing::each_form()});
    session.run(df::initialize_variables(graph));
    for (const float value : session.run(output)) CHECK(value == Approx(std::tanh(1.1)));
  }
  SECTION("gated") {
    df::GruCell cell(2, {.kernel_initializer = half});
    auto [output, state] = cell(x, row(graph, {0.1f, 0.1f}));
    df::Session session(graph, {.passes = df::testing::each_form()});
    session.run(df::initialize_variables(graph));
    for (const float value : session.run(output)) CHECK(value == Approx(0.175991).epsilon(1e-5));
  }
  SECTION("two of long short-term memory, one on the other") {
    df::StackedCells cell(df::LstmCell(2, {.kernel_initializer = half}), df::LstmCell(2, {.kernel_initializer = half}));
    const auto state = [&] { return row(graph, {0.1f, 0.1f}); };
    auto [output, next] = cell(x, std::tuple{std::tuple{state(), state()}, std::tuple{state(), state()}});
    df::Session session(graph, {.passes = df::testing::each_form()});
    session.run(df::initialize_variables(graph));
    const auto& [first, second] = next;
    const auto [y, c1, h1, c2, h2] =
        session.run(output, std::get<0>(first), std::get<1>(first), std::get<0>(second), std::get<1>(second));
    CHECK(values(y) == values(h2));
    for (int i = 0; i < 2; ++i) {
      CHECK(c1(0, i) == Approx(0.68967271).epsilon(1e-5));
      CHECK(h1(0, i) == Approx(0.44848421).epsilon(1e-5));
      CHECK(c2(0, i) == Approx(0.39897051).epsilon(1e-5));
      CHECK(h2(0, i) == Approx(0.24024698).epsilon(1e-5));
    }
  }
}

TEST_CASE("a loop over the steps gives what steps one by one give, from either end and with lengths") {
  constexpr std::int64_t batch = 3, time = 5, inputs = 2, units = 4;
  const auto check = [&](const auto& cell) {
    for (const bool has_lengths : {false, true}) {
      for (const bool reverse : {false, true}) {
        for (const bool time_major : {false, true}) {
          INFO("lengths " << has_lengths << ", reverse " << reverse << ", time first " << time_major);
          df::Graph graph({.seed = 2});
          auto x = df::placeholder<float>(graph, time_major ? df::PartialShape{df::dynamic, batch, inputs}
                                                            : df::PartialShape{df::dynamic, df::dynamic, inputs});
          auto lengths = df::placeholder<std::int32_t>(graph, {df::dynamic});
          auto fresh = cell();
          df::RnnOptions options{.time_major = time_major, .reverse = reverse};
          if (has_lengths) options.sequence_length = lengths;
          auto [outputs, state] = df::dynamic_rnn(fresh, x, options);
          CHECK(outputs.shape() == (time_major ? df::PartialShape({df::dynamic, batch, units})
                                               : df::PartialShape({df::dynamic, df::dynamic, units})));
          std::vector<df::Output<float>> steps;
          for (auto& step : df::unpack(x, time, time_major ? 0 : 1))
            steps.push_back(df::reshape(step, {batch, inputs}));
          auto [unrolled, last] = df::static_rnn(fresh, steps, options);
          auto packed = df::pack(unrolled, {.axis = time_major ? 0 : 1});
          auto sum = [](const auto& of) { return df::reduce_sum(df::sin(of)); };
          const df::AnyVariable kernel = df::trainable_variables(graph).at(0);
          auto loop_gradient = df::gradients(sum(outputs), df::Output<float>(kernel.read_edge()));
          auto steps_gradient = df::gradients(sum(packed), df::Output<float>(kernel.read_edge()));
          df::Session session(graph, {.passes = df::testing::each_form()});
          session.run(df::initialize_variables(graph));
          const df::Feed fed(x, time_major ? waves({time, batch, inputs}) : waves({batch, time, inputs}));
          const df::Feed of_lengths(lengths, df::Tensor<std::int32_t>({3}, {5, 0, 2}));
          const auto [a, b, g, h] = session.run({fed, of_lengths}, outputs, packed, loop_gradient, steps_gradient);
          require_close(values(a), values(b));
          for (std::int64_t i = 0; i < g.num_elements(); ++i) CHECK(g.data()[i] == Approx(h.data()[i]).margin(1e-5));
          const std::vector<df::AnyOutput> of_loop = df::detail::edges_of(state), of_steps = df::detail::edges_of(last);
          for (std::size_t i = 0; i < of_loop.size(); ++i) {
            const auto [s, t] =
                session.run({fed, of_lengths}, df::Output<float>(of_loop[i]), df::Output<float>(of_steps[i]));
            require_close(values(s), values(t));
          }
          if (!has_lengths) continue;
          for (int t = 0; t < time; ++t) {  // the second sequence has no steps, the third two
            for (int u = 0; u < units; ++u) {
              CHECK((time_major ? a(t, 1, u) : a(1, t, u)) == 0);
              CHECK(((time_major ? a(t, 2, u) : a(2, t, u)) == 0) == (t >= 2));
            }
          }
        }
      }
    }
  };
  check([] { return df::BasicRnnCell(units); });
  check([] { return df::GruCell(units); });
  check([] { return df::LstmCell(units); });
  check([] { return df::StackedCells(df::GruCell(3), df::LstmCell(units)); });
  check([] { return df::DropoutCell(df::LstmCell(units), {.training = df::Training(false)}); });
  check([] { return df::ProjectionCell(df::GruCell(3), {.inputs = 2, .outputs = units}); });
  check([] { return df::ProjectionCell(df::ResidualCell(df::LstmCell(units)), {.inputs = units}); });
}

TEST_CASE("a projection is a linear layer around a cell, and a residual adds the input to the output") {
  df::Graph graph;
  const auto half = df::init::constant(0.5);
  const auto x = row(graph, {1.0f, 2.0f}), h = row(graph, {0.1f, 0.1f});
  const df::BasicRnnCell plain(2, {.kernel_initializer = half});
  const df::ProjectionCell projection(df::BasicRnnCell(2, {.kernel_initializer = half}),
                                      {.inputs = 3, .outputs = 1, .kernel_initializer = half});
  const df::ResidualCell residual(plain);
  const auto [projected, state] = projection(x, h);
  const auto [sum, last] = residual(x, h);
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  // 3 columns of 1.5 and 2 of 0.1: tanh(2.25 + 0.1). Then half of two of them.
  const auto [output, next, added, inner] = session.run(projected, state, sum, last);
  CHECK(output.shape() == df::Shape({1, 1}));
  CHECK(output(0, 0) == Approx(std::tanh(2.35)));
  CHECK(next(0, 1) == Approx(std::tanh(2.35)));
  CHECK(inner(0, 0) == Approx(std::tanh(1.6)));
  CHECK(added(0, 0) == Approx(1 + std::tanh(1.6)));
  CHECK(added(0, 1) == Approx(2 + std::tanh(1.6)));
  std::vector<std::string> names;
  for (const df::AnyVariable& variable : df::global_variables(graph)) names.emplace_back(variable.name());
  CHECK(std::count(names.begin(), names.end(), "input_projection/kernel") == 1);
  CHECK(std::count(names.begin(), names.end(), "output_projection/bias") == 1);
  // Nothing is broadcast.
  const df::ResidualCell one(df::BasicRnnCell(1));
  CHECK(code_of([&] { return one(x, row(graph, {0.1f})); }) == df::Code::invalid_argument);
}

TEST_CASE("a loop over no steps, or of no sequences, gives none, however little the graph knows of their number") {
  constexpr std::int64_t inputs = 4, units = 5;
  const auto check = [&](const auto& cell, std::int64_t time, std::int64_t batch, int known, bool time_major) {
    INFO("time " << time << ", batch " << batch << ", known " << known << ", time first " << time_major);
    const std::int64_t known_time = (known & 1) != 0 ? time : df::dynamic;
    const std::int64_t known_batch = (known & 2) != 0 ? batch : df::dynamic;
    df::Graph graph({.seed = 2});
    const auto x = df::placeholder<float>(graph, time_major ? df::PartialShape{known_time, known_batch, inputs}
                                                            : df::PartialShape{known_batch, known_time, inputs});
    const auto [outputs, state] = df::dynamic_rnn(cell(), x, {.time_major = time_major});
    const std::vector<df::AnyOutput> states = df::detail::edges_of(state);
    CHECK(outputs.shape() == (time_major ? df::PartialShape{known_time, known_batch, units}
                                         : df::PartialShape{known_batch, known_time, units}));
    const auto slope = df::gradients(df::reduce_sum(outputs) + df::reduce_sum(df::Output<float>(states[0])), x);
    df::Session session(graph);
    session.run(df::initialize_variables(graph));
    const df::Shape fed = time_major ? df::Shape{time, batch, inputs} : df::Shape{batch, time, inputs};
    const auto [got, dx, last] =
        session.run({{x, df::Tensor<float>(fed)}}, outputs, slope, df::Output<float>(states[0]));
    CHECK(got.shape() == (time_major ? df::Shape{time, batch, units} : df::Shape{batch, time, units}));
    CHECK(dx.shape() == fed);
    CHECK(last.shape() == df::Shape{batch, units});
  };
  for (const auto& [time, batch] : {std::pair{0, 3}, {2, 0}, {0, 0}}) {
    for (int known = 0; known < 4; ++known) {
      for (const bool time_major : {false, true}) {
        check([] { return df::LstmCell(units); }, time, batch, known, time_major);
        check([] { return df::GruCell(units); }, time, batch, known, time_major);
      }
    }
  }
}

TEST_CASE("a cell of long short-term memory has peepholes, a bound and a projection") {
  df::Graph graph;
  df::LstmCell cell(2, {.use_peepholes = true,
                        .cell_clip = 0.5,
                        .projection = 3,
                        .kernel_initializer = df::init::constant(0.25),
                        .bias_initializer = df::init::constant(0.1)});
  auto x = row(graph, {1.0f, -0.5f});
  auto [output, state] = cell(x, std::tuple{row(graph, {0.4f, -0.2f}), row(graph, {0.3f, 0.2f, 0.1f})});
  CHECK(output.shape() == df::PartialShape({1, 3}));
  CHECK(cell.variables().size() == 6);
  df::Session session(graph, {.passes = df::testing::each_form()});
  session.run(df::initialize_variables(graph));
  const auto [y, c] = session.run(output, std::get<0>(state));
  const double linear = 0.25 * (1 - 0.5 + 0.3 + 0.2 + 0.1) + 0.1;
  const auto sigmoid = [](double of) { return 1 / (1 + std::exp(-of)); };
  double sum = 0;
  for (int k = 0; k < 2; ++k) {
    const double before = k == 0 ? 0.4 : -0.2;
    double next = before * sigmoid(linear + 1 + 0.1 * before) + sigmoid(linear + 0.1 * before) * std::tanh(linear);
    next = std::min(0.5, std::max(-0.5, next));
    CHECK(c(0, k) == Approx(next).epsilon(1e-5));
    sum += 0.25 * sigmoid(linear + 0.1 * next) * std::tanh(next);
  }
  for (int k = 0; k < 3; ++k) CHECK(y(0, k) == Approx(sum).epsilon(1e-5));
}

TEST_CASE("two cells go over a sequence from both ends") {
  df::Graph graph({.seed = 4});
  auto x = df::placeholder<float>(graph, {2, 4, 3});
  df::GruCell forward(5), backward(5);
  auto [f, b, f_state, b_state] = df::bidirectional_rnn(forward, backward, x);
  df::Session session(graph, {.passes = df::testing::each_form()});
  session.run(df::initialize_variables(graph));
  const auto [fs, bs, fl, bl] = session.run({{x, waves({2, 4, 3})}}, f, b, f_state, b_state);
  for (int k = 0; k < 5; ++k) {
    CHECK(fs(1, 3, k) == fl(1, k));
    CHECK(bs(1, 0, k) == bl(1, k));
  }
  CHECK(f.shape() == df::PartialShape({2, 4, 5}));
}

// The names of TensorFlow's dynamic_rnn, bidirectional_dynamic_rnn and MultiRNNCell, 1.2 to 1.15.
TEST_CASE("the variables of a recurrent network have TensorFlow's names") {
  df::Graph graph({.seed = 4});
  auto x = df::placeholder<float>(graph, {df::dynamic, df::dynamic, 3});
  auto kernels = [&, count = std::size_t{0}]() mutable {
    std::vector<std::string> names;
    const std::vector<df::AnyVariable> all = df::global_variables(graph);
    for (; count < all.size(); ++count) {
      if (all[count].name().ends_with("/kernel")) names.push_back(all[count].name());
    }
    return names;
  };
  using Names = std::vector<std::string>;
  SECTION("one cell") {
    df::dynamic_rnn(df::LstmCell(2), x);
    CHECK(kernels() == Names{"rnn/lstm_cell/kernel"});
    df::dynamic_rnn(df::GruCell(2), x);
    CHECK(kernels() == Names{"rnn_1/gru_cell/gates/kernel", "rnn_1/gru_cell/candidate/kernel"});
    df::dynamic_rnn(df::BasicRnnCell(2), x, {}, {.name = "encoder"});
    CHECK(kernels() == Names{"encoder/rnn_cell/kernel"});
  }
  SECTION("stacked cells") {
    df::StackedCells cells(df::LstmCell(2), df::DropoutCell(df::BasicRnnCell(2), {.input_keep_prob = 0.5f}));
    df::dynamic_rnn(cells, x);
    CHECK(kernels() ==
          Names{"rnn/multi_rnn_cell/cell_0/lstm_cell/kernel", "rnn/multi_rnn_cell/cell_1/rnn_cell/kernel"});
    df::dynamic_rnn(cells, x);
    CHECK(kernels().empty());
  }
  SECTION("two directions") {
    df::bidirectional_rnn(df::LstmCell(2), df::BasicRnnCell(2), x);
    CHECK(kernels() == Names{"bidirectional_rnn/fw/lstm_cell/kernel", "bidirectional_rnn/bw/rnn_cell/kernel"});
  }
}

TEST_CASE("a recurrent network learns to add up") {
  df::Graph graph({.seed = 9});
  constexpr std::int64_t batch = 16, time = 6;
  auto x = df::placeholder<float>(graph, {batch, time, 1});
  auto wanted = df::placeholder<float>(graph, {batch, 1});
  df::LstmCell cell(8);
  auto [outputs, state] = df::dynamic_rnn(cell, x);
  auto loss = df::reduce_mean(df::square(df::dense(std::get<1>(state), 1) - wanted));
  auto train = df::train::Adam(0.02f).minimize(loss);
  df::Session session(graph, {.passes = df::testing::each_form()});
  session.run(df::initialize_variables(graph));
  float first = 0, last = 0;
  for (int step = 0; step < 200; ++step) {
    const df::Tensor<float> sequences = waves({batch, time, 1}, step % 20);
    df::Tensor<float> sums({batch, 1});
    for (std::int64_t b = 0; b < batch; ++b) {
      sums(b, 0) = 0;
      for (std::int64_t t = 0; t < time; ++t) sums(b, 0) += 0.3f * sequences(b, t, 0);
    }
    last = session.run({{x, sequences}, {wanted, sums}}, loss, train).scalar();
    if (step == 0) first = last;
  }
  CHECK(last < 0.1f * first);
}

TEST_CASE("what is wrong with steps that are edges of their own is an error of the line that goes over them") {
  df::Graph graph;
  const auto step = df::placeholder<float>(graph, {2, 3});
  const auto check = [&](const std::string& message, const auto& cell, const std::vector<df::Output<float>>& x,
                         const df::Output<float>& state, const df::RnnOptions& options) {
    const dflow::Status wrong = status_of([&] { return df::static_rnn(cell, x, state, options); });
    INFO(wrong.to_string());
    CHECK(mentions(wrong, message));
    CHECK(std::string(wrong.where().file_name()) == __FILE__);
  };
  const auto state = df::placeholder<float>(graph, {2, 4}), other = df::placeholder<float>(graph, {2, 5});
  const auto open = df::placeholder<float>(graph, df::PartialShape{2, df::dynamic});
  const auto three = df::placeholder<std::int32_t>(graph, {3});
  check("have rank 2 and a known last dimension", df::GruCell(4), {open}, state, {});
  check("inner dimensions 8 and 7 differ", df::GruCell(4), {step}, other, {});
  check("input is an empty Output", df::GruCell(4), {df::Output<float>()}, state, {});
  check("sequence_length has shape [3], wanted a length for each sequence of x [2,3]", df::GruCell(4), {step}, state,
        {.sequence_length = three});
}

TEST_CASE("another number of lengths than of sequences is an error of the step, of the line that builds the network") {
  df::Graph graph;
  const auto x = df::placeholder<float>(graph, {df::dynamic, df::dynamic, 2});
  const auto lengths = df::placeholder<std::int32_t>(graph, {df::dynamic});
  const auto any_rank = df::placeholder<std::int32_t>(graph, df::PartialShape::unknown());
  const auto step = df::placeholder<float>(graph, {df::dynamic, 2});
  const auto start = df::placeholder<float>(graph, {df::dynamic, 3});
  df::GruCell cell(3);
  const unsigned line = std::source_location::current().line() + 1;
  const auto looped = std::get<0>(df::dynamic_rnn(cell, x, {.sequence_length = lengths}));
  const auto open = std::get<0>(df::dynamic_rnn(cell, x, {.sequence_length = any_rank}));
  const auto stepped = std::get<0>(df::static_rnn(cell, std::vector{step, step}, start, {.sequence_length = lengths}));
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  using Numbers = df::Tensor<std::int32_t>;
  const auto steps_of = [](std::int64_t batch) { return df::Tensor<float>::full({batch, 2, 2}, 1); };
  const auto rows_of = [](std::int64_t batch, std::int64_t n) { return df::Tensor<float>::full({batch, n}, 1); };
  const auto refused = [&](const df::Status& status, unsigned at_line, std::string_view numbers) {
    INFO(status.to_string());
    CHECK(status.code() == df::Code::invalid_argument);
    CHECK(mentions(status, "rnn: sequence_length has not one length per sequence of x"));
    CHECK(mentions(status, numbers));
    CHECK(contains(status.node(), "check_sequence_length"));
    CHECK(status.where().line() == at_line);
    CHECK(std::string(status.where().file_name()) == __FILE__);
  };
  for (const auto& [batch, given] : {std::pair{2, Numbers({3}, {1, 1, 1})}, std::pair{3, Numbers({1}, {1})}}) {
    const std::string numbers = batch == 2 ? "[int32[1] [3]] [int32[1] [2]]" : "[int32[1] [1]] [int32[1] [3]]";
    refused(status_of([&] { return session.run({{x, steps_of(batch)}, {lengths, given}}, looped); }), line, numbers);
    refused(status_of([&] { return session.run({{x, steps_of(batch)}, {any_rank, given}}, open); }), line + 1, numbers);
    refused(status_of([&] {
              return session.run({{step, rows_of(batch, 2)}, {start, rows_of(batch, 3)}, {lengths, given}}, stepped[1]);
            }),
            line + 2, numbers);
  }
  refused(status_of([&] {
            return session.run({{x, steps_of(2)}, {any_rank, Numbers(std::int32_t{2})}}, open);
          }),
          line + 1, "[int32[0] []]");
  refused(status_of([&] {
            return session.run({{x, steps_of(2)}, {any_rank, Numbers({2, 1}, {1, 1})}}, open);
          }),
          line + 1, "[int32[2] [2, 1]]");
  // A length beyond the steps is all of them.
  const Numbers right({2}, {1, 9});
  const auto value = session.run({{x, steps_of(2)}, {lengths, right}}, looped);
  CHECK(value(0, 1, 0) == 0);
  CHECK(value(1, 1, 0) != 0);
  CHECK(values(session.run({{x, steps_of(2)}, {any_rank, right}}, open)) == values(value));
  // Shapes that are known need no check in the step.
  const std::size_t before = graph.num_nodes();
  static_cast<void>(df::dynamic_rnn(cell, df::placeholder<float>(graph, {2, df::dynamic, 2}),
                                    {.sequence_length = df::placeholder<std::int32_t>(graph, {2})}));
  for (std::size_t i = before; i < graph.num_nodes(); ++i) {
    CHECK_FALSE(contains(graph.node(df::NodeId(i)).name, "check_sequence_length"));
  }
}

TEST_CASE("what is wrong with a recurrent network is an error of the line that builds it") {
  df::Graph graph;
  auto matrix = df::placeholder<float>(graph, {2, 3});
  auto x = df::placeholder<float>(graph, {2, 4, 3});
  CHECK(code_of([&] { df::dynamic_rnn(df::GruCell(3), matrix, df::Output<float>()); }) == df::Code::invalid_argument);
  CHECK(code_of([&] { df::dynamic_rnn(df::GruCell(0), x); }) == df::Code::invalid_argument);
  CHECK(code_of([&] { df::dynamic_rnn(df::GruCell(3), x, row(graph, {1.0f, 2.0f})); }) == df::Code::invalid_argument);
  CHECK(code_of([&] {
          df::dynamic_rnn(df::GruCell(3), df::placeholder<float>(graph, {2, 4, df::dynamic}));
        }) == df::Code::invalid_argument);
  const auto lengths = df::placeholder<std::int32_t>(graph, {3});
  const dflow::Status wrong =
      status_of([&] { return df::dynamic_rnn(df::GruCell(3), x, {.sequence_length = lengths}); });
  CHECK(mentions(wrong, "sequence_length has shape [3], wanted a length for each sequence of x [2,4,3]"));
  df::GruCell shared(3);
  static_cast<void>(df::dynamic_rnn(shared, x));
  const std::size_t num_variables = df::global_variables(graph).size();
  static_cast<void>(df::dynamic_rnn(shared, x));
  CHECK(df::global_variables(graph).size() == num_variables);
  // Each cell says so of other numbers of inputs than it was made for, fewer ones too.
  df::BasicRnnCell basic(2);
  df::LstmCell lstm(2), projected(3, {.projection = 2});
  for (const std::int64_t inputs : {3, 2, 4}) {
    const auto other = df::placeholder<float>(graph, {2, 4, inputs});
    const df::Code code = inputs == 3 ? df::Code::ok : df::Code::invalid_argument;
    CHECK(code_of([&] { df::dynamic_rnn(basic, other); }) == code);
    CHECK(code_of([&] { df::dynamic_rnn(shared, other); }) == code);
    CHECK(code_of([&] { df::dynamic_rnn(lstm, other); }) == code);
    CHECK(code_of([&] { df::dynamic_rnn(projected, other); }) == code);
  }
  CHECK(mentions(status_of([&] { return df::static_rnn(lstm, std::vector<df::Output<float>>{}); }), "no steps"));
  const std::string message = error_of([&] { df::dynamic_rnn(lstm, df::placeholder<float>(graph, {2, 4, 1})); });
  CHECK(contains(message, "made for 3 inputs, and is given 1"));
  CHECK(contains(message, __FILE__));
}

TEMPLATE_TEST_CASE("Recurrent cells multiply in what their scope says, by variables and with states in float", "",
                   df::BasicRnnCell, df::GruCell, df::LstmCell) {
  df::Graph graph({.seed = 5});
  const auto x = df::constant(graph, waves({3, 5, 4}));
  const TestType cell(6);
  df::Output<float> narrow, by_steps, wide;
  const auto in = [&](df::DType compute, const auto& build_it) {
    const df::VariableScope scope(graph, "", {.compute = compute});
    build_it();
  };
  in(df::DType::float16, [&] { narrow = std::get<0>(df::dynamic_rnn(cell, x)); });
  const auto num_variables = df::global_variables(graph).size();
  in(df::DType::float16, [&] {
    std::vector<df::Output<float>> steps;
    for (int t = 0; t < 5; ++t) steps.push_back(df::reshape(df::slice(x, {0, t, 0}, {3, 1, 4}), {3, 4}));
    by_steps = std::get<0>(df::static_rnn(cell, steps, cell.zero_state(steps[0]))).back();
  });
  wide = std::get<0>(df::dynamic_rnn(cell, x));
  CHECK(df::global_variables(graph).size() == num_variables);
  std::size_t narrow_products = 0, casts_in_bodies = 0;
  for (std::size_t i = 0; i < graph.num_nodes(); ++i) {
    const df::Node& node = graph.node(static_cast<df::NodeId>(i));
    if (node.op->name == "MatMul" && node.outputs[0].dtype == df::DType::float16) ++narrow_products;
    const bool is_cast = node.op->name == "Cast" && node.function.is_valid();
    casts_in_bodies += is_cast && graph.node(node.inputs[0].node).op->name == "ReadVariable";
  }
  CHECK(narrow_products >= 6);
  CHECK(casts_in_bodies == 0);  // once, and not in each iteration
  for (const df::AnyVariable& variable : cell.variables()) CHECK(variable.dtype() == df::DType::float32);

  const auto loss = df::reduce_mean(df::square(narrow - 0.5f));
  const auto train = df::train::LossScaleOptimizer(df::train::Adam(0.05)).minimize(loss);
  df::Session session(graph, {.passes = df::testing::each_form()});
  session.run(df::initialize_variables(graph));
  const auto [a, b, c] = session.run(narrow, by_steps, wide);
  float farthest = 0;
  for (std::int64_t i = 0; i < a.num_elements(); ++i)
    farthest = std::max(farthest, std::abs(a.data()[i] - c.data()[i]));
  CHECK(farthest > 0);
  CHECK(farthest < 4e-3f);
  for (std::int64_t row = 0; row < 3; ++row) {
    for (std::int64_t unit = 0; unit < 6; ++unit) CHECK(b(row, unit) == Approx(a(row, 4, unit)).margin(2e-3));
  }
  const float first = session.run(loss).scalar();
  for (int i = 0; i < 40; ++i) session.run(train);
  CHECK(session.run(loss).scalar() < 0.5f * first);
}

TEST_CASE("a cell of all parts keeps to what its scope says", "[rnn]") {
  df::Graph graph({.seed = 5});
  const auto x = df::constant(graph, waves({3, 5, 4}));
  const auto half = df::cast<df::Half>(x);
  df::LstmCell cell(6, {.use_peepholes = true, .cell_clip = 2.0, .projection = 3});
  df::LstmCell of_half(6, {.use_peepholes = true, .projection = 3});
  df::Output<float> wide = std::get<0>(df::dynamic_rnn(cell, x)), narrow;
  df::Output<df::Half> widened;
  {
    const df::VariableScope scope(graph, "", {.compute = df::DType::bfloat16});
    narrow = std::get<0>(df::dynamic_rnn(cell, x));
  }
  {
    const df::VariableScope scope(graph, "", {.compute = df::DType::float32});
    widened = std::get<0>(df::dynamic_rnn(of_half, half));
  }
  for (const df::AnyVariable& variable : of_half.variables()) CHECK(variable.dtype() == df::DType::float32);
  df::Session session(graph, {.passes = df::testing::each_form()});
  session.run(df::initialize_variables(graph));
  const auto [a, b, c] = session.run(wide, narrow, widened);
  for (std::int64_t i = 0; i < a.num_elements(); ++i) CHECK(a.data()[i] == Approx(b.data()[i]).margin(0.02));
  CHECK(c.shape() == a.shape());
}
