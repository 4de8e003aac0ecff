#include <dflow/train/saving/saver.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/base/files/base64.hpp>
#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/io/checkpoint/own/checkpoint_reader.hpp>
#include <dflow/io/checkpoint/own/checkpoint_writer.hpp>
#include <dflow/io/checkpoint/tensorflow/tensor_bundle.hpp>
#include <dflow/kernels/state/device_files.hpp>
#include <dflow/ops/data_flow/queue.hpp>
#include <dflow/ops/nn/dropout.hpp>
#include <dflow/ops/nn/losses.hpp>
#include <dflow/ops/operators.hpp>
#include <dflow/ops/random/random.hpp>
#include <dflow/ops/reduction/reduce.hpp>
#include <dflow/ops/state/typed_variable.hpp>
#include <dflow/runtime/cpu_device.hpp>
#include <dflow/session/session.hpp>
#include <dflow/train/layers.hpp>
#include <dflow/train/optimizers.hpp>

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace df = dflow;

namespace {

using Names = std::vector<std::string>;

/// A process with its own state: devices without variables, with tasks that see `files`.
df::Session fresh_session(const df::Graph& graph, const std::shared_ptr<df::FileSystem>& files, int num_devices = 1) {
  const std::vector<std::shared_ptr<df::Device>> devices =
      df::cpu_devices(num_devices, {.pool = std::make_shared<df::InlinePool>()});
  for (const auto& device : devices) df::set_device_files(device->context(), files);
  return df::Session(graph, {.devices = devices});
}

/// A perceptron with dropout, trained by Adam. Without seeds each device draws its own.
struct Perceptron {
  explicit Perceptron(std::uint64_t seed) : graph({.seed = seed}) {
    const auto hidden = df::dense(x, 16, {.activation = df::Activation::relu});
    const auto logits = df::dense(df::dropout(hidden, 0.5f), 4);
    loss = df::reduce_mean(df::sparse_softmax_cross_entropy(logits, y));
    train = df::train::Adam(0.01f).minimize(loss, {.global_step = step});
    initialize = df::initialize_variables(graph);
  }

  /// The loss after each of a number of steps, on batches that depend on the number of the step.
  std::vector<float> run(df::Session& session, int count) const {
    std::vector<float> losses;
    losses.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) {
      const auto at = session.run(step).scalar();
      df::Tensor<float> images({8, 6});
      df::Tensor<std::int32_t> labels(df::Shape{8});
      for (int e = 0; e < 48; ++e) images.data()[e] = static_cast<float>((e * 7 + at * 13) % 11) / 11.0f;
      for (int e = 0; e < 8; ++e) labels.data()[e] = static_cast<std::int32_t>((e + at) % 4);
      losses.push_back(session.run({{x, images}, {y, labels}}, loss, train).scalar());
    }
    return losses;
  }

  std::vector<df::AnyTensor> values(df::Session& session) const {
    std::vector<df::AnyTensor> values;
    for (const df::AnyVariable& variable : df::global_variables(graph)) {
      values.push_back(session.run(variable.read_edge()));
    }
    return values;
  }

  df::Graph graph;
  df::Output<float> x = df::placeholder<float>(graph, {8, 6});
  df::Output<std::int32_t> y = df::placeholder<std::int32_t>(graph, {8});
  df::Variable<std::int64_t> step{graph, 0, {.name = "global_step", .trainable = false}};
  df::Output<float> loss;
  df::Operation train, initialize;
};

bool equal(const std::vector<df::AnyTensor>& a, const std::vector<df::AnyTensor>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!df::bitwise_equal(a[i], b[i])) return false;
  }
  return true;
}

/// One variable, and the operation that sets it.
struct Counter {
  explicit Counter(const df::train::SaverOptions& options) : saver(graph, options) {}

  df::Graph graph;
  df::Variable<float> w{graph, 0.0f, {.name = "w"}};
  df::Output<float> value = df::placeholder<float>(graph, {});
  df::Operation assign = w.assign(value);
  df::train::Saver saver;
};

