#include <dflow/train/schedules.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/ops/state/typed_variable.hpp>
#include <dflow/session/session.hpp>

#include <limits>
#include <utility>

namespace df = dflow;

TEST_CASE("inverse time and natural exponential decay are TensorFlow's, smooth and in stairs") {
  df::Graph graph;
  const auto step = df::placeholder<std::int64_t>(graph, {});
  const auto rates = [&](bool staircase) {
    const df::train::TimeDecayOptions options{.decay_steps = 10, .decay_rate = 0.5, .staircase = staircase};
    return std::pair{df::train::inverse_time_decay(0.5, step, options),
                     df::train::natural_exponential_decay(0.5, step, options)};
  };
  const auto smooth = rates(false), stairs = rates(true);
  df::Session session(graph);
  // tf.compat.v1.train.inverse_time_decay and natural_exp_decay of TensorFlow 2.21: (0.5, step, 10, 0.5, staircase).
  constexpr std::int64_t steps[] = {0, 7, 10, 25};
  constexpr float expected[4][4] = {{0.5f, 0.5f, 0.5f, 0.5f},
                                    {0.3703703582f, 0.3523440361f, 0.5f, 0.5f},
                                    {0.3333333433f, 0.3032653332f, 0.3333333433f, 0.3032653332f},
                                    {0.2222222239f, 0.1432524025f, 0.25f, 0.1839397252f}};
  for (int i = 0; i < 4; ++i) {
    const auto [a, b, c, d] = session.run({{step, steps[i]}}, smooth.first, smooth.second, stairs.first, stairs.second);
    CHECK(a.scalar() == Approx(expected[i][0]).epsilon(1e-6));
    CHECK(b.scalar() == Approx(expected[i][1]).epsilon(1e-6));
    CHECK(c.scalar() == Approx(expected[i][2]).epsilon(1e-6));
    CHECK(d.scalar() == Approx(expected[i][3]).epsilon(1e-6));
  }
  CHECK(code_of([&] { return df::train::inverse_time_decay(0.5, step, {.decay_steps = 0}); }) ==
        df::Code::invalid_argument);
  CHECK(code_of([&] { return df::train::natural_exponential_decay(0.5, {}); }) == df::Code::invalid_argument);
}

TEST_CASE("a schedule of numbers that are infinite or NaN is an error") {
  df::Graph graph;
  const auto step = df::placeholder<std::int64_t>(graph, {});
  const double none = std::numeric_limits<double>::quiet_NaN(), infinite = std::numeric_limits<double>::infinity();
  for (const double bad : {none, infinite, -infinite}) {
    INFO(bad);
    const df::Code wanted = df::Code::invalid_argument;
    CHECK(code_of([&] { return df::train::exponential_decay(bad, step); }) == wanted);
    CHECK(code_of([&] { return df::train::exponential_decay(1, step, {.decay_rate = bad}); }) == wanted);
    CHECK(code_of([&] { return df::train::inverse_time_decay(1, step, {.decay_rate = bad}); }) == wanted);
    CHECK(code_of([&] { return df::train::natural_exponential_decay(bad, step); }) == wanted);
    CHECK(code_of([&] { return df::train::polynomial_decay(1, step, {.power = bad}); }) == wanted);
    CHECK(code_of([&] { return df::train::polynomial_decay(1, step, {.end_rate = bad}); }) == wanted);
    CHECK(code_of([&] { return df::train::piecewise_constant(step, {5}, {1, bad}); }) == wanted);
    CHECK(code_of([&] { return df::train::cosine_decay(1, step, 10, bad); }) == wanted);
  }
  CHECK(contains(error_of([&] { return df::train::exponential_decay(none, step); }), "nan"));
}
