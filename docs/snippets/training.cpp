// The snippets of docs/training.md, one function per section.

#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/dflow.hpp>

#include <stdlib.h>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

namespace df = dflow;

namespace {

void require(bool holds, const char* what) {
  if (!holds) throw df::Error(df::Status::internal(what));
}

/// Images of a bright row in noise; the number of the row is the label.
df::LabelledImages bright_rows(std::int64_t count) {
  df::LabelledImages data{df::Tensor<float>({count, 8, 8, 1}), df::Tensor<std::int32_t>({count})};
  std::uint32_t noise = 1;
  for (std::int64_t i = 0; i < count; ++i) {
    data.labels(i) = static_cast<std::int32_t>(i % 8);
    for (std::int64_t row = 0; row < 8; ++row) {
      for (std::int64_t column = 0; column < 8; ++column) {
        noise = noise * 1664525u + 1013904223u;
        data.images(i, row, column, 0) = static_cast<float>(noise >> 24) / 512.0f + (row == i % 8 ? 0.5f : 0.0f);
      }
    }
  }
  return data;
}

void functions() {
  // [functions]
  df::Graph graph({.seed = 1});
  auto images = df::placeholder<float>(graph, {df::dynamic, 8, 8, 1});
  auto edges = df::conv2d(images, 16, 3, {.activation = df::Activation::relu});
  auto low = df::max_pool(edges, 2);
  auto hidden = df::dense(df::flatten(low), 64, {.activation = df::Activation::relu});
  auto logits = df::dense(hidden, 10, {}, {.name = "logits"});  // variables "logits/kernel" and "logits/bias"
  // [functions]
  require(df::global_variables(graph).size() == 6 && graph.find("logits/bias").is_valid(), "layers as functions");
  require(logits.shape() == df::PartialShape{df::dynamic, 10}, "a network of functions");

  // [variables]
  df::Dense layer(4, {.kernel_regularizer = df::regularizer::l2(1e-4)});
  auto first = layer(hidden), second = layer(df::tanh(hidden));  // one kernel, one bias
  df::Variable<float> kernel = layer.kernel().as<float>();       // an edge, and what changes it
  for (const df::AnyVariable& variable : layer.variables()) std::puts(variable.name().c_str());
  std::size_t trained = df::trainable_variables(graph).size();  // those of all layers
  // [variables]
  require(kernel.shape() == df::PartialShape{64, 4} && trained == 8 && first.is_valid() && second.is_valid(),
          "variables");
}

// [model]
struct Model {
  df::Convolution2D edges{16, 3, {.activation = df::Activation::relu}};
  df::BatchNormalization norm{{.momentum = 0.9}};
  df::Dense hidden{64, {.activation = df::Activation::relu, .kernel_regularizer = df::regularizer::l2(1e-4)}};
  df::Dense out{8};

