#include <dflow/train/fitting/fit.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/data/from.hpp>
#include <dflow/ops/math/cast.hpp>
#include <dflow/ops/math/unary.hpp>
#include <dflow/ops/operators.hpp>
#include <dflow/ops/reduction/reduce.hpp>
#include <dflow/session/session.hpp>
#include <dflow/train/fitting/accumulated_gradients.hpp>
#include <dflow/train/metrics.hpp>
#include <dflow/train/optimizers.hpp>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <ranges>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace df = dflow;
using df::train::Fitting;
using df::train::History;
using df::train::Hook;

namespace {

/// y = a x by gradient descent; the loss is the mean square of the error.
struct Line {
  Line() {
    const auto error = x * a - y;
    loss = df::reduce_mean(error * error);
    absolute = df::reduce_mean(df::abs(error));
    train = df::train::GradientDescent(0.02).minimize(loss);
    session.run(df::initialize_variables(graph));
  }

  df::train::TrainStep<float, float> step(df::train::TrainStepOptions options = {}) {
    return {df::feeds(x, y), loss, train, std::move(options)};
  }
  float slope() { return session.run(a).scalar(); }

  df::Graph graph;
  df::Output<float> x = df::placeholder<float>(graph, {df::dynamic});
  df::Output<float> y = df::placeholder<float>(graph, {df::dynamic});
  df::Variable<float> a{graph, 0.0f, {.name = "a"}};
  df::Output<float> loss, absolute;
  df::Operation train;
  df::Session session{graph};
};

using Batch = std::tuple<df::Tensor<float>, df::Tensor<float>>;

/// y = 3 x for x of 1 to n.
df::data::Dataset<std::tuple<float, float>> line(int n) {
  return df::data::from_range(std::views::iota(1, n + 1)).map([](int i) {
    return std::tuple{static_cast<float>(i), 3 * static_cast<float>(i)};
  });
}

}  // namespace

TEST_CASE("a function that scales its batches in place gives fit the same data in each epoch") {
  const df::Tensor<float> xs({4}, {10, 20, 30, 40}), ys({4}, {3, 6, 9, 12});
  const auto rows = df::data::from_tensors(xs, ys);
  const auto losses = [](const df::data::Dataset<Batch>& data) {
    Line model;
    std::vector<double> all;
    for (const auto& epoch : df::train::fit(model.session, model.step(), data, {.epochs = 3}).epochs) {
      all.push_back(epoch.values.at("loss"));
    }
    return all;
  };
  const auto expected = losses(rows.batch(2).map([](const df::Tensor<float>& x, const df::Tensor<float>& y) {
    df::Tensor<float> scaled = x.copy();
    for (float& value : scaled) value /= 10;
    return Batch(scaled, y);
  }));
  const auto in_place = [](df::Tensor<float>& x, df::Tensor<float>& y) {
    for (float& value : x) value /= 10;
    return Batch(x, y);
  };
  CHECK(losses(rows.batch(2).map(in_place)) == expected);
  CHECK(losses(rows.batch(2).cache().map(in_place)) == expected);
  CHECK(losses(rows.map(in_place).batch(2)) == expected);
  CHECK(xs.to_string() == "float[4] [10, 20, 30, 40]");
}

