// The snippets of docs/shipping.md, one function per section.

#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/dflow.hpp>
#include <dflow/models/models.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <vector>

namespace df = dflow;

namespace {

void require(bool holds, const char* what) {
  if (!holds) throw df::Error(df::Status::internal(what));
}

const std::string folder = "shipping_snippet";
const df::Tensor<float> some_images = df::Tensor<float>::full({2, 8, 8, 1}, 0.5f);

void train_and_save() {
  // [save]
  df::Graph graph;
  auto images = df::placeholder<float>(graph, {df::dynamic, 8, 8, 1});
  auto labels = df::placeholder<std::int32_t>(graph, {df::dynamic});
  auto hidden = df::dense(df::flatten(images), 128, {.activation = df::Activation::relu});
  auto logits = df::dense(hidden, 10);
  auto digit = df::argmax(logits, 1);
  auto loss = df::reduce_mean(df::sparse_softmax_cross_entropy(logits, labels));
  auto train = df::train::Adam(2e-3f).minimize(loss);

  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  // ... run `train` for a while ...
  df::models::save(folder + "/digits", session,
                   {.signatures = {{"serving_default", {{"images", images}}, {{"logits", logits}, {"digit", digit}}}},
                    .metadata = {{"version", "1"}}});
  // [save]
  session.run({{images, some_images}, {labels, df::Tensor<std::int32_t>({2}, {3, 4})}}, train);
}

void run_by_names() {
  // [load]
  df::Model model = df::models::load(folder + "/digits");
  df::PreparedModel predict = model.prepare("serving_default");
  df::NamedTensors out = predict({{"images", some_images}});
  std::int64_t first = out.get<std::int64_t>("digit")(0);
  // [load]
  require(first >= 0 && first < 10, "a digit");

  // [list]
  for (const df::Signature& signature : model.signatures()) {
    std::printf("%s\n", signature.name.c_str());
    for (const auto& [name, edge] : signature.inputs) {
      std::printf("  takes %s: %s %s\n", name.c_str(), std::string(df::dtype_name(edge.dtype())).c_str(),
                  edge.shape().to_string().c_str());
    }
  }
  // [list]

  // [options]
  using namespace std::chrono_literals;
  const std::vector<df::NamedTensor> inputs{{"images", some_images}};
  df::NamedTensors within = predict.run({.deadline = 50ms}, nullptr, inputs);

  std::promise<void> is_done;
  predict.run_async({.deadline = 50ms}, inputs, [&](const df::Status& status, std::vector<df::AnyTensor> outputs) {
    // called once, by another thread; the outputs are in the order of the signature: "logits", "digit"
    std::puts(status.ok() ? outputs[1].to_string().c_str() : status.to_string().c_str());
    is_done.set_value();
  });
  // [options]
  is_done.get_future().wait();
  require(within.size() == 2, "results within the deadline");
}

void train_on() {
  // [train]
  df::Model model = df::models::load(folder + "/digits", {.trainable = true});
  auto images = model.input<float>("images");
  auto logits = model.output<float>("logits");
  auto labels = df::placeholder<std::int32_t>(model.graph(), {df::dynamic});
  auto loss = df::reduce_mean(df::sparse_softmax_cross_entropy(logits, labels));
  auto train = df::train::Adam(1e-4f).minimize(loss);

  df::Session session(model.graph());
  session.run(df::initialize_variables(model.graph()));  // the model's values, and the optimizer's first values
  session.run({{images, some_images}, {labels, df::Tensor<std::int32_t>({2}, {3, 4})}}, train);
  df::models::save(folder + "/digits", session, {.signatures = model.signatures(), .metadata = model.metadata()});
  // [train]
}

void freeze_and_prune() {
  // [freeze]
  df::Graph graph;
  auto images = df::placeholder<float>(graph, {df::dynamic, 8, 8, 1});
  auto code = df::dense(df::flatten(images), 16);
  auto again = df::dense(code, 64);
  df::Session session(graph);
  session.run(df::initialize_variables(graph));

  df::Model model(
      session, {{"encode", {{"images", images}}, {{"code", code}}}, {"decode", {{"code", code}}, {{"images", again}}}});
  df::Model encoder = df::models::freeze(df::models::prune(model, {"encode"}));
  df::models::save(folder + "/encoder", encoder);
  df::PosixFileSystem files;
  df::save_graph(files, folder + "/encoder.graph", df::to_graph_def(encoder.graph()));  // as one file
  // [freeze]
  const df::NamedTensors out = df::models::load(folder + "/encoder").prepare("encode")({{"images", some_images}});
  require(df::bitwise_equal(out["code"], session.run({{images, some_images}}, code)), "the same code");
}

void small_program() {
  // [small]
  constexpr auto ops = df::ops<df::Placeholder, df::Const, df::Identity, df::Reshape, df::MatMul, df::BiasAdd, df::Relu,
                               df::ArgMax>;  // links the kernels of these ops and no others
  const df::Model model =
      df::models::load(folder + "/digits", {.session = {.ops = ops, .pool = std::make_shared<df::InlinePool>()}});
  const df::PreparedModel predict = model.prepare("serving_default");
  // [small]
  require(predict({{"images", some_images}}).size() == 2, "results of the short list of ops");
}

void versions() {
  // [versions]
  const auto load = [](int version) {
    const std::string path = folder + "/versions/" + std::to_string(version);
    return std::make_shared<const df::PreparedModel>(df::models::load(path).prepare("serving_default"));
  };
  std::atomic<std::shared_ptr<const df::PreparedModel>> current = load(1);
  // each request, in any thread:
  df::NamedTensors out = (*current.load())({{"images", some_images}});
  // when folder 2 is there, in any thread:
  current.store(load(2));
  // [versions]
  require(out.size() == 2 && (*current.load())({{"images", some_images}}).size() == 2, "results of both versions");
}

}  // namespace

int main() {
  try {
    std::filesystem::remove_all(folder);
    train_and_save();
    run_by_names();
    train_on();
    freeze_and_prune();
    small_program();
    for (const char* version : {"1", "2"}) {
      df::models::save(folder + "/versions/" + version, df::models::load(folder + "/digits"));
    }
    versions();
    std::filesystem::remove_all(folder);
    std::puts("ok");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "shipping: %s\n", error.what());
    return 1;
  }
}
