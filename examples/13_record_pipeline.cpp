// Trains from record files. They are written once, then read, parsed, shuffled and batched in threads of their own
// while the model trains:
//   record_pipeline [FOLDER]
// The folder keeps the files; without a folder they go at the end. The program tells how long training waited for its
// input.

#include <dflow/dflow.hpp>
#include <dflow/io/labelled_images.hpp>
#include <dflow/io/records/example.hpp>
#include <dflow/io/records/example_parser.hpp>
#include <dflow/io/records/record_file.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace df = dflow;

namespace {

using Clock = std::chrono::steady_clock;
constexpr int num_epochs = 6;
using Row = std::pair<df::Tensor<float>, df::Tensor<std::int32_t>>;

/// Digits as records of named features, in files of a thousand.
std::vector<std::string> write_records(const std::filesystem::path& folder) {
  df::PosixFileSystem files;
  const auto digits = df::read_digits(files, DFLOW_EXAMPLES_DATA_DIR "/optdigits.csv.gz");
  constexpr std::int64_t per_file = 1000;
  std::vector<std::string> paths;
  for (std::int64_t begin = 0; begin < digits.size(); begin += per_file) {
    paths.push_back((folder / ("digits-" + std::to_string(begin / per_file) + ".tfrecord")).string());
    if (std::filesystem::exists(paths.back())) continue;
    df::RecordWriter writer(files, paths.back());
    for (std::int64_t i = begin; i < std::min(begin + per_file, digits.size()); ++i) {
      const auto pixels = digits.images.span().subspan(static_cast<std::size_t>(i * 64), 64);
      df::Example example;
      example.features["pixels"] = df::Feature::of_floats({pixels.begin(), pixels.end()});
      example.features["label"] = df::Feature::of_integers({digits.labels(i)});
      writer.write(df::serialize(example));
    }
    writer.close();
  }
  return paths;
}

Row parsed(const std::string& record) {
  const df::FeaturesSpec spec{.dense = {{"pixels", df::DType::float32, {64}, {}}, {"label", df::DType::int64, {}, {}}},
                              .sparse = {}};
  const df::ParsedFeatures features = df::parse_single_example(record, spec);
  const auto label = static_cast<std::int32_t>(*df::Tensor<std::int64_t>::of(features.dense[1]).data());
  return {df::Tensor<float>::of(features.dense[0]), df::Tensor<std::int32_t>(label)};
}

/// The records of a file, read from its beginning for each pass.
df::data::Dataset<std::string> records_of(const std::string& path) {
  return df::data::from_generator([path] {
    auto files = std::make_shared<df::PosixFileSystem>();
    auto reader = std::make_shared<df::RecordReader>(*files, path);
    return [files, reader]() -> std::optional<std::string> {
      std::string record;
      return reader->next(record) ? std::optional(std::move(record)) : std::nullopt;
    };
  });
}

int run(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  const auto rows = df::data::from_vector(write_records(folder))
                        .shuffle(16, {.seed = 1})
                        .interleave(records_of, {.cycle = 4})
                        .repeat(num_epochs)
                        .shuffle(500, {.seed = 2})
                        .map(parsed, {.threads = 2})
                        .batch(64)
                        .prefetch(8);

  df::Graph graph({.seed = 1});
  auto images = df::placeholder<float>(graph, {df::dynamic, 64});
  auto labels = df::placeholder<std::int32_t>(graph, {df::dynamic});
  auto hidden = df::dense(df::dense(images, 256, {.activation = df::Activation::relu}), 256,
                          {.activation = df::Activation::relu});
  auto logits = df::dense(hidden, 10);
  auto loss = df::reduce_mean(df::sparse_softmax_cross_entropy(logits, labels));
  auto train = df::train::Adam(1e-3f).minimize(loss);
  auto accuracy = df::accuracy(logits, labels);

  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  auto step = session.prepare(df::feeds(images, labels), df::fetches(accuracy, train));
  df::data::Iterator batches = rows.iterate();
  std::chrono::duration<double> waited{}, total{};
  double right = 0, last = 0;
  constexpr int stretch = 28;
  for (int i = 1;; ++i) {
    const auto begin = Clock::now();
    auto batch = batches.next();
    const auto got = Clock::now();
    if (!batch) break;
    if (i % stretch == 1) right = 0;
    right += static_cast<double>(step(std::get<0>(*batch), std::get<1>(*batch)).scalar()) / stretch;
    if (i > 1) {  // the first batch waits for the records to choose from
      waited += got - begin;
      total += Clock::now() - begin;
    }
    if (i % stretch != 0) continue;
    std::printf("%4d batches: %.1f %% right\n", i, 100 * right);
    last = right;
  }
  std::printf("waited for input %.1f %% of the time\n", 100 * waited / total);
  return last > 0.85 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const auto folder =
      argc > 1 ? std::filesystem::path(argv[1]) : std::filesystem::temp_directory_path() / "dflow_records";
  try {
    const int status = run(folder);
    if (argc == 1) std::filesystem::remove_all(folder);
    return status;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "record_pipeline: %s\n", error.what());
    return 1;
  }
}
