// Learns from a stream that has no end and changes over time. A thread puts its observations into a queue of the
// graph, and training takes them out. Neither waits for the other longer than the queue is deep.
//
// The relation that is learned turns once around while the program runs. The program compares the model that goes on
// learning with a copy of it from a quarter of the time.

#include <dflow/dflow.hpp>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <numbers>
#include <random>
#include <thread>
#include <tuple>

namespace df = dflow;

namespace {

constexpr std::int64_t features = 8, num_rows = 32000;
constexpr std::int32_t batch = 32;

/// Feeds rows with their labels, which depend on the place in the stream.
void observe(df::Session& session, const df::Output<float>& row, const df::Output<float>& label,
             const df::Operation& put, const df::Operation& end) {
  auto enqueue = session.prepare(df::feeds(row, label), df::fetches(put));
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (std::int64_t i = 0; i < num_rows; ++i) {
    const float turn = 2 * std::numbers::pi_v<float> * static_cast<float>(i) / static_cast<float>(num_rows);
    df::Tensor<float> x({features});
    for (float& value : x.span()) value = normal(random);
    const bool is_positive = std::cos(turn) * x(0) + std::sin(turn) * x(1) > 0.2f * normal(random);
    enqueue(x, df::Tensor<float>(is_positive ? 1.0f : 0.0f));
  }
  session.run(end);
}

}  // namespace

int main() {
  df::Graph graph({.seed = 1});
  df::FifoQueue<float, float> stream(graph, {.capacity = 256, .shapes = {{features}, {}}});
  auto row = df::placeholder<float>(graph, {features});
  auto label = df::placeholder<float>(graph, {});
  auto put = stream.enqueue(row, label), end = stream.close();

  auto [x, y] = stream.dequeue_many(batch);
  df::Variable<float> weights(graph, df::fill<float>(graph, {features}, 0.0f), {.name = "weights"});
  df::Variable<float> kept(graph, df::fill<float>(graph, {features}, 0.0f), {.name = "kept", .trainable = false});
  auto logits = df::reduce_sum(x * weights, 1);
  auto loss = df::reduce_mean(df::sigmoid_cross_entropy(logits, y));
  auto train = df::train::GradientDescent(0.5f).minimize(loss);
  // The share is of rows that the model has not learned from yet.
  auto share_right = [&, y = y](const df::Output<float>& of) {
    return df::reduce_mean(df::cast<float>(df::equal(of > 0.0f, y > 0.5f)));
  };
  auto right = share_right(logits), right_then = share_right(df::reduce_sum(x * kept, 1));
  auto keep = kept.assign(weights);

  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  std::jthread observer([&] { observe(session, row, label, put, end); });
  auto step = session.prepare(df::feeds(), df::fetches(right, right_then, train));
  double now = 0, then = 0;
  constexpr std::int64_t num_steps = num_rows / batch, stretch = num_steps / 8;
  for (std::int64_t i = 1; i <= num_steps; ++i) {
    auto [of_now, of_then] = step();
    now += static_cast<double>(of_now.scalar());
    then += static_cast<double>(of_then.scalar());
    if (i == num_steps / 4) session.run(keep);
    if (i % stretch != 0) continue;
    std::printf("%6lld rows: %4.1f %% right", static_cast<long long>(i * batch), 100 * now / stretch);
    if (i > num_steps / 4)
      std::printf(", %4.1f %% with what was known after %lld", 100 * then / stretch,
                  static_cast<long long>(num_rows / 4));
    std::printf("\n");
    if (i < num_steps) now = then = 0;
  }
  return now / stretch > 0.85 ? 0 : 1;
}
