// The snippets of docs/queues.md.

#include <dflow/dflow.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace df = dflow;

namespace {

void fifo() {
  // [fifo]
  df::Graph graph;
  auto images = df::placeholder<float>(graph, {df::dynamic, 784});
  auto labels = df::placeholder<std::int32_t>(graph, {df::dynamic});
  df::FifoQueue<float, std::int32_t> queue(graph, {.capacity = 64, .shapes = {{784}, {}}});
  df::Operation fill = queue.enqueue_many(images, labels);  // waits for room
  auto [x, y] = queue.dequeue_many(2);                      // [2, 784], [2]; waits for two elements
  auto [rest, rest_labels] = queue.dequeue_up_to(32);       // of a closed queue also fewer, but at least one
  df::Operation close = queue.close();

  df::Session session(graph);
  session.run({{images, df::Tensor<float>::zeros({3, 784})}, {labels, df::Tensor<std::int32_t>({3}, {0, 1, 2})}}, fill);
  auto [batch, batch_labels] = session.run(x, y);
  session.run(close);
  auto last = session.run(rest_labels);  // [2]
  // [fifo]
  std::printf("%d, then %d\n", batch_labels(1), last(0));
}

void deadline() {
  df::Graph graph;
  df::FifoQueue<int> queue(graph, {.shapes = {{}}});
  auto put = queue.enqueue(df::constant(graph, 1));
  df::Session session(graph);
  // [deadline]
  auto pair = queue.dequeue_many(2);
  session.run(put);
  try {
    session.run({.deadline = std::chrono::milliseconds(20)}, {}, pair);
  } catch (const df::Error& error) {
    // error.code() is Code::deadline_exceeded, and what the step had taken is back in front.
    std::puts(error.what());
  }
  session.run(put);
  auto both = session.run(pair);
  // [deadline]
  std::printf("%d\n", both(0));
}

void kinds() {
  // [kinds]
  df::Graph graph({.seed = 1});
  // Any of its elements, each with the same chance; 500 stay to choose from until it is closed.
  df::RandomShuffleQueue<float> examples(graph, {.capacity = 1000, .min_after_dequeue = 500, .shapes = {{784}}});
  // Elements of different sizes: those that are taken together are padded with zeros, or empty strings.
  df::PaddingFifoQueue<std::int32_t> sentences(graph, {.shapes = {{df::dynamic}}});
  auto words = sentences.dequeue_many(8);  // [8, words of the longest]
  // The least priority first, of equal ones the oldest.
  df::PriorityQueue<std::string> jobs(graph, {.shapes = {{}}});
  auto put = jobs.enqueue(df::constant(graph, std::int64_t{3}), df::constant(graph, std::string("later")));
  auto [priority, job] = jobs.dequeue();
  // [kinds]
  df::Session session(graph);
  session.run(put);
  std::printf("%s %s\n", session.run(job).scalar().c_str(), words.shape().to_string().c_str());
}

void barrier() {
  // [barrier]
  df::Graph graph;
  auto keys = df::placeholder<std::string>(graph, {df::dynamic});
  auto images = df::placeholder<float>(graph, {df::dynamic, 3});
  auto labels = df::placeholder<std::int32_t>(graph, {df::dynamic});
  df::Barrier<float, std::int32_t> examples(graph, {.shapes = {{3}, {}}});
  df::Operation some = examples.insert_many<0>(keys, images);
  df::Operation others = examples.insert_many<1>(keys, labels);
  auto [indices, names, x, y] = examples.take_many(2);  // waits for two that have both

  df::Session session(graph);
  const df::Tensor<std::string> ab({2}, {"a", "b"}), ba({2}, {"b", "a"});
  session.run({{keys, ab}, {images, df::Tensor<float>({2, 3}, {1, 1, 1, 2, 2, 2})}}, some);
  session.run({{keys, ba}, {labels, df::Tensor<std::int32_t>({2}, {20, 10})}}, others);
  auto [which, image, label] = session.run(names, x, y);  // "b" with 20, "a" with 10
  // [barrier]
  std::printf("%s %g %d\n", which(0).c_str(), static_cast<double>(image(0, 0)), label(0));
}

void accumulators() {
  // [accumulators]
  df::Graph graph;
  auto gradient = df::placeholder<float>(graph, {2});
  auto step = df::placeholder<std::int64_t>(graph, {});  // that it was computed for
  df::AnyOutput sums = df::apply<df::ConditionalAccumulator, float>(graph, {.shape = {2}});
  df::Operation give = df::build<df::AccumulatorApplyGradient>({sums, step, gradient});
  df::AnyOutput take =  // waits for two
      df::build<df::AccumulatorTakeGradient>({sums, df::constant(graph, 2)}, {}, {}, df::type_args<float>());
  df::Output<float> mean = take.as<float>();

  df::Session session(graph);
  for (float each : {1.0f, 2.0f}) {
    session.run({{gradient, df::Tensor<float>({2}, {each, 10 * each})}, {step, std::int64_t{0}}}, give);
  }
  auto value = session.run(mean);  // [1.5, 15], and the accumulator's step is 1
  // [accumulators]
  std::printf("%g %g\n", static_cast<double>(value(0)), static_cast<double>(value(1)));
}

void staging() {
  df::Graph graph;
  auto batch = df::placeholder<float>(graph, {df::dynamic});
  // [staging]
  df::StagingArea<float> next(graph, {.capacity = 2, .memory_limit = 1 << 20});
  df::Operation ahead = next.stage(batch);  // waits for room
  auto x = next.unstage();                  // waits for an element
  // [staging]
  df::Session session(graph);
  session.run({{batch, df::Tensor<float>({1}, {4})}}, ahead);
  std::printf("%g\n", static_cast<double>(session.run(x)(0)));
}

void kept_between_runs() {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {df::dynamic, df::dynamic});
  // [kept]
  df::SessionTensors<float> kept(graph, {.memory_limit = 1 << 20});
  auto keep = kept.keep(df::matmul(x, x));
  auto number = df::placeholder<std::int64_t>(graph, {});
  auto total = df::reduce_sum(kept.get(number));
  df::Operation drop = kept.remove(number);

