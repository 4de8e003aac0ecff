// The snippets of docs/records.md and docs/tensorboard.md, one function per section.

#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/dflow.hpp>
#include <dflow/io/records/example.hpp>
#include <dflow/io/records/example_parser.hpp>
#include <dflow/io/records/record_file.hpp>
#include <dflow/trace/events/event_file.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <tuple>
#include <variant>
#include <vector>

namespace df = dflow;

namespace {

void require(bool holds, const char* what) {
  if (!holds) throw df::Error(df::Status::internal(what));
}

void records(df::FileSystem& files) {
  // [write]
  df::RecordWriter writer(files, "train.tfrecord");  // {.compression = df::RecordCompression::gzip} compresses it
  for (int label = 0; label < 4; ++label) {
    df::Example example;
    example.features["pixels"] = df::Feature::of_floats({0.5f, 0.25f});
    example.features["label"] = df::Feature::of_integers({label});
    example.features["words"] = df::Feature::of_texts(std::vector<std::string>(label, "word"));
    writer.write(df::serialize(example));
  }
  writer.close();  // throws if the disk is full; the destructor would keep it to itself
  // [write]

  // [read]
  df::RecordReader reader(files, "train.tfrecord");
  std::string record;
  std::vector<std::string> batch;
  while (batch.size() < 3 && reader.next(record)) batch.push_back(record);
  const std::uint64_t position = reader.tell();  // later, perhaps in another process:
  reader.seek(position);
  const df::Example last = df::parse_example(reader.read());  // OutOfRange if there were no more
  // [read]

  // [dataset]
  auto labels = df::data::from_records(files, {"train.tfrecord"}).map([](const std::string& bytes) {
    return df::parse_example(bytes).features.at("label").integers()[0];
  });
  auto batches = labels.batch(2).iterate();
  df::Tensor<std::int64_t> first = *batches.next();  // [2]
  std::string state = batches.state();               // holds file and offset: labels.batch(2).iterate().restore(state)
  // [dataset]
  require(first(1) == 1 && !state.empty(), "a dataset of records");
  require(last.features.at("label").integers()[0] == 3, "the last label");

  // [parse]
  auto [dense, sparse] = df::parse_examples(
      batch, {.dense = {{"pixels", df::DType::float32, {2}, {}},
                        {"label", df::DType::int64, {}, {}},
                        {"weight", df::DType::float32, {}, df::Tensor<float>(1.0f)}},  // has a default: may be missing
              .sparse = {{"words", df::DType::string}}});
  df::Tensor<float> pixels = dense[0].as<float>();               // [3, 2]
  df::Tensor<std::int64_t> label = dense[1].as<std::int64_t>();  // [3]
  df::SparseValues words = sparse[0];                            // indices [3, 2], values [3], dense_shape [3, 2]
  // [parse]
  require(pixels.dim(0) == 3 && label(2) == 2 && dense[2].as<float>()(1) == 1 && words.values.dim(0) == 3, "a batch");

  // [errors]
  try {
    df::parse_examples(batch, {.dense = {{"label", df::DType::float32, {}, {}}}, .sparse = {}});
  } catch (const df::Error& error) {
    std::puts(error.what());  // INVALID_ARGUMENT: example 0: feature 'label': its values are int64, expected is float
  }
  // [errors]
}

void sequences() {
  // [sequence]
  df::SequenceExample sentence;
  sentence.context["language"] = df::Feature::of_text("en");
  sentence.feature_lists["tokens"] = {df::Feature::of_integers({4}), df::Feature::of_integers({5, 6})};
  auto [context, lists] = df::parse_single_sequence_example(
      df::serialize(sentence), {.dense = {{"language", df::DType::string, {}, {}}}, .sparse = {}},
      {.dense = {}, .sparse = {{"tokens", df::DType::int64}}});
  df::Tensor<std::int64_t> tokens = lists.sparse[0].values.as<std::int64_t>();  // [3], at [[0,0], [1,0], [1,1]]
  // [sequence]
  require(tokens(2) == 6 && context.dense[0].as<std::string>().scalar() == "en", "a sequence");
}

void events(df::FileSystem& files) {
  df::Graph graph;
  auto x = df::constant(graph, df::Tensor<float>({2, 2}, {1, 2, 3, 4}), {.name = "x"});
  auto y = df::matmul(x, x, {}, {.name = "y"});
  // [events]
  df::RealClock clock;
  df::EventWriter events(files, "logs/run1", clock);
  events.add_graph(graph);
  for (int step = 0; step < 100; ++step) {
    events.add_scalar("train/loss", 1.0 / (step + 1), step);
  }
  events.add_histogram("layer1/weights", df::Tensor<float>({3}, {-1, 0, 1}), 99);
  events.add_image("input", df::Tensor<float>::zeros({28, 28, 1}), 99);
  events.add_text("notes", "learning rate *halved*", 99);
  events.flush();  // what is written can be looked at; without it that happens every two minutes, and by `close`
  // [events]

  // [trace]
  df::Session session(graph);
  df::RunMetadata metadata;
  session.run({.trace = true}, &metadata, {}, y);
  events.add_run_metadata("step 99", metadata.stats, 99);
  // [trace]

  // [hyperparameters]
  events.add_hyperparameters(
      {.values = {{"learning_rate", 0.1}, {"optimizer", std::string("adam")}}, .metrics = {"train/loss"}, .group = {}});
  events.add_hyperparameters_end(/*has_succeeded=*/true);
  // [hyperparameters]

  // [restart]
  events.add_checkpoint("logs/run1/model-99", 99);
  events.close();
  df::EventWriter again(files, "logs/run1", clock);  // after a crash, from the checkpoint of step 50:
  again.add_start(51);                               // TensorBoard drops what was said of this step and later ones
  // [restart]
  again.close();

  // [event_reader]
  for (const std::string& path : df::event_files(files, "logs/run1")) {
    df::EventReader reader(files, path);
    while (std::optional<df::Event> event = reader.next()) {
      const auto* summary = std::get_if<df::Summary>(&event->content);
      if (summary == nullptr) continue;
      for (const df::SummaryValue& value : summary->values) {
        if (const float* scalar = std::get_if<float>(&value.value)) {
          std::printf("%s of step %lld: %g\n", value.tag.c_str(), static_cast<long long>(event->step), *scalar);
        }
      }
    }
  }
  // [event_reader]
  require(df::event_files(files, "logs/run1").size() == 2, "event files");
}

df::data::Dataset<std::tuple<df::Tensor<float>, df::Tensor<float>>> rows_of_a_line() {
  df::Tensor<float> inputs({64, 1}), wanted({64, 1});
  for (int i = 0; i < 64; ++i) {
    inputs.data()[i] = static_cast<float>(i) / 64;
    wanted.data()[i] = 2 * inputs.data()[i] + 1;
  }
  return df::data::from_tensors(inputs, wanted).batch(8);
}

void summaries(df::FileSystem& files) {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {df::dynamic, 1});
  auto wanted = df::placeholder<float>(graph, {df::dynamic, 1});
  df::Dense line(1);
  auto y = line(x);
  auto loss = df::reduce_mean((y - wanted) * (y - wanted));
  // [summary_ops]
  df::scalar_summary("train/loss", loss);
  df::histogram_summary("weights", df::Variable<float>(line.kernel()));
  df::text_summary("first", df::as_string(df::slice(y, {0, 0}, {1, 1})));
  df::Output<std::string> all = df::merge_all_summaries(graph);
  // [summary_ops]
  df::Variable<std::int64_t> global_step(graph, 0, {.name = "global_step", .trainable = false});
  auto train = df::train::GradientDescent(0.1f).minimize(loss, {.global_step = global_step});
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  df::RealClock clock;
  df::EventWriter events(files, "logs/run2", clock);
  df::Tensor<float> inputs({2, 1}, {0, 1}), outputs({2, 1}, {1, 3});
  // [summary_run]
  auto [bytes, now] = session.run({{x, inputs}, {wanted, outputs}}, all, global_step);
  events.add_summary(bytes, now.scalar());
  // [summary_run]
  auto rows = rows_of_a_line();
  df::train::TrainStep step(df::feeds(x, wanted), loss, train);
  // [summary_fit]
  df::train::fit(session, step, rows,
                 {.epochs = 5,
                  .hooks = {df::train::summaries(events, {.every_steps = 10,        // what the graph's summaries say
                                                          .trace_every_steps = 20,  // how long each node takes
                                                          .shown = {"train/loss"},  // behind the loss of the bar
                                                          .global_step = global_step})},
                  .progress = df::train::ProgressOptions{}});
  // [summary_fit]

  // [summary_supervisor]
  df::train::Supervisor supervisor(graph,
                                   {.global_step = global_step,
                                    .events = &events,
                                    .summary = df::histogram_summary("kernel", df::Variable<float>(line.kernel())),
                                    .summary_every_steps = 2});
  for (int i = 0; i < 4; ++i) {
    supervisor.run([&](df::Session& each) { each.run({{x, inputs}, {wanted, outputs}}, train); });
  }
  // [summary_supervisor]
  events.close();
  int histograms = 0;
  df::EventReader reader(files, events.path());
  while (std::optional<df::Event> event = reader.next()) {
    const auto* summary = std::get_if<df::Summary>(&event->content);
    if (summary == nullptr) continue;
    for (const df::SummaryValue& value : summary->values) histograms += value.tag == "weights" ? 1 : 0;
  }
  require(histograms == 5, "one summary by hand and four of the fit");
}

}  // namespace

int main() {
  df::MemoryFileSystem files;
  records(files);
  sequences();
  events(files);
  summaries(files);
}