float saved_value(df::FileSystem& files, const std::string& path) {
  const df::CheckpointReader reader(files, path);
  reader.verify();
  return reader.read("w").span<float>()[0];
}

}  // namespace

TEST_CASE("a run that was saved and restored elsewhere goes on as if it had not been interrupted, bit for bit") {
  for (const std::uint64_t seed : {5u, 0u}) {
    const auto files = std::make_shared<df::MemoryFileSystem>();
    constexpr int n = 7;
    Perceptron model(seed);
    const df::train::SaverOptions options{.files = files};
    // The undisturbed run saves as well, which must change nothing.
    df::train::Saver saver(model.graph, options);
    df::Session session = fresh_session(model.graph, files);
    session.run(model.initialize);
    model.run(session, n);
    CHECK(saver.save(session, "/models/m", n) == "/models/m-7");
    const std::vector<float> losses = model.run(session, n);
    const std::vector<df::AnyTensor> values = model.values(session);
    CHECK(values.size() == 15);

    // Another process: the same program, another graph, devices without state.
    Perceptron again(seed);
    df::train::Saver restorer(again.graph, options);
    df::Session resumed = fresh_session(again.graph, files);
    const std::optional<std::string> latest = df::train::latest_checkpoint(*files, "/models");
    REQUIRE(latest == "/models/m-7");
    restorer.restore(resumed, *latest);
    CHECK(resumed.run(again.step).scalar() == n);
    CHECK(again.run(resumed, n) == losses);
    CHECK(equal(again.values(resumed), values));

    // Once more in the same session.
    restorer.restore(resumed, *latest);
    CHECK(again.run(resumed, n) == losses);
  }
}

TEST_CASE("without random streams the variables come back and the random numbers do not") {
  const auto files = std::make_shared<df::MemoryFileSystem>();
  Perceptron model(5);
  df::train::Saver saver(model.graph, {.random_streams = false, .files = files});
  df::Session session = fresh_session(model.graph, files);
  session.run(model.initialize);
  const std::string path = saver.save(session, "/m");
  const std::vector<df::AnyTensor> values = model.values(session);
  const std::vector<float> losses = model.run(session, 3);
  saver.restore(session, path);
  CHECK(equal(model.values(session), values));
  CHECK(model.run(session, 3) != losses);
}

TEST_CASE("each device scope's task writes a shard of its own, and any division reads it") {
  const auto files = std::make_shared<df::MemoryFileSystem>();
  for (const bool sharded : {true, false}) {
    df::Graph graph;
    std::optional<df::Variable<float>> a, b, c;
    {
      const auto on = graph.device("/job:localhost/task:0/device:CPU:1");
      a.emplace(graph, 1.0f, df::VariableOptions{.name = "a"});
    }
    b.emplace(graph, 2.0f, df::VariableOptions{.name = "b"});
    {
      const auto on = graph.device("/job:localhost/task:0");
      c.emplace(graph, 3.0f, df::VariableOptions{.name = "c"});
    }
    df::train::Saver saver(graph, {.sharded = sharded, .files = files});
    df::Session session = fresh_session(graph, files, 2);
    session.run(df::initialize_variables(graph));
    const std::string path = saver.save(session, sharded ? "/many" : "/one");
    CHECK(df::read_checkpoint_index(*files, path + ".index").num_shards == (sharded ? 2 : 1));
    df::Session other = fresh_session(graph, files, 2);
    saver.restore(other, "/many");
    const auto [x, y, z] = other.run(*a, *b, *c);
    CHECK(x.scalar() == 1);
    CHECK(y.scalar() == 2);
    CHECK(z.scalar() == 3);
  }
}

