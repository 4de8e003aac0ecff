// Records of images read, parsed, shuffled and batched, alone and beside training; a side of `benchmarks/contest.py
// input`.
// usage: bench_contest_input THREADS
//        bench_contest_input THREADS waits [TRACE]    trains for some seconds, and tells how much of it was waiting for
//                                                     input; TRACE: a file for some steps more in the Trace Event
//                                                     Format
//        bench_contest_input THREADS records          reads and checks records of several sizes from the disk cache,
//                                                     beside a copy of the file's bytes out of it
#include <dflow/dflow.hpp>
#include <dflow/io/records/example.hpp>
#include <dflow/io/records/example_parser.hpp>
#include <dflow/io/records/record_file.hpp>
#include <dflow/trace/chrome_trace.hpp>

#include "contestant.hpp"

#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>

namespace df = dflow;

namespace {

using Row = std::pair<df::Tensor<float>, df::Tensor<std::int32_t>>;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t num_records = 20000, num_pixels = 784, batch = 64, shuffled = 2000;

/// A file of as many Examples, with bytes as pixels and a class each.
class RecordsFile {
 public:
  RecordsFile()
      : path_((std::filesystem::temp_directory_path() / ("dflow_input_" + std::to_string(getpid()))).string()) {
    df::PosixFileSystem files;
    df::RecordWriter writer(files, path_);
    std::mt19937 random(1);
    for (std::int64_t i = 0; i < num_records; ++i) {
      std::string pixels(num_pixels, '\0');
      for (char& pixel : pixels) pixel = static_cast<char>(random());
      df::Example example;
      example.features["image"] = df::Feature::of_text(std::move(pixels));
      example.features["label"] = df::Feature::of_integers({static_cast<std::int64_t>(random() % 10)});
      writer.write(df::serialize(example));
    }
    writer.close();
  }
  RecordsFile(const RecordsFile&) = delete;
  RecordsFile& operator=(const RecordsFile&) = delete;
  ~RecordsFile() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

Row parsed(const std::string& record) {
  static const df::FeaturesSpec spec{
      .dense = {{"image", df::DType::string, {}, {}}, {"label", df::DType::int64, {}, {}}}, .sparse = {}};
  const df::ParsedFeatures features = df::parse_single_example(record, spec);
  const std::string& bytes = *df::Tensor<std::string>::of(features.dense[0]).data();
  df::Tensor<float> image({num_pixels});
  std::transform(bytes.begin(), bytes.end(), image.begin(),
                 [](char pixel) { return static_cast<float>(static_cast<unsigned char>(pixel)) / 255.0f; });
  return {std::move(image),
          df::Tensor<std::int32_t>(static_cast<std::int32_t>(*df::Tensor<std::int64_t>::of(features.dense[1]).data()))};
}

/// Batches without an end, a few of them ahead in threads of their own.
auto batches_of(const std::string& path) {
  const auto begin = [path] {
    auto files = std::make_shared<df::PosixFileSystem>();
    auto reader = std::make_shared<df::RecordReader>(*files, path);
    return [files, reader]() -> std::optional<std::string> {
      std::string record;
      return reader->next(record) ? std::optional(std::move(record)) : std::nullopt;
    };
  };
  return df::data::from_generator(begin)
      .repeat()
      .shuffle(shuffled, {.seed = 1})
      .map(parsed)
      .batch(batch, {.drop_remainder = true})
      .prefetch(4);
}

struct Training {
  explicit Training(int threads) : session(nullptr) {
    x = df::placeholder<float>(graph, {batch, num_pixels});
    y = df::placeholder<std::int32_t>(graph, {batch});
    const auto relu = df::Activation::relu;
    const auto hidden = df::dense(df::dense(x, 512, {.activation = relu}), 512, {.activation = relu});
    loss = df::reduce_mean(df::sparse_softmax_cross_entropy(df::dense(hidden, 10), y));
    train = df::train::GradientDescent(0.01f).minimize(loss);
    session = std::make_unique<df::Session>(graph, df::SessionOptions{.num_threads = threads});
    session->run(df::initialize_variables(graph));
  }
  auto prepared() const { return session->prepare(df::feeds(x, y), df::fetches(loss, train)); }

