// docs/tutorial.md: goes on with the training in several processes.

// [cluster]
#include "spirals.hpp"

#include <cstdio>

int main(int argc, char** argv) {
  auto cluster = df::net::ClusterSpec::from_flags(argc, argv);  // which task this process is
  df::net::Server server(cluster);
  if (cluster.job() == "ps") return server.join();

  df::Graph graph({.seed = 1});
  auto on = graph.device(df::train::replica_device(cluster));  // variables on the parameter server
  Model model(graph);
  df::Variable<std::int64_t> global_step(graph, 0, {.name = "global_step", .trainable = false});
  auto update = df::train::Adam(3e-3f).minimize(model.loss, {.global_step = global_step});

  df::train::Supervisor supervisor(graph, {.session = {.target = server.target({"/job:ps"})},
                                           .is_chief = cluster.is_chief(),
                                           .checkpoint_dir = "spirals",
                                           .global_step = global_step});
  const Points points = make_points(1000, 1);
  df::train::Minibatches batches(points.x.shape()[0], 50, /*seed=*/1 + cluster.replica_rank());
  std::int64_t done = 0;  // steps of all workers together
  while (done < 2000) {
    const auto rows = batches.next();
    const auto x = df::train::rows_of(points.x, rows);
    const auto labels = df::train::rows_of(points.labels, rows);
    supervisor.run([&](df::Session& session) {
      session.run({{model.x, x}, {model.labels, labels}}, update);
      done = session.run(global_step).scalar();
    });
  }
  if (cluster.is_chief()) std::printf("saved %s\n", supervisor.save().c_str());
}
// [cluster]