TEST_CASE("some variables alone, and under other names, are saved and restored") {
  const auto files = std::make_shared<df::MemoryFileSystem>();
  df::Graph graph;
  const df::Variable<float> w(graph, 1.0f, {.name = "w"}), v(graph, 2.0f, {.name = "v"});
  df::train::Saver all(graph, {.files = files});
  df::train::Saver renamed(graph, {{"v", w.any_variable()}}, {.files = files});
  df::train::Saver swapped(graph, {{"v", w.any_variable()}, {"w", v.any_variable()}}, {.files = files});
  df::Session session = fresh_session(graph, files);
  session.run(df::initialize_variables(graph));
  const std::string path = all.save(session, "/all");
  renamed.restore(session, path);
  CHECK(session.run(w).scalar() == 2);
  CHECK(session.run(v).scalar() == 2);
  all.restore(session, path);
  swapped.restore(session, path);
  CHECK(session.run(w).scalar() == 2);
  CHECK(session.run(v).scalar() == 1);
  const std::string part = renamed.save(session, "/part");
  CHECK(df::CheckpointReader(*files, part).index().entries.size() == 1);
  CHECK(saved_value(*files, path) == 1);
  const df::Status missing = status_of([&] { return all.restore(session, part), 0; });
  CHECK(missing.code() == df::Code::not_found);
  CHECK(mentions(missing, "'w'"));
}

TEST_CASE("a restore that fails has set nothing") {
  const auto files = std::make_shared<df::MemoryFileSystem>();
  df::Graph old;
  const df::Variable<float> old_w(old, 1.0f, {.name = "w"});
  const df::Variable<float> old_v(old, df::Tensor<float>::zeros({2}), {.name = "v"});
  df::train::Saver old_saver(old, {.files = files});
  df::Session old_session = fresh_session(old, files);
  old_session.run(df::initialize_variables(old));
  const std::string path = old_saver.save(old_session, "/m", 1);

  df::Graph graph;
  const df::Variable<float> w(graph, 5.0f, {.name = "w"});
  const df::Variable<float> v(graph, df::Tensor<float>::zeros({3}), {.name = "v"});
  df::train::Saver saver(graph, {.files = files});
  df::Session session = fresh_session(graph, files);
  session.run(df::initialize_variables(graph));
  const df::Status other_shape = status_of([&] { return saver.restore(session, path), 0; });
  CHECK(other_shape.code() == df::Code::invalid_argument);
  CHECK(mentions(other_shape, "'v'"));
  CHECK(session.run(w).scalar() == 5);
  CHECK(code_of([&] { saver.restore(session, "/n"); }) == df::Code::not_found);

  std::string data = files->read_file("/m-1.index");
  data[50] = static_cast<char>(data[50] ^ 4);
  files->write_file_atomically("/m-1.index", data);
  CHECK(code_of([&] { saver.restore(session, path); }) == df::Code::data_loss);
  CHECK(session.run(w).scalar() == 5);
}

TEST_CASE("a variable without a value is named, and nothing of the save is left") {
  const auto files = std::make_shared<df::MemoryFileSystem>();
  Counter counter({.files = files});
  df::Session session = fresh_session(counter.graph, files);
  const df::Status status = status_of([&] { return counter.saver.save(session, "/d/m", 1), 0; });
  CHECK(status.code() == df::Code::failed_precondition);
  CHECK(mentions(status, "'w'"));
  CHECK(!files->exists("/d/m-1.index"));
  session.run({{counter.value, 4.0f}}, counter.assign);
  CHECK(saved_value(*files, counter.saver.save(session, "/d/m", 1)) == 4);
  CHECK(files->list_directory("/d").size() == 3);  // index, data, state
}

TEST_CASE("what a saver is given is checked") {
  df::Graph graph, other;
  CHECK(code_of([&] { df::train::Saver saver(graph); }) == df::Code::invalid_argument);
  const df::Variable<float> w(graph, 1.0f, {.name = "w"}), foreign(other, 1.0f, {.name = "w"});
  using Saved = std::vector<df::train::SavedVariable>;
  for (const Saved& saved : {Saved{}, Saved{{"a", w.any_variable()}, {"a", w.any_variable()}},
                             Saved{{"", w.any_variable()}}, Saved{{"a", {}}}, Saved{{"a", foreign.any_variable()}}}) {
    CHECK(code_of([&] { df::train::Saver saver(graph, saved); }) == df::Code::invalid_argument);
  }
  df::train::Saver saver(graph);
  df::Session session(graph);
  CHECK(code_of([&] { saver.save(session, "/tmp/"); }) == df::Code::invalid_argument);
}

