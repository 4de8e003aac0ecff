// One training step of small models on synthetic data; a side of `benchmarks/contest.py training`.
// usage: bench_contest_training THREADS
#include <dflow/dflow.hpp>

#include "contestant.hpp"

#include <cstdlib>
#include <memory>
#include <random>
#include <tuple>

namespace df = dflow;

namespace {

using Images = df::Output<float>;
constexpr auto relu = df::Activation::relu;

Images tiny(const Images& x) { return df::dense(df::dense(x, 16, {.activation = relu}), 10); }

Images mlp(const Images& x) {
  return df::dense(df::dense(df::dense(x, 512, {.activation = relu}), 512, {.activation = relu}), 10);
}

Images lenet(const Images& x) {
  auto low = df::max_pool(df::conv2d(x, 32, 5, {.activation = relu}), 2);
  auto high = df::max_pool(df::conv2d(low, 64, 5, {.activation = relu}), 2);
  return df::dense(df::dense(df::flatten(high), 512, {.activation = relu}), 10);
}

/// Over x [time, batch, inputs].
Images lstm(const Images& x) {
  const df::LstmCell cell(256, {.forget_bias = 0});
  const auto [outputs, state] = df::dynamic_rnn(cell, x, {.time_major = true});
  return df::dense(std::get<1>(state), 10);
}

struct Training {
  df::Graph graph{{.seed = 1}};
  std::unique_ptr<df::Session> session;
  df::Tensor<float> x;
  df::Tensor<std::int32_t> y;
  std::function<void()> step;
};

void add(df::bench::Contestant& rows, const char* name, const df::Shape& shape, Images (*model)(const Images&),
         bool use_adam, int threads) {
  rows.row(name, [=] {
    auto training = std::make_shared<Training>();
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    training->x = df::Tensor<float>(shape);
    for (float& value : training->x.span()) value = normal(random);
    training->y = df::Tensor<std::int32_t>({shape[0]});
    for (auto& value : training->y.span()) value = static_cast<std::int32_t>(random() % 10);

    const auto x = df::placeholder<float>(training->graph, shape);
    const auto y = df::placeholder<std::int32_t>(training->graph, {shape[0]});
    const auto loss = df::reduce_mean(df::sparse_softmax_cross_entropy(model(x), y));
    const auto train =
        use_adam ? df::train::Adam(1e-4f).minimize(loss) : df::train::GradientDescent(0.01f).minimize(loss);
    training->session = std::make_unique<df::Session>(training->graph, df::SessionOptions{.num_threads = threads});
    training->session->run(df::initialize_variables(training->graph));
    using Step = decltype(training->session->prepare(df::feeds(x, y), df::fetches(loss, train)));
    auto step = std::make_shared<Step>(training->session->prepare(df::feeds(x, y), df::fetches(loss, train)));
    return [training, step] { (*step)(training->x, training->y); };
  });
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
  df::bench::Contestant rows;
  add(rows, "tiny sgd", {8, 16}, tiny, false, threads);
  add(rows, "mlp sgd", {128, 784}, mlp, false, threads);
  add(rows, "mlp adam", {128, 784}, mlp, true, threads);
  add(rows, "lenet sgd", {64, 28, 28, 1}, lenet, false, threads);
  add(rows, "lstm sgd", {32, 32, 256}, lstm, false, threads);
  return rows.serve();
}