TEST_CASE("fit runs a step for each batch of each epoch, and gives the means of the epochs") {
  Line model;
  const auto data = line(5).batch(2);
  const History history = df::train::fit(model.session, model.step({.metrics = {{"absolute", model.absolute}}}), data,
                                         {.epochs = 3, .validation = line(3).batch(2)});
  CHECK(history.steps == 9);
  CHECK(history.stopped_by.empty());
  REQUIRE(history.epochs.size() == 3);

  // The same by hand: batches of 2, 2 and 1 rows, each weighed by its rows.
  Line other;
  for (std::size_t epoch = 0; epoch < 3; ++epoch) {
    double loss = 0, absolute = 0;
    for (auto& [x, y] : data) {
      const auto [l, a] = other.session.run({{other.x, x}, {other.y, y}}, other.loss, other.absolute, other.train);
      loss += static_cast<double>(l.scalar()) * static_cast<double>(x.dim(0));
      absolute += static_cast<double>(a.scalar()) * static_cast<double>(x.dim(0));
    }
    const df::train::EpochResult& result = history.epochs[epoch];
    CHECK(result.epoch == static_cast<std::int64_t>(epoch));
    CHECK(result.steps == 3);
    CHECK(result.loss() == Approx(loss / 5));
    CHECK(result.value("absolute") == Approx(absolute / 5));
    const double off = 3 - static_cast<double>(other.slope());
    CHECK(result.value("validation_loss") == Approx(off * off * (1 + 4 + 9) / 3).epsilon(1e-4));
    CHECK(result.value("validation_absolute") == Approx(std::abs(off) * 2).epsilon(1e-4));
  }
  CHECK(model.slope() == other.slope());
  CHECK(history.last("loss") == history.epochs[2].loss());
  CHECK(contains(error_of([&] { return history.last("accuracy"); }, df::Code::not_found), "'absolute', 'loss'"));
  CHECK(code_of([] { return History().last("loss"); }) == df::Code::not_found);
}

TEST_CASE("validation may have a loss and metrics of its own, and a placeholder says which it is") {
  Line model;
  const auto training = df::placeholder<bool>(model.graph, {});
  const auto seen = df::cast<float>(training);
  const auto twice = model.loss * 2.0f;
  const auto step = model.step({.metrics = {{"training", seen}},
                                .validation_loss = twice,
                                .validation_metrics = {{"training", seen}, {"absolute", model.absolute}},
                                .training = training});
  const History history = df::train::fit(model.session, step, line(4).batch(4), {.validation = line(4).batch(4)});
  CHECK(history.last("training") == 1);
  CHECK(history.last("validation_training") == 0);
  const double off = 3 - static_cast<double>(model.slope());
  CHECK(history.last("validation_loss") == Approx(2 * off * off * 7.5).epsilon(1e-4));
  CHECK(df::train::evaluate(model.session, step, line(4).batch(1)).at("absolute") == Approx(off * 2.5).epsilon(1e-4));
  CHECK(history.epochs[0].values.count("absolute") == 0);
}

TEST_CASE("a streaming metric is that of the epoch so far, and of the validation data") {
  Line model;
  const auto root = df::metrics::root_mean_squared_error(model.y, model.x * model.a);
  const auto absolute = df::metrics::mean(df::abs(model.x * model.a - model.y));
  std::vector<double> seen;
  Hook watch{.on_step = [&](Fitting& fitting) { seen.push_back(fitting.values().at("absolute")); }};
  const auto step = model.step({.metrics = {{"root", root}, {"absolute", absolute}, {"mean", model.absolute}}});
  const History history = df::train::fit(model.session, step, line(5).batch(2),
                                         {.epochs = 2, .validation = line(3).batch(2), .hooks = {watch}});

  // The same by hand: a fit is one epoch after another.
  Line other;
  const auto off = df::abs(other.x * other.a - other.y);
  std::size_t number = 0;
  for (std::size_t epoch = 0; epoch < 2; ++epoch) {
    double squares = 0, sum = 0, rows = 0;
    for (auto& [x, y] : line(5).batch(2)) {
      const auto [errors, l] = other.session.run({{other.x, x}, {other.y, y}}, off, other.loss, other.train);
      for (const float error : errors) {
        squares += static_cast<double>(error) * static_cast<double>(error);
        sum += static_cast<double>(error);
        rows += 1;
      }
      CHECK(seen.at(number++) == Approx(sum / rows));
    }
    const df::train::EpochResult& result = history.epochs[epoch];
    CHECK(result.value("root") == Approx(std::sqrt(squares / 5)));
    CHECK(result.value("absolute") == Approx(sum / 5));
    CHECK(result.value("mean") == Approx(sum / 5));
    const double left = std::abs(3 - static_cast<double>(other.slope()));
    CHECK(result.value("validation_root") == Approx(left * std::sqrt(14.0 / 3)).epsilon(1e-4));
    CHECK(result.value("validation_absolute") == Approx(left * 2).epsilon(1e-4));
  }
  CHECK(df::train::evaluate(model.session, step, line(3).batch(1)).at("root") ==
        Approx(history.last("validation_root")));
  CHECK(code_of([&] {
          model.step({.metrics = {{"matrix",
                                   df::metrics::confusion_matrix(df::cast<int>(model.x), df::cast<int>(model.y), 2)}}});
        }) == df::Code::invalid_argument);
}