TEST_CASE("a saver is given one option, a few variables in braces, or both") {
  df::Graph graph;
  const df::Variable<float> w(graph, 1.0f, {.name = "w"}), v(graph, 2.0f, {.name = "v"});
  const df::FifoQueue<float> queue(graph, {.name = "q"});
  const auto put = queue.enqueue(df::constant(graph, 1.0f));
  const auto files = std::make_shared<df::MemoryFileSystem>();
  df::Session session = fresh_session(graph, files);
  df::train::Saver all(graph, {.files = files});
  df::train::Saver without_queues(graph, {.queues = false});
  df::train::Saver part(graph, {{"v", w.any_variable()}});
  df::train::Saver both(graph, {{"w", w.any_variable()}, {"v", v.any_variable()}}, {.max_to_keep = 1});
  const auto zero = df::constant(graph, 0.0f);
  const auto set_w = w.assign(zero), set_v = v.assign(zero);
  session.run(df::initialize_variables(graph));
  all.save(session, "/m/s");
  using Values = std::vector<float>;
  const auto after = [&](df::train::Saver& saver) {
    session.run(set_w);
    session.run(set_v);
    session.run(put);
    saver.restore(session, "/m/s");
    return Values{session.run(w).scalar(), session.run(v).scalar(),
                  static_cast<float>(session.run(queue.size()).scalar())};
  };
  CHECK(after(without_queues) == Values{1, 2, 1});
  CHECK(after(part) == Values{2, 0, 2});
  CHECK(after(both) == Values{1, 2, 3});
  CHECK(after(all) == Values{1, 2, 0});
}

TEST_CASE("the oldest checkpoints are removed, also those of the process before") {
  const auto files = std::make_shared<df::MemoryFileSystem>();
  const auto names = [&] {
    Names indexes;
    for (const std::string& file : files->list_directory("/d")) {
      if (file.ends_with(".index")) indexes.push_back(file);
    }
    return indexes;
  };
  {
    Counter counter({.max_to_keep = 2, .files = files});
    df::Session session = fresh_session(counter.graph, files);
    session.run(df::initialize_variables(counter.graph));
    for (int i = 1; i <= 4; ++i) counter.saver.save(session, "/d/m", i);
    CHECK(names() == Names{"m-3.index", "m-4.index"});
    CHECK(files->list_directory("/d").size() == 5);
    CHECK(counter.saver.checkpoints() == Names{"/d/m-3", "/d/m-4"});
    // The same one again is replaced.
    session.run({{counter.value, 9.0f}}, counter.assign);
    counter.saver.save(session, "/d/m", 3);
    CHECK(counter.saver.checkpoints() == Names{"/d/m-4", "/d/m-3"});
    CHECK(saved_value(*files, "/d/m-3") == 9);
    CHECK(files->list_directory("/d").size() == 5);
  }
  Counter counter({.max_to_keep = 2, .files = files});
  df::Session session = fresh_session(counter.graph, files);
  counter.saver.restore(session, *df::train::latest_checkpoint(*files, "/d"));
  CHECK(session.run(counter.w).scalar() == 9);
  counter.saver.save(session, "/d/m", 5);
  CHECK(names() == Names{"m-3.index", "m-5.index"});
  Counter all({.max_to_keep = 0, .files = files});
  df::Session other = fresh_session(all.graph, files);
  other.run(df::initialize_variables(all.graph));
  for (int i = 10; i < 20; ++i) all.saver.save(other, "/d/m", i);
  CHECK(names().size() == 12);
}

