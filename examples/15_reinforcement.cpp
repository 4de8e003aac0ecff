// Learns to walk from rewards, with steps of the graph that are run part by part. One step is fed the place, gives the
// action, and waits for the world's answer. Then it learns from the values that it has computed already.
//
// The world is a corridor with a cliff at one end and a prize at the other. The walker sees where it is. Its floor is
// slippery: every tenth move goes the other way. An actor chooses, a critic says how much a place is worth (Sutton and
// Barto, Reinforcement Learning, 2nd edition, section 13.5).

#include <dflow/dflow.hpp>

#include <cstdint>
#include <cstdio>
#include <random>
#include <tuple>

namespace df = dflow;

namespace {

constexpr std::int32_t length = 9;
constexpr float discount = 0.95f;

struct World {
  std::int32_t place = 2;
  std::mt19937 random{7};

  /// Takes a move, 0 left or 1 right; returns the reward, and whether it was the last move.
  std::tuple<float, bool> move(std::int32_t action) {
    if (random() % 10 == 0) action = 1 - action;
    place += action == 1 ? 1 : -1;
    if (place == 0) return {-1.0f, true};
    if (place == length - 1) return {1.0f, true};
    return {-0.01f, false};
  }
};

}  // namespace

int main() {
  df::Graph graph({.seed = 3});
  auto place = df::placeholder<std::int32_t>(graph, {});
  auto target = df::placeholder<float>(graph, {});
  auto seen = df::reshape(df::one_hot<float>(place, length), {1, length});
  auto hidden = df::dense(seen, 24, {.activation = df::Activation::tanh});
  auto logits = df::dense(hidden, 2);
  auto value = df::reshape(df::dense(hidden, 1), df::Shape{});

  auto noise = -df::log(-df::log(df::random_uniform<float>(graph, {1, 2}) + 1e-20f) + 1e-20f);
  auto action = df::reshape(df::cast<std::int32_t>(df::argmax(logits + noise, 1)), {1});  // Gumbel's trick
  auto advantage = target - value;
  auto chosen = df::reshape(df::sparse_softmax_cross_entropy(logits, action), df::Shape{});
  auto loss = chosen * df::stop_gradient(advantage) + 0.5f * df::square(advantage);
  auto train = df::train::Adam(1e-2f).minimize(loss);

  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  auto worth = session.prepare(df::feeds(place), df::fetches(value));
  World world;
  int won = 0;
  constexpr int num_walks = 400, stretch = 100;
  for (int walk = 1; walk <= num_walks; ++walk) {
    world.place = 2;
    bool has_ended = false;
    for (int moves = 0; !has_ended && moves < 100; ++moves) {
      auto step = session.partial_run(df::feeds(place, target), df::fetches(action, train));
      const std::int32_t move = step.feed(place, world.place).fetch(action)(0);
      float reward = 0;
      std::tie(reward, has_ended) = world.move(move);
      won += reward == 1.0f ? 1 : 0;
      // The critic's estimate stands for the rewards after the move.
      const float rest = has_ended ? 0.0f : worth(world.place).scalar();
      step.feed(target, reward + discount * rest).fetch(train);
    }
    if (walk % stretch != 0) continue;
    std::printf("walks %3d to %3d: %3d of %d reach the prize\n", walk - stretch + 1, walk, won, stretch);
    if (walk < num_walks) won = 0;
  }
  return won > 70 ? 0 : 1;
}