TEST_CASE("batches of one tensor, of pairs and of any tensors are fed as they come") {
  df::Graph graph;
  const auto x = df::placeholder<float>(graph, {df::dynamic});
  const df::Variable<float> a(graph, 1.0f);
  const auto loss = df::reduce_mean(x * a);
  df::train::TrainStep step(df::feeds(x), loss, df::train::GradientDescent(0.1).minimize(loss));
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  CHECK(df::train::fit(session, step, df::data::from_tensors(df::Tensor<float>::full({4}, 1)).batch(2)).steps == 2);
  const auto any = df::data::from_vector(std::vector<df::AnyTensor>(2, df::Tensor<float>::full({3}, 1)));
  CHECK(df::train::fit(session, step, any).steps == 2);
  Line model;
  const auto pairs = line(4).map([](float u, float v) { return std::pair{u, v}; }).batch(2);
  CHECK(df::train::fit(model.session, model.step(), pairs).steps == 2);
}

TEST_CASE("hooks are called in order, and see where it is") {
  Line model;
  std::vector<std::string> seen;
  const auto note = [&](const std::string& what) {
    return [&seen, what](Fitting& fitting) {
      seen.push_back(what + " " + std::to_string(fitting.epoch()) + " " + std::to_string(fitting.batch()) + " " +
                     std::to_string(fitting.step()));
    };
  };
  const Hook hook{note("begin"), note("epoch"), note("step"), note("done"), note("end")};
  const Hook later{.on_step = [&](Fitting& fitting) { seen.push_back(fitting.loss() > 0 ? "later" : "no loss"); }};
  df::train::fit(model.session, model.step(), line(3).batch(2), {.epochs = 2, .hooks = {hook, later}});
  CHECK(seen == std::vector<std::string>{"begin 0 0 0", "epoch 0 0 0", "step 0 1 1", "later", "step 0 2 2", "later",
                                         "done 0 2 2", "epoch 1 0 2", "step 1 1 3", "later", "step 1 2 4", "later",
                                         "done 1 2 4", "end 2 2 4"});
}

TEST_CASE("hooks, stop tokens and a number of steps end it early") {
  Line model;
  int ended = 0;
  const auto count_end = [&](Fitting&) { ++ended; };
  const Hook stops{.on_step =
                       [](Fitting& fitting) {
                         if (fitting.step() == 3) fitting.stop("enough");
                       },
                   .on_end = count_end};
  const auto data = line(4).batch(2);
  History history = df::train::fit(model.session, model.step(), data, {.epochs = 5, .hooks = {stops}});
  CHECK(history.steps == 3);
  CHECK(history.stopped_by == "enough");
  CHECK(history.epochs.size() == 2);
  CHECK(history.epochs[1].steps == 1);
  CHECK(ended == 1);

  std::stop_source source;
  const Hook requests{.on_epoch_end = [&](Fitting&) { source.request_stop(); }};
  history =
      df::train::fit(model.session, model.step(), data, {.epochs = 5, .hooks = {requests}, .stop = source.get_token()});
  CHECK(history.steps == 2);
  CHECK(history.epochs.size() == 1);
  CHECK(history.stopped_by == "stop was requested");

  history = df::train::fit(model.session, model.step(), data.repeat(), {.max_steps = 7, .validation = data});
  CHECK(history.steps == 7);
  CHECK(history.epochs.size() == 1);
  CHECK(history.epochs[0].values.count("validation_loss") == 0);
  const Hook at_once{.on_begin = [](Fitting& fitting) { fitting.stop("never mind"); }};
  CHECK(df::train::fit(model.session, model.step(), data, {.hooks = {at_once}}).epochs.empty());
}

