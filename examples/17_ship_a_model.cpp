// Trains on handwritten digits, saves the model, and answers with it as a program would that has only the folder:
//   ship_a_model [FOLDER]
// The second half needs none of the first: no layers, no optimizer, no variables, and only the ops that it names.

#include <dflow/dflow.hpp>
#include <dflow/models/models.hpp>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <string>

namespace df = dflow;

namespace {

/// Returns the accuracy on `test`.
float train_and_save(const df::LabelledImages& data, const df::LabelledImages& test, const std::string& folder) {
  df::Graph graph({.seed = 1});
  auto images = df::placeholder<float>(graph, {df::dynamic, 8, 8, 1});
  auto labels = df::placeholder<std::int32_t>(graph, {df::dynamic});
  auto hidden = df::dense(df::flatten(images), 128, {.activation = df::Activation::relu});
  auto logits = df::dense(hidden, 10);
  auto loss = df::reduce_mean(df::sparse_softmax_cross_entropy(logits, labels));
  auto train = df::train::Adam(2e-3f).minimize(loss);
  auto accuracy = df::accuracy(logits, labels);

  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  df::train::Minibatches batches(data.size(), 64);
  for (std::int64_t i = 0; i < 20 * batches.per_epoch(); ++i) {
    const auto rows = batches.next();
    session.run({{images, df::train::rows_of(data.images, rows)}, {labels, df::train::rows_of(data.labels, rows)}},
                train);
  }
  df::models::save(folder, session,
                   {.signatures = {{"serving_default", {{"images", images}}, {{"digit", df::argmax(logits, 1)}}}},
                    .metadata = {{"version", "1"}, {"trained_on", "optdigits"}}});
  return session.run({{images, test.images}, {labels, test.labels}}, accuracy).scalar();
}

/// Returns how many of the images the model in the folder reads right.
std::int64_t count_right(const df::LabelledImages& test, const std::string& folder) {
  constexpr auto ops =
      df::ops<df::Placeholder, df::Const, df::Identity, df::Reshape, df::MatMul, df::BiasAdd, df::Relu, df::ArgMax>;
  const df::Model model =
      df::models::load(folder, {.session = {.ops = ops, .pool = std::make_shared<df::InlinePool>()}});
  const df::PreparedModel predict = model.prepare("serving_default");
  const auto digits = predict({{"images", test.images}}).get<std::int64_t>("digit");
  std::int64_t right = 0;
  for (std::int64_t i = 0; i < test.size(); ++i) right += digits(i) == test.labels(i);
  return right;
}

int run(const std::string& folder) {
  df::PosixFileSystem files;
  const auto all = df::read_digits(files, DFLOW_EXAMPLES_DATA_DIR "/optdigits.csv.gz");
  const auto data = df::slice(all, 0, all.size() * 4 / 5), test = df::slice(all, data.size(), all.size());
  const float accuracy = train_and_save(data, test, folder);
  const std::int64_t right = count_right(test, folder);
  std::printf("trained: test accuracy %.4f\n", static_cast<double>(accuracy));
  std::printf("shipped: %lld of %lld are right, test accuracy %.4f\n", static_cast<long long>(right),
              static_cast<long long>(test.size()), static_cast<double>(right) / static_cast<double>(test.size()));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc > 1) return run(argv[1]);
    const auto folder = std::filesystem::temp_directory_path() / "dflow_shipped_digits";
    const int result = run(folder.string());
    std::filesystem::remove_all(folder);
    return result;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ship_a_model: %s\n", error.what());
    return 1;
  }
}
