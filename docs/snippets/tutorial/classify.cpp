// docs/tutorial.md: loads the newest checkpoint, and tries the model on new points.

// [classify]
#include "spirals.hpp"

#include <cstdio>

int main() {
  df::Graph graph;
  Model model(graph);
  df::Session session(graph);

  auto path = df::train::latest_checkpoint("spirals");
  if (!path) {
    std::puts("there is no checkpoint: run ./train first");
    return 1;
  }
  df::train::Saver(graph).restore(session, *path);

  const Points unseen = make_points(500, 2);
  double accuracy = session.run({{model.x, unseen.x}, {model.labels, unseen.labels}}, model.accuracy).scalar();
  std::printf("%s: accuracy %.3f\n", path->c_str(), accuracy);

  const df::Tensor<float> two({2, 2}, {-0.5f, 0.07f, 0.5f, -0.07f});
  auto arms = session.run({{model.x, two}}, df::argmax(model.logits, 1));
  std::printf("arms of two points: %s\n", arms.to_string().c_str());
}
// [classify]