TEST_CASE("what a hook throws comes out, and what is trained goes on") {
  Line model;
  const auto data = line(4).batch(2);
  auto batches = data.iterate();
  const Hook throws{.on_step = [](Fitting& fitting) {
    if (fitting.step() == 1) throw std::domain_error("no more");
  }};
  CHECK_THROWS_AS(df::train::fit(model.session, model.step(), batches, {.hooks = {throws}}), std::domain_error);
  CHECK(batches.position() == 1);
  const History history = df::train::fit(model.session, model.step(), batches, {.epochs = 2});
  CHECK(history.steps == 3);  // the rest of the epoch, and another
  CHECK(history.epochs[0].steps == 1);
  CHECK(batches.epoch() == 2);
  CHECK(df::train::fit(model.session, model.step(), batches, {.epochs = 2}).steps == 0);
}

TEST_CASE("a hook that has begun learns of the end once, by an error or not") {
  Line model;
  std::string calls;
  const auto told = [&](std::function<void(Fitting&)> on_begin) {
    df::Status of;
    const Hook begins{.on_begin = std::move(on_begin)};
    const Hook learns{.on_error = [&](Fitting&, const df::Status& status) { of = status; }};
    CHECK_THROWS(
        df::train::fit(model.session, model.step(), line(2).batch(2), {.epochs = 1, .hooks = {learns, begins}}));
    return of.code();
  };
  CHECK(told([](Fitting& fitting) { fitting.show("loss", fitting.loss()); }) == df::Code::not_found);
  CHECK(told([](Fitting&) { throw std::runtime_error("no Error"); }) == df::Code::internal);
  CHECK(told([](Fitting&) { throw 1; }) == df::Code::unknown);

  const auto hook = [&](const char* name, const std::string& failing = "") {
    const auto call = [&calls, name, failing](const std::string& what) {
      calls += df::str_cat(name, " ", what, ", ");
      if (what == failing) throw_error(df::Status::data_loss(df::str_cat(name, " fails in ", what)));
    };
    return Hook{.on_begin = [=](Fitting&) { call("begins"); },
                .on_epoch_begin = [=](Fitting&) { call("has an epoch"); },
                .on_step = [=](Fitting&) { call("steps"); },
                .on_epoch_end = [=](Fitting&) { call("ends an epoch"); },
                .on_end = [=](Fitting&) { call("ends"); },
                .on_error =
                    [=, &calls](Fitting& fitting, const df::Status& status) {
                      calls += df::str_cat(name, " at step ", fitting.step(), " learns that ", status.message(), ", ");
                      if (failing == "learns") throw_error(df::Status::internal("an error of an error"));
                    }};
  };
  const auto fit = [&](std::vector<Hook> hooks) {
    calls.clear();
    df::train::fit(model.session, model.step(), line(2).batch(2), {.epochs = 1, .hooks = std::move(hooks)});
  };
  const auto failed = [&](const char* second, const char* first = "") {
    CHECK(error_of(
              [&] {
                return fit({hook("A", first), hook("B", second), hook("C")}), 0;
              },
              df::Code::data_loss) == df::str_cat("DATA_LOSS: B fails in ", second));
    return calls;
  };
  fit({hook("A"), hook("B")});
  CHECK(calls ==
        "A begins, B begins, A has an epoch, B has an epoch, A steps, B steps, A ends an epoch, B ends an epoch, "
        "A ends, B ends, ");
  // A hook that has not begun has nothing to end.
  CHECK(failed("begins") == "A begins, B begins, A at step 0 learns that B fails in begins, ");
  CHECK(failed("steps") ==
        "A begins, B begins, C begins, A has an epoch, B has an epoch, C has an epoch, A steps, B steps, "
        "A at step 1 learns that B fails in steps, B at step 1 learns that B fails in steps, "
        "C at step 1 learns that B fails in steps, ");
  CHECK(failed("steps", "learns") == failed("steps"));
  // A hook that has ended does not end again.
  CHECK(failed("ends").ends_with("C ends an epoch, A ends, B ends, C at step 1 learns that B fails in ends, "));

  const auto data = line(2).batch(2).map([](Batch batch) -> Batch {
    static_cast<void>(batch);
    throw std::runtime_error("the disk is gone");
  });
  CHECK_THROWS(df::train::fit(model.session, model.step(), data, {.epochs = 1, .hooks = {Hook(), hook("A")}}));
  CHECK(contains(calls, "A at step 0 learns that "));
  CHECK(contains(calls, "epoch 0, batch 0"));
  CHECK(contains(calls, "the disk is gone"));
  CHECK(contains(
      error_of([&] {
        const auto misshapen = line(3).batch(3).map([](Batch batch) {
          return Batch{std::get<0>(batch), df::Tensor<float>({2}, {1, 2})};
        });
        return df::train::fit(model.session, model.step(), misshapen, {.epochs = 1, .hooks = {hook("A")}}).steps;
      }),
      "2"));
  CHECK(contains(calls, "A has an epoch, A at step 0 learns that "));
}