TEST_CASE("a checkpoint that a directory's state names elsewhere is not removed") {
  const bool names_own = GENERATE(true, false);
  const auto files = std::make_shared<df::MemoryFileSystem>();
  Counter counter({.max_to_keep = 1, .files = files});
  df::Session session = fresh_session(counter.graph, files);
  session.run(df::initialize_variables(counter.graph));
  counter.saver.save(session, "/elsewhere/m", 1);
  counter.saver.save(session, "/d/sub/m", 1);
  counter.saver.save(session, "/d/m", 1);
  // A copied directory may have this state, or a user wants more files removed than he may remove himself.
  const std::string elsewhere =
      "model_checkpoint_path: \"m-1\"\n"
      "all_model_checkpoint_paths: \"/elsewhere/m-1\"\n"
      "all_model_checkpoint_paths: \"../elsewhere/m-1\"\n"
      "all_model_checkpoint_paths: \"sub/m-1\"\n";
  files->write_file_atomically("/d/checkpoint",
                               elsewhere + (names_own ? "all_model_checkpoint_paths: \"/d/m-1\"\n" : ""));
  Counter next({.max_to_keep = 1, .files = files});
  df::Session other = fresh_session(next.graph, files);
  other.run(df::initialize_variables(next.graph));
  for (int i = 2; i <= 3; ++i) next.saver.save(other, "/d/m", i);
  CHECK(next.saver.checkpoints() == Names{"/d/m-3"});
  CHECK(saved_value(*files, "/elsewhere/m-1") == 0);
  CHECK(saved_value(*files, "/d/sub/m-1") == 0);
  // A file of the same name here is another checkpoint.
  CHECK(files->exists("/d/m-1.index") != names_own);
  CHECK_FALSE(files->exists("/d/m-2.index"));
}

TEST_CASE("a path without a directory is as good as another one") {
  const auto files = std::make_shared<df::MemoryFileSystem>();
  for (int process = 0; process < 3; ++process) {
    Counter counter({.files = files});
    df::Session session = fresh_session(counter.graph, files);
    session.run({{counter.value, static_cast<float>(process)}}, counter.assign);
    CHECK(counter.saver.save(session, "m", 1) == "m-1");
    CHECK(counter.saver.save(session, "m", 1) == "m-1");
    CHECK(counter.saver.checkpoints().size() == 1);
    CHECK(files->list_directory(".").size() == 3);
    CHECK(saved_value(*files, df::train::latest_checkpoint(*files, ".").value()) == static_cast<float>(process));
  }
}

TEST_CASE("one checkpoint in each span of time is kept for good, also over processes") {
  const auto files = std::make_shared<df::MemoryFileSystem>();
  const auto clock = std::make_shared<df::VirtualClock>();
  const df::train::SaverOptions options{
      .max_to_keep = 1, .keep_every = std::chrono::minutes(10), .files = files, .clock = clock};
  std::int64_t step = 0;
  for (int process = 0; process < 3; ++process) {
    Counter counter(options);
    df::Session session = fresh_session(counter.graph, files);
    session.run(df::initialize_variables(counter.graph));
    for (int i = 0; i < 10; ++i) {
      clock->advance(std::chrono::minutes(3));
      counter.saver.save(session, "/d/m", ++step);
    }
  }
  // Checkpoints are saved at 3, 6, 9, ... minutes. Each kept checkpoint is the first that is at least 10 minutes after
  // the kept one before; the first kept one is the first of all.
  Names kept;
  for (std::int64_t i = 1; i <= step; ++i) {
    if (files->exists(df::checkpoint_index_path(df::str_cat("/d/m-", i)))) kept.push_back(df::str_cat(i));
  }
  CHECK(kept == Names{"5", "9", "13", "17", "21", "25", "29", "30"});
}