  df::Output<float> operator()(const df::Output<float>& images, df::Training training) const {
    auto x = df::max_pool(norm(edges(images), training), 2);
    return out(df::dropout(hidden(df::flatten(x)), 0.5f, training));
  }
};
// [model]

// [save]
void save_weights(df::Session& session, const df::Graph& graph, df::FileSystem& files, const std::string& path) {
  df::Graph weights;
  for (const df::AnyVariable& variable : df::global_variables(graph)) {
    df::constant(weights, session.run(variable.read_edge()), {.name = variable.name()});
  }
  df::save_graph(files, path, df::to_graph_def(weights));
}
// [save]

// [load]
void load_weights(df::Session& session, df::Graph& graph, df::FileSystem& files, const std::string& path) {
  const df::Graph weights = df::import_graph(df::load_graph(files, path), df::standard_op_table());
  df::Session reader(weights);
  std::vector<df::train::VariableValue> values;
  for (const df::AnyVariable& variable : df::global_variables(graph)) {
    values.push_back({variable, reader.run(weights.output(variable.name()))});  // NotFound: it was not saved
  }
  df::train::assign(session, values);  // InvalidArgument: another shape
}
// [load]

void streaming_metrics() {
  df::Graph graph({.seed = 1});
  auto x = df::placeholder<float>(graph, {df::dynamic, 2});
  auto labels = df::placeholder<bool>(graph, {df::dynamic});
  auto weights = df::placeholder<float>(graph, {df::dynamic});
  const auto batches =
      df::data::from_tensors(df::Tensor<float>({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}),
                             df::Tensor<bool>({4}, {true, false, true, true}), df::Tensor<float>({4}, {1, 1, 2, 0.5f}))
          .batch(2);
  // [metrics]
  auto scores = df::sigmoid(df::squeeze(df::dense(x, 1), 1));
  auto auc = df::metrics::auc(labels, scores);
  auto recall = df::metrics::recall(labels, scores > 0.5f, {.weights = weights});
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  session.run(df::group({auc.reset, recall.reset}));
  for (auto& [batch, truth, weight] : batches) {
    session.run({{x, batch}, {labels, truth}, {weights, weight}}, auc.update, recall.update);
  }
  auto [area, share] = session.run(auc.value, recall.value);
  // [metrics]
  require(area.scalar() >= 0 && area.scalar() <= 1.000001 && share.scalar() >= 0 && share.scalar() <= 1,
          "streaming metrics");
}

void training() {
  const df::LabelledImages data = bright_rows(256), test = bright_rows(64);
  df::MemoryFileSystem files;
  // [graph]
  df::Graph graph({.seed = 1});
  auto images = df::placeholder<float>(graph, {df::dynamic, 8, 8, 1});
  auto labels = df::placeholder<std::int32_t>(graph, {df::dynamic});

  Model model;
  auto logits = model(images, df::Training(true));
  auto predicted = model(images, df::Training(false));  // the same variables
  auto loss = df::reduce_mean(df::sparse_softmax_cross_entropy(logits, labels)) + df::regularization_loss<float>(graph);
  auto accuracy = df::accuracy(predicted, labels);
  // [graph]

  // [optimizer]
  df::Variable<std::int64_t> global_step(graph, 0, {.name = "global_step", .trainable = false});
  auto rate = df::train::exponential_decay(5e-3, global_step, {.decay_steps = 100, .decay_rate = 0.5});
  df::train::Adam optimizer(rate);
  df::Operation train;
  {
    auto after = graph.control_dependencies(df::train::update_operations(loss));  // what moves the averages of `norm`
    auto gradients = df::train::clip_by_global_norm(optimizer.compute_gradients(loss), 5.0);
    train = optimizer.apply_gradients(gradients, global_step);
  }
  // [optimizer]

  // [loop]
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  auto step = session.prepare(df::feeds(images, labels), df::fetches(loss, train));
  df::train::Minibatches batches(data.size(), 32, /*seed=*/1);
  const std::int64_t steps = 10 * batches.per_epoch();
  df::train::Progress progress(steps);
  for (std::int64_t i = 0; i < steps; ++i) {
    const auto rows = batches.next();
    const auto x = df::train::rows_of(data.images, rows);
    const auto y = df::train::rows_of(data.labels, rows);
    const float value = step(x, y).scalar();                    // a Tensor<float> is no number: .scalar() is
    df::train::require_finite(value, i, session, graph, x, y);  // an error if the loss is infinite or NaN
    progress.step(value);
  }
  // [loop]

  // [evaluation]
  double hits = 0;
  for (std::int64_t begin = 0; begin < test.size(); begin += 50) {
    const df::LabelledImages part = df::slice(test, begin, std::min(begin + 50, test.size()));
    const float share = session.run({{images, part.images}, {labels, part.labels}}, accuracy).scalar();
    hits += static_cast<double>(share) * static_cast<double>(part.size());
  }
  std::printf("test accuracy %.3f\n", hits / static_cast<double>(test.size()));
  // [evaluation]
  require(hits > 0.9 * static_cast<double>(test.size()), "the model learns");

  // [trace]
  using namespace std::chrono_literals;
  const df::LabelledImages few = df::slice(data, 0, 32);
  df::RunMetadata metadata;
  step.run({.deadline = 10s, .trace = true}, &metadata, few.images, few.labels);
  files.write_file_atomically("step.json", df::chrome_trace(metadata.stats));  // for chrome://tracing or Perfetto
  // [trace]
  require(files.file_size("step.json") > 100, "a trace");

  save_weights(session, graph, files, "model.weights");
  // [restored]
  df::Graph restored;
  auto x = df::placeholder<float>(restored, {df::dynamic, 8, 8, 1});
  Model same;  // layers of its own, under the same names
  auto classes = df::argmax(same(x, df::Training(false)), 1);
  df::Session inference(restored);
  load_weights(inference, restored, files, "model.weights");
  auto answer = inference.run({{x, test.images}}, classes);
  // [restored]
  const auto expected = session.run({{images, test.images}}, df::argmax(predicted, 1));
  require(df::bitwise_equal(answer, expected), "restored weights");
}

void shared_by_name() {
  df::Graph graph({.seed = 1});
  auto images = df::placeholder<float>(graph, {df::dynamic, 8, 8, 1});
  // [variable_scope]
  auto tower = [&](df::Output<float> x, df::Reuse reuse) {
    df::VariableScope scope(graph, "tower", {.reuse = reuse, .regularizer = df::regularizer::l2(1e-4)});
    auto w = scope.get_variable<float>("w", {64, 16});             // "tower/w"
    return df::dense(df::relu(df::matmul(df::flatten(x), w)), 8);  // "tower/dense/kernel", "tower/dense/bias"
  };
  auto trained = tower(images, df::Reuse::never);     // AlreadyExists if one were there
  auto evaluated = tower(images, df::Reuse::always);  // NotFound if one were missing; Reuse::automatic makes it then
  // [variable_scope]
  require(df::global_variables(graph).size() == 3 && trained.name() != evaluated.name(), "variables shared by name");
}

void fed_training() {
  // [fed]
  df::Graph graph({.seed = 1});
  auto x = df::placeholder<float>(graph, {df::dynamic, 16});
  auto training = df::placeholder<bool>(graph, {});  // fed: one graph for both
  auto y = df::dropout(df::dense(x, 4), 0.75f, training);
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  auto thinned = session.run({{x, df::Tensor<float>::zeros({1, 16})}, {training, true}}, y);
  auto whole = session.run({{x, df::Tensor<float>::zeros({1, 16})}, {training, false}}, y);
  // [fed]
  require(thinned.shape() == whole.shape(), "training as a fed edge");
}

void checkpoints(const std::string& folder) {
  df::Graph graph({.seed = 1});
  df::Variable<std::int64_t> step(graph, 0, {.name = "global_step", .trainable = false});
  auto x = df::constant(graph, df::Tensor<float>::full({4, 8}, 0.5f));
  auto loss = df::reduce_mean(df::square(df::dense(df::dropout(x, 0.5f), 2) - 1.0f));
  auto train = df::train::Adam(0.1f).minimize(loss, {.global_step = step});
  {
    // [checkpoints]
    df::train::Saver saver(graph);  // when the model is built, the optimizer's variables too
    df::Session session(graph);
    if (auto latest = df::train::latest_checkpoint(folder)) {
      saver.restore(session, *latest);
    } else {
      session.run(df::initialize_variables(graph));
    }
    for (std::int64_t n = session.run(step).scalar(); n < 20; ++n) {
      session.run(train);
      if (n % 5 == 4) saver.save(session, folder + "/digits", n + 1);  // digits-5, digits-10, ...
    }
    // [checkpoints]
    require(saver.checkpoints().size() == 4, "checkpoints");

    // [renamed]
    df::Graph other;
    df::Variable<float> weights(other, df::Tensor<float>::zeros({8, 2}), {.name = "weights"});
    df::train::Saver of_weights(other, {{"dense/kernel", weights.any_variable()}});  // name in the file, variable
    df::Session second(other);
    of_weights.restore(second, folder + "/digits-20");
    // [renamed]
    require(df::bitwise_equal(second.run(weights), session.run(graph.output("dense/kernel/read"))), "renamed");
  }
  // [supervised]
  df::train::Supervisor supervisor(
      graph,
      {.checkpoint_dir = folder, .global_step = step, .save_every = std::chrono::minutes(10), .save_on_sigterm = true});
  std::int64_t n = 0;
  while (!supervisor.should_stop() && n < 40) {
    n = supervisor.run([&](df::Session& session) {
      session.run(train);
      return session.run(step).scalar();
    });
  }
  supervisor.save();
  // [supervised]
  require(df::train::latest_checkpoint(folder) == folder + "/model-40", "a supervisor goes on from the latest");
}

void fitting(const std::string& folder) {
  const df::LabelledImages data = bright_rows(256), test = bright_rows(64);
  df::Graph graph({.seed = 1});
  auto images = df::placeholder<float>(graph, {df::dynamic, 8, 8, 1});
  auto labels = df::placeholder<std::int32_t>(graph, {df::dynamic});
  auto logits = df::dense(df::flatten(images), 8);
  auto loss = df::reduce_mean(df::sparse_softmax_cross_entropy(logits, labels));
  auto accuracy = df::accuracy(logits, labels);
  df::Variable<std::int64_t> global_step(graph, 0, {.name = "global_step", .trainable = false});
  auto train = df::train::AdamW(0.01, /*weight_decay=*/0.01).minimize(loss, {.global_step = global_step});
  // [averages]
  df::train::ExponentialMovingAverage averages(0.99, {.num_updates = global_step});
  {
    auto after = graph.control_dependencies({train});
    train = averages.apply(df::trainable_variables(graph));  // runs the step, then moves the averages
  }
  df::train::Saver averaged(graph, averages.variables_to_restore(graph));  // restores "w/ExponentialMovingAverage" to w
  // [averages]
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  // [fit]
  auto rows = df::data::from_tensors(data.images, data.labels).shuffle(256, {.seed = 1}).batch(32).prefetch(2);
  auto test_rows = df::data::from_tensors(test.images, test.labels).batch(50);
  df::train::TrainStep step(df::feeds(images, labels), loss, train, {.metrics = {{"accuracy", accuracy}}});
  df::train::History history =
      df::train::fit(session, step, rows,
                     {.epochs = 10,
                      .validation = test_rows,
                      .hooks = {df::train::early_stopping({.patience = 3, .restore_best = true})}});
  std::printf("test accuracy %.3f\n", history.last("validation_accuracy"));
  // [fit]
  require(history.last("validation_accuracy") > 0.9, "the model learns");

  // [resume]
  df::data::Iterator batches = rows.iterate();
  df::train::Saver saver(graph, {.states = {df::train::saved_iterator("batches", batches)}});
  if (auto latest = df::train::latest_checkpoint(folder)) saver.restore(session, *latest);
  df::train::fit(
      session, step, batches,
      {.epochs = 20,
       .hooks = {df::train::checkpoints(saver, folder + "/rows", {.every_steps = 100, .global_step = global_step})}});
  // [resume]
  averaged.restore(session, *df::train::latest_checkpoint(folder));
  require(df::train::evaluate(session, step, test_rows).at("accuracy") > 0.9, "averages");
}

void best_of_fit(const std::string& folder) {
  const df::LabelledImages data = bright_rows(256), test = bright_rows(64);
  df::Graph graph({.seed = 1});
  auto images = df::placeholder<float>(graph, {df::dynamic, 8, 8, 1});
  auto labels = df::placeholder<std::int32_t>(graph, {df::dynamic});
  auto loss = df::reduce_mean(df::sparse_softmax_cross_entropy(df::dense(df::flatten(images), 8), labels));
  auto rows = df::data::from_tensors(data.images, data.labels).shuffle(256, {.seed = 1}).batch(32);
  auto test_rows = df::data::from_tensors(test.images, test.labels).batch(64);
  // [plateau]
  df::Variable<float> rate(graph, 0.1f, {.name = "rate", .trainable = false});
  auto train = df::train::Momentum(rate, 0.9, {.use_nesterov = true}).minimize(loss);
  df::train::AnyTrainStep step = df::train::TrainStep(df::feeds(images, labels), loss, train);
  df::train::Saver saver(graph);
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  df::train::fit(session, step, rows,
                 {.epochs = 20,
                  .validation = test_rows,
                  .hooks = {df::train::reduce_on_plateau(rate, {.factor = 0.5, .patience = 3}),
                            df::train::checkpoints(saver, folder + "/digits", {.best_of = "validation_loss"})}});
  // [plateau]
  require(df::train::latest_checkpoint(folder).has_value(), "the best epoch is saved");
}

void recurrent() {
  // [recurrent]
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {df::dynamic, df::dynamic, 8});  // [batch, time, inputs]
  auto lengths = df::placeholder<std::int32_t>(graph, {df::dynamic});     // of each sequence
  df::StackedCells cell(df::LstmCell(32), df::GruCell(16));
  auto [outputs, state] = df::dynamic_rnn(cell, x, {.sequence_length = lengths});
  auto logits = df::dense(std::get<1>(state), 4);  // of what the upper cell ends with
  auto [forward, backward, forward_state, backward_state] = df::bidirectional_rnn(df::LstmCell(8), df::LstmCell(8), x);
  auto [c, h] = forward_state;  // of an LSTM
  auto both = df::concat({forward, backward}, 2);
  // [recurrent]
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  const auto [all, last] =
      session.run({{x, df::Tensor<float>::full({2, 5, 8}, 0.5f)}, {lengths, df::Tensor<std::int32_t>({2}, {5, 3})}},
                  outputs, logits);
  require(all.shape() == df::Shape({2, 5, 16}) && last.shape() == df::Shape({2, 4}), "recurrent");
  require(both.shape().dim(2) == 16 && c.is_valid() && h.is_valid() && backward_state != forward_state, "both ends");
}

