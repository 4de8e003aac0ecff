// The snippets of docs/weights.md, one function per section.

#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/dflow.hpp>

#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace df = dflow;

namespace {

void require(bool holds, const char* what) {
  if (!holds) throw df::Error(df::Status::internal(what));
}

df::Tensor<float> numbered(const df::Shape& shape, float step) {
  df::Tensor<float> tensor(shape);
  float next = 0;
  for (float& element : tensor) element = step * next++;
  return tensor;
}

/// What PyTorch's save_file(net.state_dict(), path) writes for the network of the page.
void write_pytorch_file(df::FileSystem& files, const std::string& path) {
  const std::vector<df::NamedTensor> state{{"conv.weight", numbered({4, 1, 3, 3}, 0.01f)},
                                           {"conv.bias", numbered({4}, 0.1f)},
                                           {"norm.weight", numbered({4}, 0.5f)},
                                           {"norm.bias", numbered({4}, 0.1f)},
                                           {"norm.running_mean", numbered({4}, 0.2f)},
                                           {"norm.running_var", numbered({4}, 1)},
                                           {"norm.num_batches_tracked", df::Tensor<std::int64_t>(100)},
                                           {"fc.weight", numbered({10, 4 * 4 * 4}, 1e-3f)},
                                           {"fc.bias", numbered({10}, 0.1f)}};
  df::write_safetensors(files, path, state, {{"format", "pt"}});
}

void pytorch(df::FileSystem& files) {
  write_pytorch_file(files, "model.safetensors");
  // [pytorch]
  df::Graph graph;
  auto images = df::placeholder<float>(graph, {df::dynamic, 6, 6, 1});
  df::Convolution2D conv(4, 3, {.activation = df::Activation::relu, .padding = df::Padding::valid});
  df::BatchNormalization norm({.epsilon = 1e-5});
  df::Dense fc(10);
  auto logits = fc(df::flatten(norm(conv(images), df::Training(false))));

  namespace layout = df::train::layout;
  df::Session session(graph);
  auto file = df::open_saved_tensors(files, "model.safetensors");
  df::train::WeightReport report = df::train::load_weights(
      session, *file,
      {{conv.kernel(), "conv.weight", layout::pytorch_conv2d()},
       {conv.bias(), "conv.bias"},
       {norm.gamma(), "norm.weight"},
       {norm.beta(), "norm.bias"},
       {norm.variable("moving_mean"), "norm.running_mean"},
       {norm.variable("moving_variance"), "norm.running_var"},
       {fc.kernel(), "fc.weight", layout::pytorch_flattened(/*channels=*/4, /*rows=*/4, /*columns=*/4)},
       {fc.bias(), "fc.bias"}});
  for (const std::string& name : report.unused)
    std::printf("not used: %s\n", name.c_str());  // norm.num_batches_tracked
  for (const std::string& name : report.kept) std::printf("not set: %s\n", name.c_str());
  // [pytorch]
  require(report.loaded.size() == 8 && report.unused.size() == 1 && report.kept.empty(), "pytorch");
  const df::Tensor<float> result = session.run({{images, numbered({1, 6, 6, 1}, 0.1f)}}, logits);
  require(result.shape() == df::Shape{1, 10}, "pytorch runs");
}

void keras(df::FileSystem& files) {
  df::write_npz(files, "model.npz",
                std::vector<df::NamedTensor>{{"sequential/dense/kernel", numbered({8, 4}, 0.1f)},
                                             {"sequential/dense/bias", numbered({4}, 0.1f)},
                                             {"sequential/dense_1/kernel", numbered({4, 2}, 0.1f)},
                                             {"sequential/dense_1/bias", numbered({2}, 0.1f)}});
  // [keras]
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {df::dynamic, 8});
  auto y = df::dense(df::dense(x, 4, {.activation = df::Activation::relu}), 2);  // "dense", "dense_1"

  std::vector<df::train::Weight> weights;
  for (const df::AnyVariable& variable : df::trainable_variables(graph)) {
    weights.push_back({variable, "sequential/" + variable.name()});
  }
  df::Session session(graph);
  df::train::load_weights(session, *df::open_saved_tensors(files, "model.npz"), weights, {.allows_unused = false});
  // [keras]
  const df::Tensor<float> bias = session.run(weights[3].variable.read_edge()).as<float>();
  require(bias(1) == 0.1f && session.run({{x, numbered({1, 8}, 1)}}, y).dim(1) == 2, "keras");
}