TEST_CASE("a hook may fit something else, or the same") {
  Line model, other;
  const auto data = line(4).batch(2);
  int inner = 0;
  const Hook fits{.on_epoch_end = [&](Fitting&) {
    inner += static_cast<int>(df::train::fit(other.session, other.step(), data).steps);
    inner += static_cast<int>(df::train::fit(model.session, model.step(), data).steps);
  }};
  CHECK(df::train::fit(model.session, model.step(), data, {.epochs = 2, .hooks = {fits}}).steps == 4);
  CHECK(inner == 8);
}

TEST_CASE("what the data throw says of which batch, with its code, and carries what was thrown") {
  Line model;
  const auto failing = [](auto fail) {
    return line(10)
        .map([fail](float x, float y) {
          if (x == 6) fail();
          return std::tuple{x, y};
        })
        .batch(2)
        .prefetch(2);
  };
  const auto coded = failing([] { df::throw_error(df::Status::data_loss("a bad record")); });
  const std::string text =
      error_of([&] { return df::train::fit(model.session, model.step(), coded).steps; }, df::Code::data_loss);
  CHECK(contains(text, "epoch 0, batch 2: in step map, element 5: a bad record"));
  const auto plain = failing([] { throw std::domain_error("six"); });
  try {
    df::train::fit(model.session, model.step(), plain);
    FAIL("no error");
  } catch (const df::Error& error) {
    CHECK(contains(error.what(), "epoch 0, batch 2: in step map, element 5: six"));
    CHECK_THROWS_AS(std::rethrow_if_nested(error), std::domain_error);
  }
  const std::string in_validation = error_of(
      [&] { return df::train::fit(model.session, model.step(), line(2).batch(2), {.validation = coded}).steps; },
      df::Code::data_loss);
  CHECK(contains(in_validation, "validation, epoch 0, batch 2"));
  // The error of the step names its node.
  const auto ragged = df::data::from_tensors(df::Tensor<float>({2, 3}), df::Tensor<float>({2, 2}));
  CHECK(code_of([&] { return df::train::fit(model.session, model.step(), ragged).steps; }) ==
        df::Code::invalid_argument);
}

TEST_CASE("an update runs after so many batches, and after the last ones") {
  Line model;
  const df::train::AccumulatedGradients accumulated(df::train::GradientDescent(0.02), model.loss);
  model.session.run(df::initialize_variables(model.graph));
  df::train::TrainStep step(df::feeds(model.x, model.y), model.loss, accumulated.add(),
                            {.update = accumulated.update(), .update_every = 2});
  std::vector<float> slopes;
  const Hook notes{.on_step = [&](Fitting&) { slopes.push_back(model.slope()); }};
  df::train::fit(model.session, step, line(5).batch(1), {.hooks = {notes}});
  CHECK(slopes[0] == 0);
  // a += 0.02 times the mean of 2 (3 - a) x^2.
  CHECK(slopes[1] == Approx(0.02 * 2 * 3 * (1 + 4) / 2));
  CHECK(slopes[2] == slopes[1]);
  const double third = static_cast<double>(slopes[1]) + 0.02 * 2 * (3 - static_cast<double>(slopes[1])) * (9 + 16) / 2;
  CHECK(slopes[3] == Approx(third));
  CHECK(slopes[4] == slopes[3]);
  CHECK(model.slope() == Approx(third + 0.02 * 2 * (3 - third) * 25));  // of the one batch that was left
}

