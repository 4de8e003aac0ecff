// Everything that TensorBoard shows, of two models that learn to read digits at different rates:
//   tensorboard [FOLDER]           ("tensorboard_logs" without one)
//   tensorboard --logdir FOLDER    (TensorBoard's own program: pip install tensorboard)
// Each run has scalars by step and by epoch, histograms of the weights, images of digits, a table of the digits that
// were read, and a tone that falls with the loss. It also has the graph with its scopes, devices and the time of each
// node, and hyperparameters.

#include "digits.hpp"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

namespace df = dflow;

namespace {

constexpr float sample_rate = 8000;

/// A second, [1, frames]: its pitch is 220 Hz and as much again for each unit of the loss.
df::Output<float> tone_of(df::Graph& graph, const df::Output<float>& loss) {
  df::Tensor<float> time({1, static_cast<std::int64_t>(sample_rate)});
  for (std::int64_t i = 0; i < time.num_elements(); ++i) time.data()[i] = static_cast<float>(i) / sample_rate;
  const float turn = 2 * std::acos(-1.0f);
  return df::sin(df::constant(graph, time) * ((loss + 1.0f) * (220 * turn))) * 0.5f;
}

void train(const digits::Sets& sets, df::FileSystem& files, const std::string& folder, double rate) {
  df::Graph graph({.seed = 1});
  df::Output<float> images, loss, accuracy;
  df::Output<std::int32_t> labels;
  {
    const auto scope = graph.name_scope("input");
    images = df::placeholder<float>(graph, {df::dynamic, 8, 8, 1}, {.name = "images"});
    labels = df::placeholder<std::int32_t>(graph, {df::dynamic}, {.name = "labels"});
    df::image_summary("digits", images, {.max_images = 4});
  }
  df::Dense hidden(64, {.activation = df::Activation::relu, .name = "hidden"});
  df::Dense scores(10, {.name = "scores"});
  df::Output<float> logits;
  {
    const auto device = graph.device("/cpu:1");
    logits = scores(hidden(df::flatten(images)));
    df::histogram_summary("weights/hidden", df::Variable<float>(hidden.kernel()));
    df::histogram_summary("weights/scores", df::Variable<float>(scores.kernel()));
  }
  {
    const auto scope = graph.name_scope("quality");
    loss = df::reduce_mean(df::sparse_softmax_cross_entropy(logits, labels));
    accuracy = df::accuracy(logits, labels);
    df::scalar_summary("batch/loss", loss);
    df::scalar_summary("batch/accuracy", accuracy);
    df::histogram_summary("logits", logits);
    df::text_summary("read", df::as_string(df::slice(df::argmax(logits, 1), {0}, {4})));
    df::audio_summary("tone", tone_of(graph, loss), sample_rate, {.max_outputs = 1});
  }
  df::Variable<std::int64_t> global_step(graph, 0, {.name = "global_step", .trainable = false});
  const auto update = df::train::Adam(rate).minimize(loss, {.global_step = global_step});
  df::train::TrainStep step(df::feeds(images, labels), loss, update, {.metrics = {{"accuracy", accuracy}}});

  df::RealClock clock;
  df::EventWriter events(files, folder, clock);
  events.add_hyperparameters({.values = {{"learning_rate", rate}, {"optimizer", std::string("adam")}, {"bias", true}},
                              .metrics = {"epoch/validation_accuracy", "epoch/validation_loss"},
                              .group = {}});
  df::Session session(graph, {.num_cpu_devices = 2});
  session.run(df::initialize_variables(graph));
  const auto rows =
      df::data::from_tensors(sets.train.images, sets.train.labels).shuffle(2000, {.seed = 1}).batch(32).prefetch(2);
  const auto test = df::data::from_tensors(sets.test.images, sets.test.labels).batch(200);
  const df::train::History history = df::train::fit(
      session, step, rows,
      {.epochs = 5,
       .validation = test,
       .hooks = {df::train::summaries(
           events,
           {.every_steps = 10, .trace_every_steps = 100, .shown = {"batch/accuracy"}, .global_step = global_step})},
       .progress = df::train::ProgressOptions{.every = 100}});
  events.add_hyperparameters_end(true);
  events.close();
  std::printf("rate %g: test accuracy %.3f\n", rate, history.last("validation_accuracy"));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::string folder = argc > 1 ? argv[1] : "tensorboard_logs";
    const digits::Sets sets = digits::read_sets("", 1);
    df::PosixFileSystem files;
    train(sets, files, folder + "/slow", 1e-4);
    train(sets, files, folder + "/fast", 3e-3);
    std::printf("tensorboard --logdir %s\n", folder.c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
