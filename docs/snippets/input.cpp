// The snippets of docs/input.md, one function per section.

#include <dflow/dflow.hpp>
#include <dflow/io/records/example.hpp>
#include <dflow/io/records/record_file.hpp>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace df = dflow;

namespace {

void require(bool holds, const char* what) {
  if (!holds) throw df::Error(df::Status::internal(what));
}

/// Two files of three records each: pixels [2] and a label.
std::vector<std::string> record_files(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  df::PosixFileSystem system;
  std::vector<std::string> paths;
  for (int file = 0; file < 2; ++file) {
    paths.push_back((folder / ("part-" + std::to_string(file) + ".tfrecord")).string());
    df::RecordWriter writer(system, paths.back());
    for (int i = 0; i < 3; ++i) {
      df::Example example;
      example.features["pixels"] = df::Feature::of_floats({static_cast<float>(file), static_cast<float>(i)});
      example.features["label"] = df::Feature::of_integers({3 * file + i});
      writer.write(df::serialize(example));
    }
    writer.close();
  }
  return paths;
}

void csv(const std::string& path) {
  std::ofstream(path) << "x,y,label\n0,1,1\n1,0,0\n2,3,1\n3,2,0\n";
  // [csv]
  df::Graph graph({.seed = 1});
  auto names = df::train::string_input_producer(graph, {path}, {});  // again and again
  df::TextLineReader reader(graph, {.skip_header_lines = 1});
  auto line = std::get<1>(reader.read(names));
  auto [x, y, label] = df::decode_csv(
      line, std::tuple{df::CsvField<float>{0.0f}, df::CsvField<float>{0.0f}, df::CsvField<std::int32_t>{}});
  auto [inputs, labels] = df::train::batch(std::tuple{df::pack<float>({x, y}), label}, 4, {});  // [4, 2], [4]
  auto loss = df::reduce_mean(df::sparse_softmax_cross_entropy(df::dense(inputs, 2), labels));
  auto train = df::train::Adam(0.1f).minimize(loss);

  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  df::train::Coordinator coordinator;
  df::train::start_queue_runners(session, graph, coordinator);  // without them the first step waits for ever
  float last = 0;
  for (int step = 0; step < 50 && !coordinator.should_stop(); ++step) last = session.run(loss, train).scalar();
  coordinator.request_stop();  // early: the runners end where they are
  coordinator.join();
  // [csv]
  require(last < 0.6f, "csv");
}

void readers(const std::vector<std::string>& paths) {
  // [readers]
  df::Graph graph;
  df::FifoQueue<std::string> names(graph, {.capacity = 100, .shapes = {{}}});
  auto name = df::placeholder<std::string>(graph, {});
  auto put = names.enqueue(name), end = names.close();
  df::TFRecordReader reader(graph);
  auto [key, record] = reader.read(names);  // "part-0.tfrecord:0" and the bytes
  auto count = reader.num_records_produced();

  df::Session session(graph);
  for (const std::string& path : paths) session.run({{name, df::Tensor<std::string>(path)}}, put);
  session.run(end);
  auto [first_key, first] = session.run(key, record);
  // [readers]
  require(first_key.scalar().ends_with("part-0.tfrecord:0") && !first.scalar().empty(), "a record");
  for (int i = 1; i < 6; ++i) session.run(record);
  require(session.run(count).scalar() == 6, "all records");
  try {
    session.run(record);
    require(false, "the end");
  } catch (const df::Error& error) {
    require(error.code() == df::Code::out_of_range, "the end");
  }
}

void pipeline(const std::vector<std::string>& files) {
  // [pipeline]
  df::Graph graph({.seed = 1});
  auto names = df::train::string_input_producer(graph, files, {.num_epochs = 4});
  df::TFRecordReader reader(graph);
  auto record = std::get<1>(reader.read(names));
  auto records = df::train::shuffle_batch(record, 3, {.capacity = 20, .min_after_dequeue = 5});
  auto [pixels, label] = df::parse_example(
      records, std::tuple{df::FixedLenFeature<float>{"pixels", {2}}, df::FixedLenFeature<std::int64_t>{"label"}});
  auto loss = df::reduce_mean(df::sparse_softmax_cross_entropy(df::dense(pixels, 6), df::cast<std::int32_t>(label)));
  auto train = df::train::GradientDescent(0.1f).minimize(loss);

  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  df::train::Coordinator coordinator;
  df::train::start_queue_runners(session, graph, coordinator);
  int steps = 0;
  try {
    while (!coordinator.should_stop()) {
      session.run(train);
      ++steps;
    }
  } catch (const df::Error& error) {
    if (error.code() != df::Code::out_of_range) throw;  // the files have been read as often as was said
  }
  coordinator.request_stop();
  coordinator.join();  // throws what went wrong in a runner
  // [pipeline]
  require(steps == 8, "steps");
}

}  // namespace

int main() {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "dflow_snippets_input";
  const std::vector<std::string> paths = record_files(folder);
  csv((folder / "rows.csv").string());
  readers(paths);
  pipeline(paths);
  std::filesystem::remove_all(folder);
}
