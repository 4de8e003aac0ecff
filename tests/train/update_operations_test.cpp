#include <dflow/train/optimizer.hpp>

#include <dflow/dflow.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace df = dflow;

namespace {

/// A batch-normalised model of its own placeholder.
struct NormalisedModel {
  df::Output<float> x, loss;
  df::BatchNormalization norm{{.momentum = 0.5}};

  NormalisedModel(df::Graph& graph, df::Training training) : x(df::placeholder<float>(graph, {df::dynamic, 2})) {
    loss = df::reduce_mean(df::square(df::dense(norm(x, training), 1)));
  }
};

const df::Tensor<float> normalised_batch({2, 2}, {1, 10, 3, 30});  // means 2 and 20

/// The first moving mean: 0, and 1 after one step of `normalised_batch`.
float first_moving_mean(df::Session& session, const NormalisedModel& model) {
  return session.run(model.norm.moving_mean().as<float>())(0);
}

}  // namespace

TEST_CASE("minimize moves the averages of batch normalisation, unless it is told not to", "[update_ops]") {
  for (const bool is_fed : {false, true}) {
    df::Graph graph({.seed = 1});
    const auto training = df::placeholder<bool>(graph, {});
    const NormalisedModel model(graph, is_fed ? df::Training(training) : df::Training(true));
    CHECK(df::train::update_operations(model.loss).size() == 2);
    const df::train::GradientDescent optimizer(0.1);
    const auto train = optimizer.minimize(model.loss, {}, {.name = "train"});
    CHECK(train.name() == "train");
    const auto without = optimizer.minimize(model.loss, {.run_update_ops = false});
    df::Session session(graph);
    session.run(df::initialize_variables(graph));
    session.run({{model.x, normalised_batch}, {training, true}}, without);
    CHECK(first_moving_mean(session, model) == 0);
    session.run({{model.x, normalised_batch}, {training, true}}, train);
    CHECK(first_moving_mean(session, model) == 1);
    session.run({{model.x, normalised_batch}, {training, true}}, train);
    CHECK(first_moving_mean(session, model) == 1.5f);
  }
}

TEST_CASE("updates that are control dependencies as well run once", "[update_ops]") {
  df::Graph graph({.seed = 1});
  const NormalisedModel model(graph, df::Training(true));
  df::Operation train;
  {
    const auto after = graph.control_dependencies(graph.collection("update_ops"));
    train = df::train::Adam(0.1).minimize(model.loss);
  }
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  session.run({{model.x, normalised_batch}}, train);
  CHECK(first_moving_mean(session, model) == 1);
}

TEST_CASE("updates of other models, and of other inputs, are not of a loss", "[update_ops]") {
  df::Graph graph({.seed = 1});
  const NormalisedModel model(graph, df::Training(true)), other(graph, df::Training(true));
  // On the same input, and of the same input in a hidden layer.
  df::BatchNormalization beside;
  const auto hidden = beside(df::dense(model.x, 3), df::Training(true));
  // Updates that need a draw, or an element of a queue, are not updates of the loss, which needs neither.
  df::Variable<float> drawn(graph, 0, {.trainable = false});
  graph.add_to_collection("update_ops", drawn.assign(df::random_uniform<float>(graph, {})));
  df::FifoQueue<float> queue(graph, {.capacity = 1, .shapes = {{}}});
  graph.add_to_collection("update_ops", drawn.assign(queue.dequeue()));
  // A count of steps, and an average of the loss.
  df::Variable<std::int64_t> steps(graph, 0, {.trainable = false});
  df::Variable<float> last(graph, 0, {.trainable = false});
  graph.add_to_collection("update_ops", steps.assign_add(1));
  graph.add_to_collection("update_ops", last.assign(model.loss));

  CHECK(df::train::update_operations(model.loss).size() == 4);
  CHECK(df::train::update_operations(other.loss).size() == 3);  // two, and the count
  CHECK(df::train::update_operations(df::reduce_sum(hidden)).size() == 3);
  CHECK(code_of([] { return df::train::update_operations({}); }) == df::Code::invalid_argument);

  const auto train = df::train::GradientDescent(0.0).minimize(model.loss);
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  session.run({{model.x, normalised_batch}}, train);
  CHECK(session.run(steps).scalar() == 1);
  CHECK(session.run(last).scalar() > 0);
  CHECK(first_moving_mean(session, model) == 1);
  CHECK(first_moving_mean(session, other) == 0);
}

TEST_CASE("fit and sums of gradients run updates with each batch", "[update_ops]") {
  for (const bool runs : {true, false}) {
    df::Graph graph({.seed = 1});
    const NormalisedModel model(graph, df::Training(true));
    const df::train::GradientDescent optimizer(0.1);
    const auto train = optimizer.apply_gradients(optimizer.compute_gradients(model.loss));
    const df::train::AccumulatedGradients accumulated(optimizer, model.loss, {.run_update_ops = runs});
    df::Session session(graph);
    session.run(df::initialize_variables(graph));
    const df::train::TrainStep step(df::feeds(model.x), model.loss, train, {.run_update_ops = runs});
    const auto data = df::data::from_tensors(normalised_batch).batch(2);
    df::train::fit(session, step, data, {.epochs = 2});
    CHECK(first_moving_mean(session, model) == (runs ? 1.5f : 0.0f));
    df::train::evaluate(session, step, data);
    CHECK(first_moving_mean(session, model) == (runs ? 1.5f : 0.0f));
    session.run({{model.x, normalised_batch}}, accumulated.add());
    CHECK(first_moving_mean(session, model) == (runs ? 1.75f : 0.0f));
  }
}