TEST_CASE("a step and a fit that cannot be are errors before anything is trained") {
  Line model;
  const auto data = line(4).batch(2);
  const auto make = [&](const df::AnyOutput& loss, df::train::TrainStepOptions options = {}) {
    return code_of([&] {
      return df::train::TrainStep(df::feeds(model.x, model.y), loss, model.train, std::move(options))
          .any()
          .feeds.size();
    });
  };
  CHECK(make(model.loss) == df::Code::ok);
  CHECK(make({}) == df::Code::invalid_argument);
  CHECK(contains(
      error_of([&] {
        return df::train::TrainStep(df::feeds(model.x, model.y), model.loss, df::Operation()).any().feeds.size();
      }),
      "the operation that trains is empty"));
  CHECK(make(model.x) == df::Code::invalid_argument);
  CHECK(make(df::cast<std::int32_t>(model.loss)) == df::Code::invalid_argument);
  CHECK(make(model.loss, {.metrics = {{"loss", model.loss}}}) == df::Code::invalid_argument);
  CHECK(make(model.loss, {.metrics = {{"m", model.loss}, {"m", model.loss}}}) == df::Code::invalid_argument);
  CHECK(make(model.loss, {.metrics = {{"m", {}}}}) == df::Code::invalid_argument);
  CHECK(make(model.loss, {.update_every = 0}) == df::Code::invalid_argument);
  const auto fits = [&](const df::train::FitOptions& options, const df::data::Dataset<Batch>& of) {
    return code_of([&] { return df::train::fit(model.session, model.step(), of, options).steps; });
  };
  CHECK(fits({.epochs = 0}, data) == df::Code::invalid_argument);
  CHECK(fits({.validation = data.map([](const Batch& batch) { return std::get<0>(batch); })}, data) ==
        df::Code::invalid_argument);
  CHECK(fits({}, data.take(0)) == df::Code::invalid_argument);
  CHECK(model.slope() == 0);
  CHECK(fits({.validation = data.take(0)}, data) == df::Code::invalid_argument);
}

TEST_CASE("a loss that is not finite ends the fit with an error that names step, batch, row and variables") {
  const float none = std::numeric_limits<float>::quiet_NaN(), infinite = std::numeric_limits<float>::infinity();
  for (const float bad : {none, -none, infinite, -infinite}) {
    INFO(bad);
    Line model;
    const df::Variable<float> idle(model.graph, 1.0f, {.name = "idle"}), unset(model.graph, 1.0f, {.name = "unset"});
    model.session.run(idle.initializer());
    const auto data = line(6).map([bad](float x, float y) { return std::tuple{x == 4 ? bad : x, y}; }).batch(2);
    std::string calls;
    const Hook hook{.on_step = [&](Fitting&) { calls += "step, "; },
                    .on_end = [&](Fitting&) { calls += "end, "; },
                    .on_error =
                        [&](Fitting& fitting, const df::Status&) {
                          calls += df::str_cat("error after ", fitting.step(), fitting.is_lost() ? ", lost" : "");
                        }};
    const std::string text = error_of([&] {
      return df::train::fit(model.session, model.step({.metrics = {{"absolute", model.absolute}}}), data,
                            {.epochs = 3, .hooks = {hook}})
          .steps;
    });
    const std::string loss = std::isnan(bad) ? "nan" : "inf", row = std::isnan(bad) || bad > 0 ? loss : "-inf";
    CHECK(contains(text, "fit: the loss is " + loss + " in step 2 (epoch 0, batch 1); 'Placeholder' is " + row +
                             " in row 1 of 2; the variable 'a' is not finite"));
    CHECK(calls == "step, error after 2, lost");
    CHECK_FALSE(std::isfinite(model.slope()));
  }
}