TEST_CASE("at any change that fails, and any loss of power, the latest checkpoint loads and saving goes on") {
  for (const bool loses_power : {false, true}) {
    for (std::uint64_t at = 1;; ++at) {
      CAPTURE(at, loses_power);
      const auto files = std::make_shared<df::MemoryFileSystem>();
      Counter counter({.max_to_keep = 1, .files = files});
      df::Session session = fresh_session(counter.graph, files);
      session.run({{counter.value, 1.0f}}, counter.assign);
      counter.saver.save(session, "/d/m", 1);
      session.run({{counter.value, 2.0f}}, counter.assign);
      const std::uint64_t before = files->changes();
      files->fail_change(at, df::Status::resource_exhausted("the disk is full"), true);
      const df::Code code = code_of([&] { counter.saver.save(session, "/d/m", 2); });
      const bool is_past_end = files->changes() - before < at;
      CHECK((code == df::Code::ok || code == df::Code::resource_exhausted));
      files->fail_change(0, df::Status());
      if (loses_power) files->crash();
      CHECK(session.run(counter.w).scalar() == 2);
      {
        Counter next({.max_to_keep = 1, .files = files});
        df::Session resumed = fresh_session(next.graph, files);
        next.saver.restore(resumed, df::train::latest_checkpoint(*files, "/d").value());
        const float value = resumed.run(next.w).scalar();
        CHECK((value == 2 || (value == 1 && code != df::Code::ok)));
      }
      session.run({{counter.value, 3.0f}}, counter.assign);
      counter.saver.save(session, "/d/m", 3);
      CHECK(saved_value(*files, df::train::latest_checkpoint(*files, "/d").value()) == 3);
      counter.saver.save(session, "/d/m", 2);
      CHECK(saved_value(*files, "/d/m-2") == 3);
      if (is_past_end) break;
    }
  }
}

TEST_CASE("a process that is killed at any change of a save leaves no checkpoint that later ones keep") {
  for (std::uint64_t at = 1;; ++at) {
    CAPTURE(at);
    const auto files = std::make_shared<df::MemoryFileSystem>();
    const auto index_files = [&] {
      Names indexes;
      for (const std::string& file : files->list_directory("/d")) {
        if (file.ends_with(".index")) indexes.push_back(file);
      }
      return indexes;
    };
    const auto save = [&](std::initializer_list<int> steps) {
      Counter counter({.max_to_keep = 1, .files = files});
      df::Session session = fresh_session(counter.graph, files);
      session.run(df::initialize_variables(counter.graph));
      for (const int step : steps) counter.saver.save(session, "/d/m", step);
    };
    save({1});
    const std::uint64_t before = files->changes();
    files->fail_change(at, df::Status::unavailable("killed"), true);
    static_cast<void>(code_of([&] { save({2}); }));
    const bool is_past_end = files->changes() - before < at;
    files->fail_change(0, df::Status());
    save({2, 3});
    CHECK(index_files() == Names{"m-3.index"});
    for (const std::string& file : files->list_directory("/d")) {
      CHECK((file == "checkpoint" || file.starts_with("m-3.") || file.ends_with(".tmp")));
    }
    if (is_past_end) break;
  }
}

TEST_CASE("a checkpoint that could not be removed goes with a later save, and one that was put back stays") {
  const auto files = std::make_shared<df::MemoryFileSystem>();
  Counter counter({.max_to_keep = 1, .files = files});
  df::Session session = fresh_session(counter.graph, files);
  session.run(df::initialize_variables(counter.graph));
  counter.saver.save(session, "/d/m", 1);
  Names saved = files->list_directory("/d");
  std::vector<std::pair<std::string, std::string>> first;
  for (const std::string& file : saved) {
    if (file != "checkpoint") first.emplace_back("/d/" + file, files->read_file("/d/" + file));
  }
  counter.saver.save(session, "/d/m", 2);
  CHECK(!files->exists("/d/m-1.index"));
  for (const auto& [path, content] : first) files->write_file_atomically(path, content);
  Counter next({.max_to_keep = 1, .files = files});
  df::Session other = fresh_session(next.graph, files);
  next.saver.restore(other, "/d/m-1");
  next.saver.save(other, "/d/m", 3);
  CHECK(files->exists("/d/m-1.index"));
  CHECK(!files->exists("/d/m-2.index"));
}

