// Trains three small models for 100 steps from fixed seeds and prints their last losses, and checksums of their
// weights:
//   dflow_weights [baseline|x86-64-v3|x86-64-v4]
// Two builds or machines with equal lines compute the same bits. Without an argument the kernels are those of the
// machine.
//
// With the flags of a cluster of a "ps" and a "chief", for example --dflow_cluster
// "ps=unix:///tmp/a;chief=unix:///tmp/b"
// --job ps, the perceptron's variables are in the one task, and the other task computes.

#include <dflow/base/files/crc32c.hpp>
#include <dflow/dflow.hpp>
#include <dflow/net/server.hpp>
#include <dflow/runtime/cpu_device.hpp>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <iostream>
#include <span>
#include <string_view>
#include <tuple>

namespace df = dflow;

namespace {

constexpr int num_steps = 100;
constexpr std::int64_t batch = 32;

/// Numbers from 0 up to `limit`, the same anywhere.
template <class T>
df::Tensor<T> numbers(const df::Shape& shape, std::uint64_t step, std::uint64_t limit, T scale) {
  df::Tensor<T> made(shape);
  std::uint64_t state = step * 0x9e3779b97f4a7c15u + limit;
  for (std::int64_t i = 0; i < shape.num_elements(); ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    made.data()[i] = static_cast<T>((state >> 33) % limit) * scale;
  }
  return made;
}

/// Makes one step and returns its loss.
using Step = std::function<float(df::Session& session, std::uint64_t step)>;

Step classifier(df::Output<float> images, df::Output<float> logits, df::Output<std::int32_t> labels,
                const df::Shape& shape) {
  auto loss = df::reduce_mean(df::sparse_softmax_cross_entropy(logits, labels));
  auto train = df::train::Adam(1e-3f).minimize(loss);
  return [=](df::Session& session, std::uint64_t step) {
    const auto x = numbers<float>(shape, step, 256, 1.0f / 256);
    const auto y = numbers<std::int32_t>({batch}, step, 10, 1);
    return session.run({{images, x}, {labels, y}}, loss, train).scalar();
  };
}

Step perceptron(df::Graph& graph) {
  auto images = df::placeholder<float>(graph, {df::dynamic, 256});
  auto labels = df::placeholder<std::int32_t>(graph, {df::dynamic});
  auto hidden = df::dense(images, 200, {.activation = df::Activation::tanh});
  return classifier(images, df::dense(hidden, 10), labels, {batch, 256});
}

/// LeCun et al. 1998.
Step lenet(df::Graph& graph) {
  auto images = df::placeholder<float>(graph, {df::dynamic, 28, 28, 1});
  auto labels = df::placeholder<std::int32_t>(graph, {df::dynamic});
  auto low = df::max_pool(df::conv2d(images, 6, 5, {.activation = df::Activation::relu}), 2);
  auto high = df::max_pool(df::conv2d(low, 16, 5, {.activation = df::Activation::relu}), 2);
  auto hidden = df::dense(df::flatten(high), 120, {.activation = df::Activation::relu});
  auto last = df::dense(hidden, 84, {.activation = df::Activation::relu});
  return classifier(images, df::dense(last, 10), labels, {batch, 28, 28, 1});
}

Step lstm(df::Graph& graph) {
  constexpr std::int32_t letters = 27;
  constexpr std::int64_t stretch = 16;
  auto ids = df::placeholder<std::int32_t>(graph, {df::dynamic, stretch});
  df::LstmCell cell(64);
  auto outputs = std::get<0>(df::dynamic_rnn(cell, df::one_hot<float>(ids, letters)));
  auto logits = df::dense(df::reshape(outputs, {-1, 64}), letters);
  auto loss = df::reduce_mean(df::sparse_softmax_cross_entropy(logits, df::reshape(ids, {-1})));
  df::train::Adam optimizer(5e-3f);
  auto train = optimizer.apply_gradients(df::train::clip_by_global_norm(optimizer.compute_gradients(loss), 1.0));
  return [=](df::Session& session, std::uint64_t step) {
    return session.run({{ids, numbers<std::int32_t>({batch, stretch}, step, letters, 1)}}, loss, train).scalar();
  };
}

/// `run(f)` calls f with a session.
template <class Run>
void train(const char* name, const df::Graph& graph, const Step& model, const Run& run) {
  float loss = 0;
  for (std::uint64_t step = 0; step < num_steps; ++step) {
    run([&](df::Session& session) { loss = model(session, step); });
  }
  std::uint32_t checksum = 0;
  run([&](df::Session& session) {
    for (const df::AnyVariable& variable : df::trainable_variables(graph)) {
      const df::Tensor<float> value = session.run(variable.read_edge().as<float>());
      checksum = df::crc32c_extend(checksum, std::as_bytes(value.span()));
    }
  });
  std::printf("%-10s loss %.9g  weights %08x\n", name, static_cast<double>(loss), checksum);
}

void train_alone(const char* name, Step (*make)(df::Graph&), df::CpuLevel level) {
  df::Graph graph({.seed = 1});
  const Step model = make(graph);
  df::Session session(graph, {.devices = df::cpu_devices(
                                  1, {.kernels = {.backend = df::cpu::CpuBackend::builtin, .max_level = level}})});
  session.run(df::initialize_variables(graph));
  train(name, graph, model, [&](const auto& step) { step(session); });
}

int train_in_cluster(const df::net::ClusterSpec& cluster) {
  df::net::Server server(cluster);
  if (cluster.job() == "ps") return server.join();
  df::Graph graph({.seed = 1});
  const auto on = graph.device(df::train::replica_device(cluster));
  const Step model = perceptron(graph);
  df::train::Supervisor supervisor(graph, {.session = {.target = server.target({"/job:ps"})}});
  train("MLP", graph, model, [&](const auto& step) { supervisor.run(step); });
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const auto cluster = df::net::ClusterSpec::from_flags(argc, argv);
    if (cluster.num_tasks() > 1) return train_in_cluster(cluster);
    auto level = df::CpuLevel::x86_64_v4;
    for (const auto named : {df::CpuLevel::baseline, df::CpuLevel::x86_64_v3}) {
      if (argc > 1 && argv[1] == df::cpu_level_name(named)) level = named;
    }
    train_alone("MLP", perceptron, level);
    train_alone("LeNet", lenet, level);
    train_alone("LSTM", lstm, level);
    return 0;
  } catch (const df::Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