TEST_CASE("a loss that is not finite says if batch or variables are finite") {
  Line model;
  df::train::TrainStep step(df::feeds(model.x, model.y), model.loss, model.a.assign_add(0.0f));
  const auto data = df::data::from_tensors(df::Tensor<float>({2}, {1e30f, 1}), df::Tensor<float>({2}, {-3e30f, 1}));
  const auto error = [&] { return error_of([&] { return df::train::fit(model.session, step, data.batch(1)).steps; }); };
  CHECK(contains(error(), "the loss is inf in step 1 (epoch 0, batch 0); all inputs are finite; all variables are "));
  model.session.run(model.a.assign(std::numeric_limits<float>::quiet_NaN()));
  CHECK(contains(error(), "the loss is nan in step 1 (epoch 0, batch 0); all inputs are finite; the variable 'a' is "));
}

TEST_CASE("a fit may stop at a loss of NaN without an error, or go on") {
  const float none = std::numeric_limits<float>::quiet_NaN();
  const auto data = line(6).map([none](float x, float y) { return std::tuple{x == 3 ? none : x, y}; }).batch(2);
  Line model;
  std::vector<double> seen;
  const Hook sees{.on_step = [&](Fitting& fitting) { seen.push_back(fitting.loss()); }};
  const History stopped =
      df::train::fit(model.session, model.step(), data,
                     {.epochs = 2, .validation = data, .hooks = {sees}, .on_nan = df::train::OnNan::stop});
  CHECK(stopped.steps == 2);
  CHECK(stopped.epochs.size() == 1);
  CHECK(contains(stopped.stopped_by, "nan in step 2 (epoch 0, batch 1); 'Placeholder' is nan in row 0 of 2; "));
  REQUIRE(seen.size() == 2);
  CHECK(std::isfinite(seen[0]));
  CHECK(std::isnan(seen[1]));
  CHECK(std::isnan(stopped.last("loss")));
  CHECK_FALSE(std::signbit(stopped.last("loss")));

  const History gone_on = df::train::fit(model.session, model.step(), data, {.on_nan = df::train::OnNan::go_on});
  CHECK(gone_on.steps == 3);
  CHECK(gone_on.stopped_by.empty());
}

TEST_CASE("an update by the gradients of several batches is not made after a loss of NaN") {
  const float none = std::numeric_limits<float>::quiet_NaN();
  const auto data = line(4).map([none](float x, float y) { return std::tuple{x == 4 ? none : x, y}; }).batch(1);
  for (const auto on_nan : {df::train::OnNan::stop, df::train::OnNan::fail}) {
    Line model;
    const df::train::AccumulatedGradients accumulated(df::train::GradientDescent(0.02), model.loss);
    model.session.run(df::initialize_variables(model.graph));
    df::train::TrainStep step(df::feeds(model.x, model.y), model.loss, accumulated.add(),
                              {.update = accumulated.update(), .update_every = 2});
    const df::Status status =
        status_of([&] { return df::train::fit(model.session, step, data, {.on_nan = on_nan}).steps; });
    CHECK(status.ok() == (on_nan == df::train::OnNan::stop));
    if (!status.ok()) CHECK(mentions(status, "the variable 'a/accumulated' is not finite"));
    CHECK(model.slope() == Approx(0.02 * 2 * 3 * (1 + 4) / 2));
  }
}

TEST_CASE("a step with types that are known at run time can be a member, and is trained and evaluated alike") {
  struct Trainer {
    df::train::AnyTrainStep step;
  };
  Line model, other;
  Trainer trainer;
  CHECK(code_of([&] { return df::train::fit(model.session, trainer.step, line(2)).steps; }) ==
        df::Code::invalid_argument);
  trainer.step = model.step({.metrics = {{"absolute", model.absolute}}});
  const auto data = line(4).batch(2);
  const History history = df::train::fit(model.session, trainer.step, data, {.epochs = 2, .validation = data});
  const History same = df::train::fit(other.session, other.step({.metrics = {{"absolute", other.absolute}}}), data,
                                      {.epochs = 2, .validation = data});
  CHECK(history.epochs[1].values == same.epochs[1].values);
  CHECK(df::train::evaluate(model.session, trainer.step, data) ==
        df::train::evaluate(other.session, other.step({.metrics = {{"absolute", other.absolute}}}), data));
  auto batches = data.iterate(1);
  CHECK(df::train::fit(model.session, trainer.step, batches, {.epochs = 2}).steps == 2);

  const auto code = [&](const auto& of) {
    return code_of([&] { return df::train::fit(model.session, trainer.step, of).steps; });
  };
  CHECK(code(data.map([](const Batch& batch) { return std::get<0>(batch); })) == df::Code::invalid_argument);
  CHECK(code(data.map([](const Batch& batch) {
          return std::tuple{std::get<0>(batch), std::get<1>(batch), std::get<1>(batch)};
        })) == df::Code::invalid_argument);
  CHECK(code(data.map([](const Batch& batch) {
          return std::pair{std::get<0>(batch), df::Tensor<double>({2}, {1, 2})};
        })) == df::Code::invalid_argument);
}

