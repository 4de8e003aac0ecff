// Training that may be interrupted at any step and goes on as if it had not been:
//   checkpoint_and_resume [FOLDER [STEPS]]
// Run it again with the same folder: it goes on from its last place, in the middle of an epoch and of a shuffle.
// Without a folder it shows this itself: two runs, one of them interrupted, end with the same bits.

#include <dflow/dflow.hpp>
#include <dflow/io/labelled_images.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <string>

namespace df = dflow;

namespace {

/// Trains up to `last_step` from the latest checkpoint in the folder, which it saves to every 20 steps. Returns the
/// weights of the hidden layer.
df::Tensor<float> train(const std::string& folder, std::int64_t last_step) {
  df::PosixFileSystem files;
  const auto digits = df::read_digits(files, DFLOW_EXAMPLES_DATA_DIR "/optdigits.csv.gz");

  df::Graph graph({.seed = 1});
  auto images = df::placeholder<float>(graph, {df::dynamic, 8, 8, 1});
  auto labels = df::placeholder<std::int32_t>(graph, {df::dynamic});
  df::Dense first(64, {.activation = df::Activation::relu});
  auto hidden = df::dropout(first(df::flatten(images)), 0.8f);
  auto loss = df::reduce_mean(df::sparse_softmax_cross_entropy(df::dense(hidden, 10), labels));
  df::Variable<std::int64_t> global_step(graph, 0, {.name = "global_step", .trainable = false});
  auto update = df::train::Adam(2e-3f).minimize(loss, {.global_step = global_step});
  df::train::TrainStep step(df::feeds(images, labels), loss, update);

  auto rows = df::data::from_tensors(digits.images, digits.labels).shuffle(500, {.seed = 1}).batch(32).prefetch(2);
  df::data::Iterator batches = rows.iterate();
  df::train::Saver saver(graph, {.states = {df::train::saved_iterator("batches", batches)}});
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  if (auto latest = df::train::latest_checkpoint(folder)) {
    saver.restore(session, *latest);
    std::printf("goes on from %s\n", latest->c_str());
  }
  const std::int64_t done = session.run(global_step).scalar();
  if (done >= last_step) {
    std::printf("step %lld: nothing is left to do\n", static_cast<long long>(done));
    return session.run(df::Variable<float>(first.kernel()));
  }
  const df::train::History history = df::train::fit(
      session, step, batches,
      {.epochs = 1000,
       .max_steps = last_step - done,
       .hooks = {df::train::checkpoints(saver, folder + "/digits", {.every_steps = 20, .global_step = global_step})}});
  std::printf("step %lld: loss %.9f\n", static_cast<long long>(last_step), history.last("loss"));
  return session.run(df::Variable<float>(first.kernel()));
}

int run(int argc, char** argv) {
  if (argc > 1) {
    std::filesystem::create_directories(argv[1]);
    train(argv[1], argc > 2 ? std::atoll(argv[2]) : 200);
    return 0;
  }
  const auto base = std::filesystem::temp_directory_path() / "dflow_resume_example";
  std::filesystem::remove_all(base);
  const std::string whole = (base / "whole").string(), interrupted = (base / "interrupted").string();
  std::filesystem::create_directories(whole);
  std::filesystem::create_directories(interrupted);
  const df::Tensor<float> expected = train(whole, 140);
  for (const std::int64_t until : {50, 90}) train(interrupted, until);
  const bool is_same = df::bitwise_equal(train(interrupted, 140), expected);
  std::printf("the interrupted run has ended %s\n", is_same ? "with the same bits" : "DIFFERENTLY");
  std::filesystem::remove_all(base);
  return is_same ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "checkpoint_and_resume: %s\n", error.what());
    return 1;
  }
}