  df::Session session(graph);
  const df::Tensor<std::int64_t> product = session.run({{x, df::Tensor<float>({1, 1}, {3})}}, keep);
  session.run({{number, product}}, total);  // 9, as often as it is needed
  session.run({{number, product}}, drop);   // frees its memory
  // [kept]
}

void tables(const std::string& directory) {
  const std::string file = directory + "/words.txt";
  std::ofstream(file) << "the\nquick\nfox\n";
  // [tables]
  df::Graph graph;
  auto words = df::placeholder<std::string>(graph, {df::dynamic});
  df::HashTable<std::string, std::int64_t> vocabulary(graph);
  df::Operation fill = vocabulary.initialize_from_text_file(file);  // the number of a line by its text
  auto ids = vocabulary.find(words, std::int64_t{-1});              // -1 for what is not there

  df::MutableHashTable<std::string, float> seen(graph, {.value_shape = {2}});
  auto rows = df::placeholder<float>(graph, {df::dynamic, 2});
  df::Operation put = seen.insert(words, rows);
  auto found = seen.find(words, df::Tensor<float>({2}, {0, 0}));  // [n, 2]
  auto [keys, values] = seen.export_all();

  df::Session session(graph);
  session.run(fill);  // in any session that shares the table, with the same content
  const df::Tensor<std::string> two({2}, {"fox", "cat"});
  auto numbers = session.run({{words, two}}, ids);  // 2, -1
  session.run({{words, two}, {rows, df::Tensor<float>({2, 2}, {1, 2, 3, 4})}}, put);
  // [tables]
  std::printf("%d %g\n", static_cast<int>(numbers(0)), static_cast<double>(session.run({{words, two}}, found)(1, 1)));
  std::printf("%d\n", static_cast<int>(session.run(keys).num_elements()));
}

}  // namespace

int main() {
  fifo();
  deadline();
  kinds();
  barrier();
  accumulators();
  staging();
  kept_between_runs();
  const auto directory = std::filesystem::temp_directory_path() / "dflow_snippets_queues";
  std::filesystem::create_directories(directory);
  tables(directory.string());
  std::filesystem::remove_all(directory);
}