TEST_CASE("progress shows all steps") {
  Line model;
  std::FILE* const file = std::tmpfile();
  REQUIRE(file != nullptr);
  df::VirtualClock clock;
  df::train::fit(model.session, model.step(), line(4).batch(2),
                 {.epochs = 3, .progress = df::train::ProgressOptions{.out = file, .every = 2, .clock = &clock}});
  std::rewind(file);
  std::string text;
  for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) text += static_cast<char>(c);
  std::fclose(file);
  CHECK(contains(text, "6/6"));
  CHECK(contains(text, "2/6"));
}

TEST_CASE("progress counts the epochs that are left") {
  Line model;
  std::FILE* const file = std::tmpfile();
  REQUIRE(file != nullptr);
  df::VirtualClock clock;
  auto batches = line(4).batch(2).iterate(1);
  df::train::fit(model.session, model.step(), batches,
                 {.epochs = 3, .progress = df::train::ProgressOptions{.out = file, .every = 2, .clock = &clock}});
  std::rewind(file);
  std::string text;
  for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) text += static_cast<char>(c);
  std::fclose(file);
  CHECK(contains(text, "2/4"));
  CHECK(contains(text, "4/4"));
}

TEST_CASE("no number of epochs and steps is too large to count") {
  const std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  const std::int64_t max = std::numeric_limits<std::int64_t>::max();
  Line model;
  const auto data = line(6).batch(2);
  std::FILE* out = std::tmpfile();
  const auto steps = [&](std::uint64_t epoch, std::int64_t epochs, std::int64_t max_steps) {
    df::data::Iterator batches = data.iterate(epoch);
    return df::train::fit(model.session, model.step(), batches,
                          {.epochs = epochs, .max_steps = max_steps, .progress = {{.out = out}}})
        .steps;
  };
  CHECK(steps(0, max, 4) == 4);
  CHECK(steps(0, 2, max) == 6);
  // Epochs before the iterator's epoch are over.
  for (const std::uint64_t epoch : {std::uint64_t{2}, most / 2, most / 2 + 1, most - 1, most}) {
    CHECK(steps(epoch, 2, 10) == 0);
    CHECK(steps(epoch, 1, max) == 0);
  }
  CHECK(steps(most / 2 + 1, max, 10) == 0);
  std::fclose(out);
}

TEST_CASE("a batch without rows is no part of the means of its epoch") {
  Line line_model;
  const auto batches = df::data::from_range(std::vector{2, 0, 3}).map([](int rows) {
    return Batch{df::Tensor<float>::full({rows}, 1.0f), df::Tensor<float>::full({rows}, static_cast<float>(rows))};
  });
  const auto nothing = line_model.a.assign_add(0.0f);
  const df::train::TrainStep step(df::feeds(line_model.x, line_model.y), line_model.loss, nothing,
                                  {.metrics = {{"absolute", line_model.absolute}}});
  const History history = df::train::fit(line_model.session, step, batches, {.validation = batches});
  for (const std::string of : {"", "validation_"}) {
    CHECK(history.last(of + "loss") == Approx((2 * 4.0 + 3 * 9.0) / 5));
    CHECK(history.last(of + "absolute") == Approx((2 * 2.0 + 3 * 3.0) / 5));
  }
  const auto empty = df::data::from_range(std::vector{0}).map([](int rows) {
    return Batch{df::Tensor<float>::zeros({rows}), df::Tensor<float>::zeros({rows})};
  });
  CHECK(std::isnan(df::train::fit(line_model.session, step, empty).last("loss")));
}
