// Learns a table of users and one of films from ratings. Each table is split over the parameter servers, and a worker
// exchanges only the rows that its step needs. Run it alone, or as many processes:
//   dflow-launch --ps 3 --workers 2 --chief -- sharded_embeddings

#include <dflow/dflow.hpp>
#include <dflow/net/server.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <random>

namespace df = dflow;

namespace {

constexpr std::int64_t num_users = 20'000, num_films = 5'000, width = 8, batch = 1024, steps = 3'000;

/// A user's true rating of a film. Each user likes or dislikes four traits that a film has or lacks.
float rating_of(std::int32_t user, std::int32_t film) {
  const auto trait = [](std::int32_t id, int i) { return (id * 2654435761u >> (20 + i) & 1u) != 0 ? 0.5f : -0.5f; };
  float rating = 0;
  for (int i = 0; i < 4; ++i) rating += trait(user + 1, i) * trait(film + 7, i + 4);
  return rating;
}

struct Ratings {
  df::Tensor<std::int32_t> users{df::Shape{batch}}, films{df::Shape{batch}};
  df::Tensor<float> values{df::Shape{batch}};
};

Ratings draw_ratings(std::mt19937_64& random) {
  Ratings ratings;
  for (std::int64_t i = 0; i < batch; ++i) {
    ratings.users(i) = static_cast<std::int32_t>(random() % num_users);
    ratings.films(i) = static_cast<std::int32_t>(random() % num_films);
    ratings.values(i) = rating_of(ratings.users(i), ratings.films(i));
  }
  return ratings;
}

int train(const df::net::ClusterSpec& cluster) {
  df::net::Server server(cluster);
  if (cluster.job() == "ps") return server.join();

  df::Graph graph({.seed = 1});
  auto on = graph.device(df::train::replica_device(cluster));
  auto users = df::placeholder<std::int32_t>(graph, {df::dynamic});
  auto films = df::placeholder<std::int32_t>(graph, {df::dynamic});
  auto ratings = df::placeholder<float>(graph, {df::dynamic});
  const auto shards = std::max<std::int64_t>(1, static_cast<std::int64_t>(cluster.num_tasks("ps")));
  const auto first_values = df::init::normal(0.3);
  auto user_table = df::partitioned_variable<float>(graph, {num_users, width}, shards,
                                                    {.initializer = first_values, .name = "users"});
  auto film_table = df::partitioned_variable<float>(graph, {num_films, width}, shards,
                                                    {.initializer = first_values, .name = "films"});
  auto likes = df::embedding_lookup(user_table, users);
  auto traits = df::embedding_lookup(film_table, films);
  auto loss = df::reduce_mean(df::square(df::reduce_sum(likes * traits, 1) - ratings));
  df::Variable<std::int64_t> global_step(graph, std::int64_t{0}, {.name = "global_step", .trainable = false});
  auto train = df::train::Adam(0.02f).minimize(loss, {.global_step = global_step});

  df::train::Supervisor supervisor(graph,
                                   {.session = {.target = server.target({"/job:ps"})}, .is_chief = cluster.is_chief()});
  std::mt19937_64 random(1 + static_cast<std::uint64_t>(cluster.task_index() + !cluster.is_chief()));
  for (std::int64_t done = 0, shown = 0; done < steps;) {
    const Ratings some = draw_ratings(random);
    const auto [value, step] = supervisor.run([&](df::Session& session) {
      return session.run({{users, some.users}, {films, some.films}, {ratings, some.values}}, loss, global_step, train);
    });
    done = step.scalar() + 1;
    if (!cluster.is_chief() || done < shown) continue;
    std::printf("step %5lld  loss %.4f\n", static_cast<long long>(done), static_cast<double>(value.scalar()));
    shown = done + steps / 10;
  }
  if (!cluster.is_chief()) return 0;
  const Ratings test = draw_ratings(random);
  const auto error = supervisor.run([&](df::Session& session) {
    return session.run({{users, test.users}, {films, test.films}, {ratings, test.values}}, loss).scalar();
  });
  std::printf("mean squared error of new ratings %.4f, in %lld shards\n", static_cast<double>(error),
              static_cast<long long>(shards));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return train(df::net::ClusterSpec::from_flags(argc, argv));
  } catch (const df::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
