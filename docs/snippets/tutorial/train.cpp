// docs/tutorial.md: trains the model in one process, and saves it.

// [train]
#include "spirals.hpp"

#include <cstdio>

int main() {
  df::Graph graph({.seed = 1});
  Model model(graph);
  df::Variable<std::int64_t> global_step(graph, 0, {.name = "global_step", .trainable = false});
  auto update = df::train::Adam(3e-3f).minimize(model.loss, {.global_step = global_step});

  df::Session session(graph);
  session.run(df::initialize_variables(graph));

  const Points points = make_points(1000, 1);
  auto batches = df::data::from_tensors(points.x, points.labels).shuffle(1000, {.seed = 1}).batch(50);
  df::train::TrainStep step(df::feeds(model.x, model.labels), model.loss, update,
                            {.metrics = {{"accuracy", model.accuracy}}});
  auto history = df::train::fit(session, step, batches, {.epochs = 20});
  std::printf("loss %.3f, accuracy %.3f\n", history.last("loss"), history.last("accuracy"));

  df::train::Saver saver(graph);
  auto path = saver.save(session, "spirals/model", session.run(global_step).scalar());
  std::printf("saved %s\n", path.c_str());
}
// [train]