void fine_tuning(df::FileSystem& files) {
  df::Graph graph;
  auto images = df::placeholder<float>(graph, {df::dynamic, 6, 6, 1});
  df::Convolution2D conv(4, 3, {.padding = df::Padding::valid});
  df::Dense head(3);
  auto logits = head(df::flatten(conv(images)));
  // [fine_tuning]
  df::Session session(graph);
  session.run(df::initialize_variables(graph));  // the new head, and the optimizer's variables
  auto file = df::open_saved_tensors(files, "model.safetensors");
  df::train::load_weights(
      session, *file, {{conv.kernel(), "conv.weight", df::train::layout::pytorch_conv2d()}, {conv.bias(), "conv.bias"}},
      {.converts_floats = true});
  // [fine_tuning]
  require(session.run({{images, numbered({1, 6, 6, 1}, 1)}}, logits).dim(1) == 3, "fine tuning");
}

void recurrent(df::FileSystem& files) {
  df::write_safetensors(files, "lstm.safetensors",
                        std::vector<df::NamedTensor>{{"lstm.weight_ih_l0", numbered({16, 3}, 0.01f)},
                                                     {"lstm.weight_hh_l0", numbered({16, 4}, 0.01f)},
                                                     {"lstm.bias_ih_l0", numbered({16}, 0.01f)},
                                                     {"lstm.bias_hh_l0", numbered({16}, 0.01f)}});
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {df::dynamic, df::dynamic, 3});
  // [recurrent]
  df::LstmCell cell(4, {.forget_bias = 0});
  auto [outputs, state] = df::dynamic_rnn(cell, x);
  df::Session session(graph);
  auto lstm = df::train::layout::pytorch_lstm(/*forget_bias=*/0);  // that of the cell
  df::train::load_weights(session, *df::open_saved_tensors(files, "lstm.safetensors"),
                          {{cell.variable("kernel"), {"lstm.weight_ih_l0", "lstm.weight_hh_l0"}, lstm},
                           {cell.variable("bias"), {"lstm.bias_ih_l0", "lstm.bias_hh_l0"}, lstm}});
  // [recurrent]
  require(session.run({{x, numbered({1, 2, 3}, 0.1f)}}, outputs).dim(2) == 4, "recurrent");
}

void in_memory(df::FileSystem& files) {
  df::write_safetensors(files, "model-00001-of-00002.safetensors",
                        std::vector<df::NamedTensor>{{"fc.weight", numbered({3, 2}, 1)}});
  df::write_safetensors(files, "model-00002-of-00002.safetensors",
                        std::vector<df::NamedTensor>{{"fc.bias", numbered({3}, 1)}});
  df::Graph graph;
  df::Dense fc(3);
  auto y = fc(df::placeholder<float>(graph, {df::dynamic, 2}));
  df::Session session(graph);
  // [held]
  std::vector<df::NamedTensor> tensors;
  for (const char* path : {"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"}) {
    for (df::NamedTensor& one : df::read_safetensors(files, path)) tensors.push_back(std::move(one));
  }
  df::train::load_weights(session, *df::held_tensors(tensors, "model"),
                          {{fc.kernel(), "fc.weight", df::train::layout::transposed()}, {fc.bias(), "fc.bias"}});
  // [held]
  df::Tensor<float> kernel = numbered({2, 3}, 1), bias = numbered({3}, 1);
  // [assign]
  df::train::assign(session, {{fc.kernel(), kernel}, {fc.bias(), bias}});
  // [assign]
  require(bitwise_equal(session.run(fc.kernel().read_edge()), kernel) && y.is_valid(), "assign");
}

void restore() {
  df::PosixFileSystem files;
  files.create_directories("weights_snippet");
  df::write_npz(files, "weights_snippet/model.npz", std::vector<df::NamedTensor>{{"w", numbered({2, 3}, 1)}});
  // [restore]
  df::Graph graph;
  df::Variable<float> w(graph, df::Tensor<float>(df::Shape{2, 3}), {.name = "weights"});
  df::train::Saver saver(graph, {{"w", w.any_variable()}});  // under the names that the file has
  df::Session session(graph);
  saver.restore(session, "weights_snippet/model.npz");  // each task reads its variables itself
  // [restore]
  require(session.run(w)(1, 2) == 5, "restore");
  files.remove("weights_snippet/model.npz");
  files.remove("weights_snippet");
}

}  // namespace

int main() {
  df::MemoryFileSystem files;
  pytorch(files);
  keras(files);
  fine_tuning(files);
  recurrent(files);
  in_memory(files);
  restore();
}