  df::Graph graph{{.seed = 1}};
  df::Output<float> x, loss;
  df::Output<std::int32_t> y;
  df::Operation train;
  std::unique_ptr<df::Session> session;
};

int tell_waits(const std::string& path, int threads, const std::string& trace) {
  auto data = batches_of(path);
  auto iterator = data.iterate();
  const Training training(threads);
  auto step = training.prepared();
  for (int i = 0; i < 20; ++i) {
    auto rows = *iterator.next();
    step(std::get<0>(rows), std::get<1>(rows));
  }
  std::chrono::duration<double> waited{}, trained{};
  while (waited + trained < std::chrono::seconds(5)) {
    const auto begin = Clock::now();
    auto rows = *iterator.next();
    const auto got = Clock::now();
    step(std::get<0>(rows), std::get<1>(rows));
    waited += got - begin;
    trained += Clock::now() - got;
  }
  std::printf("waited for input %.2f %% of the time\n", 100 * waited / (waited + trained));
  if (trace.empty()) return 0;
  // Some steps more, each node of them and each wait in one trace.
  df::StepStats all;
  const auto began = Clock::now();
  const auto since_began = [&](Clock::time_point t) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(t - began).count();
  };
  for (int i = 0; i < 12; ++i) {
    const auto asked = Clock::now();
    auto rows = *iterator.next();
    const auto got = Clock::now();
    all.nodes.push_back({"wait for a batch", "wait", "input", since_began(asked), since_began(got), 0, 0, ""});
    df::RunMetadata metadata;
    training.session->run({.trace = true}, &metadata,
                          {{training.x, std::get<0>(rows)}, {training.y, std::get<1>(rows)}}, training.train);
    all.nodes.push_back({"step", "step", "input", since_began(got), since_began(Clock::now()), 0, 0, ""});
    for (df::NodeStats node : metadata.stats.nodes) {
      node.start_ns += since_began(got);
      node.end_ns += since_began(got);
      all.nodes.push_back(std::move(node));
    }
  }
  std::ofstream(trace) << df::chrome_trace(all);
  return 0;
}

/// Files of 256 MB; each in turn with a copy of its bytes out of the disk cache, a MiB at a time, to an address that
/// suits it. The best of the turns of each.
int tell_records() {
  constexpr std::size_t file_size = std::size_t{1} << 28, copied_at_once = std::size_t{1} << 20;
  constexpr int num_turns = 15;
  const auto seconds = [](const auto& run) {
    const auto start = Clock::now();
    run();
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  for (const std::size_t size : {std::size_t{128}, std::size_t{784}, std::size_t{16'384}, std::size_t{1'048'576}}) {
    const std::string path =
        (std::filesystem::temp_directory_path() / ("dflow_records_" + std::to_string(getpid()))).string();
    df::PosixFileSystem files;
    {
      df::RecordWriter writer(files, path);
      std::string record(size, '\0');
      std::mt19937 random(1);
      for (char& each : record) each = static_cast<char>(random());
      for (std::size_t written = 0; written < file_size; written += size) writer.write(record);
      writer.close();
    }
    std::vector<double> copies, reads, reads_ahead;
    df::FileBuffer buffer(copied_at_once);
    for (int turn = 0; turn < num_turns; ++turn) {
      copies.push_back(seconds([&] {
        std::FILE* const file = std::fopen(path.c_str(), "rb");
        std::setvbuf(file, nullptr, _IONBF, 0);
        while (std::fread(buffer.at(0), 1, buffer.size(), file) == buffer.size()) {
        }
        std::fclose(file);
      }));
      for (const bool is_ahead : {false, true}) {
        (is_ahead ? reads_ahead : reads).push_back(seconds([&] {
          df::RecordReader reader(files, path, {.reads_ahead = is_ahead});
          std::string_view record;
          while (reader.next_view(record)) {
          }
        }));
      }
    }
    std::filesystem::remove(path);
    const auto best = [](const std::vector<double>& all) { return *std::min_element(all.begin(), all.end()); };
    const double copy = best(copies), read = best(reads), read_ahead = best(reads_ahead),
                 gigabytes = static_cast<double>(file_size) / 1e9;
    std::printf("records of %7zu bytes: copied %5.2f GB/s, read in one thread %.2f of it, read ahead %.2f (must 0.8)\n",
                size, gigabytes / copy, copy / read, copy / read_ahead);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
  if (argc > 2 && std::string_view(argv[2]) == "records") return tell_records();
  const RecordsFile records;
  if (argc > 2 && std::string_view(argv[2]) == "waits") {
    return tell_waits(records.path(), threads, argc > 3 ? argv[3] : "");
  }
  df::bench::Contestant rows;
  rows.row("batches of 64 records", [&] {
    auto iterator = std::make_shared<decltype(batches_of("").iterate())>(batches_of(records.path()).iterate());
    return [iterator] { static_cast<void>(iterator->next()); };
  });
  rows.row("mlp sgd from records", [&] {
    auto iterator = std::make_shared<decltype(batches_of("").iterate())>(batches_of(records.path()).iterate());
    auto training = std::make_shared<Training>(threads);
    auto step = std::make_shared<decltype(training->prepared())>(training->prepared());
    return [iterator, training, step] {
      auto got = *iterator->next();
      (*step)(std::get<0>(got), std::get<1>(got));
    };
  });
  return rows.serve();
}