void accumulating() {
  df::Graph graph({.seed = 1});
  auto x = df::placeholder<float>(graph, {df::dynamic, 4});
  auto loss = df::reduce_mean(df::square(df::dense(x, 1) - 1.0f));
  auto rows = df::data::from_tensors(df::Tensor<float>::full({64, 4}, 0.5f));
  // [accumulated]
  df::train::AccumulatedGradients accumulated(df::train::Adam(0.01), loss);
  df::train::TrainStep step(df::feeds(x), loss, accumulated.add(), {.update = accumulated.update(), .update_every = 4});
  // [accumulated]
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  auto history = df::train::fit(session, step, rows.batch(8), {.epochs = 20});
  require(history.last("loss") < history.epochs[0].loss(), "accumulated");
}

void mixed_precision() {
  const df::LabelledImages data = bright_rows(256);
  // [mixed_precision]
  df::Graph graph({.seed = 1});
  auto images = df::placeholder<float>(graph, {df::dynamic, 8, 8, 1});
  auto labels = df::placeholder<std::int32_t>(graph, {df::dynamic});
  df::Output<float> hidden;
  {
    df::VariableScope half(graph, "", {.compute = df::DType::float16});  // or bfloat16
    hidden = df::dense(df::flatten(images), 64, {.activation = df::Activation::relu});
  }
  auto logits = df::dense(hidden, 8, {}, {.name = "logits"});  // in float, as the loss
  auto loss = df::reduce_mean(df::sparse_softmax_cross_entropy(logits, labels));
  df::train::LossScaleOptimizer optimizer(df::train::Adam(5e-3));
  auto train = optimizer.minimize(loss);
  // [mixed_precision]
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  auto rows = df::data::from_tensors(data.images, data.labels).shuffle(256, {.seed = 1}).batch(32);
  df::train::TrainStep step(df::feeds(images, labels), loss, train);
  auto history = df::train::fit(session, step, rows, {.epochs = 10});
  require(history.last("loss") < 0.5 * history.epochs[0].loss(), "mixed precision");
  require(session.run(optimizer.good_steps()).scalar() > 0, "steps are made");
}