TEST_CASE("what a killed process left behind is removed, and nothing else") {
  const auto files = std::make_shared<df::MemoryFileSystem>();
  const df::Tensor<float> one(1.0f);
  const auto leave_shard = [&](const std::string& prefix) {
    df::CheckpointShardWriter writer(*files, prefix, 0, 2);
    writer.add("w", one);
    writer.finish();
  };
  leave_shard("/d/m-7.save-0123456789abcdef");
  leave_shard("/d/m.save-0123456789abcdef");
  const Names left = files->list_directory("/d");
  CHECK(left.size() == 4);
  const Names others{"m-7.save-0123.data", "m-x.save-0123456789abcdef.data", "n-7.save-0123456789abcdef.data", "mine"};
  for (const std::string& name : others) files->write_file_atomically("/d/" + name, "");
  Counter counter({.files = files});
  df::Session session = fresh_session(counter.graph, files);
  session.run(df::initialize_variables(counter.graph));
  counter.saver.save(session, "/d/m", 8);
  for (const std::string& name : left) CHECK(!files->exists("/d/" + name));
  for (const std::string& name : others) CHECK(files->exists("/d/" + name));
  CHECK(saved_value(*files, "/d/m-8") == 0);
}

TEST_CASE("a checkpoint of TensorFlow's is restored under the names that it has, and what does not fit is named") {
  const auto files = std::make_shared<df::MemoryFileSystem>();
  const df::Tensor<float> kernel({2, 2}, {1, 2, 3, 4});
  df::write_tensor_bundle(
      *files, "/tf/m", std::vector<df::NamedTensor>{{"dense/kernel", kernel}, {"step", df::Tensor<std::int64_t>(7)}});
  df::Graph graph;
  const df::Variable<float> weights(graph, df::Tensor<float>(df::Shape{2, 2}), {.name = "w"});
  const df::Variable<std::int64_t> step(graph, 0, {.name = "global_step"});
  const df::Variable<float> other(graph, df::Tensor<float>(df::Shape{3}), {.name = "other"});
  const auto restore = [&](const df::train::SavedVariables& saved) {
    df::train::Saver saver(graph, saved, {.files = files});
    df::Session session = fresh_session(graph, files);
    session.run(df::initialize_variables(graph));
    saver.restore(session, "/tf/m");
    return std::pair(session.run(weights), session.run(step).scalar());
  };
  const auto [value, at] = restore({{"dense/kernel", weights.any_variable()}, {"step", step.any_variable()}});
  CHECK(bitwise_equal(value, kernel));
  CHECK(at == 7);
  const std::string missing = error_of([&] { restore({{"dense/bias", other.any_variable()}}); }, df::Code::not_found);
  CHECK(contains(missing, "'dense/bias'"));
  const std::string shape = error_of([&] { restore({{"dense/kernel", other.any_variable()}}); });
  CHECK(contains(shape, "'dense/kernel' is float[2,2]"));
  CHECK(contains(shape, "the shapes differ"));
  const std::string type = error_of([&] { restore({{"step", weights.any_variable()}}); });
  CHECK(contains(type, "'step' is int64[]"));
  CHECK(contains(type, "the element types differ"));
}

// By TensorFlow 2.21: tf.raw_ops.SaveSlices(filename, ['w', 'w'], ['2 2 0,1:-', '2 2 1,1:-'], [[[1., 2.]],
// [[3., 4.]]]).
TEST_CASE("a version 1 checkpoint of TensorFlow's with a partitioned variable is restored") {
  const auto files = std::make_shared<df::MemoryFileSystem>();
  files->write_file_atomically(
      "/v1",
      std::string_view(*df::from_base64(
          "AAApCicKIQoBdxIIEgIIAhICCAIYASIGCgIQAQoAIggKBAgBEAEKABICCAEAChkAdwABAQKAgYB/EhcKAXcSBgoCEAEKABoKKggAAIA/AAAA"
          "QAYEG4GBgH8SGQoBdxIICgQIARABCgAaCioIAABAQAAAgEAAAAAAAQAAAADoFOhPAAAAAAEAAAAAwPKhsAABAgEAfAAAAAABAAAAAGYzIH6B"
          "AQiOAQ4AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAV/uAiyR1R9s=")));
  df::Graph graph;
  const df::Variable<float> w(graph, df::Tensor<float>(df::Shape{2, 2}), {.name = "w"});
  df::train::Saver saver(graph, {.files = files});
  df::Session session = fresh_session(graph, files);
  saver.restore(session, "/v1");
  CHECK(bitwise_equal(session.run(w), df::Tensor<float>({2, 2}, {1, 2, 3, 4})));
}