void in_parts(const std::string& folder) {
  // [parts]
  df::Graph three, two;
  auto w =
      df::partitioned_variable<float>(three, {8, 6}, {.partitioner = df::fixed_size_partitioner(3, 1), .name = "w"});
  df::train::Saver saver(three);
  df::Session session(three);
  session.run(df::initialize_variables(three));
  saver.save(session, folder + "/parts");  // one tensor "w", in three slices

  auto v = df::partitioned_variable<float>(two, {8, 6}, {.partitioner = df::fixed_size_partitioner(2), .name = "w"});
  df::Session other(two);
  df::train::Saver(two).restore(other, folder + "/parts");  // two parts, along the rows
  // [parts]
  require(df::bitwise_equal(other.run(v.as_tensor()), session.run(w.as_tensor())), "parts");
}

}  // namespace

int main() {
  try {
    functions();
    streaming_metrics();
    training();
    shared_by_name();
    fed_training();
    std::string folder = (std::filesystem::temp_directory_path() / "dflow_training_XXXXXX").string();
    require(::mkdtemp(folder.data()) != nullptr, "a folder of its own");
    checkpoints(folder);
    in_parts(folder);
    fitting(folder + "/fit");
    best_of_fit(folder + "/best");
    std::filesystem::remove_all(folder);
    accumulating();
    mixed_precision();
    recurrent();
  } catch (const std::exception& error) {
    std::printf("failed: %s\n", error.what());
    return 1;
  }
}
