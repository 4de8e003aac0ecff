#include <dflow/train/saving/saved_state.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/data/from.hpp>
#include <dflow/kernels/state/device_files.hpp>
#include <dflow/ops/nn/dropout.hpp>
#include <dflow/ops/nn/losses.hpp>
#include <dflow/ops/operators.hpp>
#include <dflow/ops/reduction/reduce.hpp>
#include <dflow/runtime/cpu_device.hpp>
#include <dflow/session/session.hpp>
#include <dflow/train/layers.hpp>
#include <dflow/train/optimizers.hpp>
#include <dflow/train/saving/saver.hpp>

#include <memory>
#include <string>
#include <tuple>
#include <vector>

namespace df = dflow;

namespace {

using Batch = std::tuple<df::Tensor<float>, df::Tensor<std::int32_t>>;

df::data::Dataset<Batch> shuffled_batches() {
  df::Tensor<float> x({130, 6});
  df::Tensor<std::int32_t> y(df::Shape{130});
  for (int i = 0; i < 130 * 6; ++i) x.data()[i] = static_cast<float>(i * 7 % 31) / 31.0f;
  for (int i = 0; i < 130; ++i) y.data()[i] = i % 4;
  return df::data::from_tensors(x, y).shuffle(40, {.seed = 8}).batch(4).prefetch(3);
}

/// A process of its own: graph, session, data.
struct Process {
  explicit Process(const std::shared_ptr<df::FileSystem>& files)
      : graph({.seed = 3}), session(graph, {.devices = devices(files)}) {
    const auto hidden = df::dense(df::dropout(x, 0.8f), 16, {.activation = df::Activation::relu});
    loss = df::reduce_mean(df::sparse_softmax_cross_entropy(df::dense(hidden, 4), y));
    train = df::train::Adam(0.01f).minimize(loss);
    initialize = df::initialize_variables(graph);
    saver = std::make_unique<df::train::Saver>(
        graph, df::train::SaverOptions{.states = {df::train::saved_iterator("batches", batches)}, .files = files});
  }

  static std::vector<std::shared_ptr<df::Device>> devices(const std::shared_ptr<df::FileSystem>& files) {
    auto devices = df::cpu_devices(1, {.pool = std::make_shared<df::InlinePool>()});
    df::set_device_files(devices[0]->context(), files);
    return devices;
  }

  std::vector<float> steps(int n) {
    std::vector<float> losses;
    while (static_cast<int>(losses.size()) < n) {
      if (auto batch = batches.next()) {
        losses.push_back(session.run({{x, std::get<0>(*batch)}, {y, std::get<1>(*batch)}}, loss, train).scalar());
      } else {
        batches.next_epoch();
      }
    }
    return losses;
  }

  df::Graph graph;
  df::Session session;
  df::Output<float> x = df::placeholder<float>(graph, {df::dynamic, 6});
  df::Output<std::int32_t> y = df::placeholder<std::int32_t>(graph, {df::dynamic});
  df::Output<float> loss;
  df::Operation train, initialize;
  df::data::Iterator<Batch> batches = shuffled_batches().iterate();
  std::unique_ptr<df::train::Saver> saver;
};

}  // namespace

TEST_CASE("a run that is restored in the middle of an epoch and of a shuffle has the losses of one that went on") {
  const auto files = std::make_shared<df::MemoryFileSystem>();
  Process whole(files);
  whole.session.run(whole.initialize);
  const std::vector<float> losses = whole.steps(100);

  Process first(files);
  first.session.run(first.initialize);
  std::vector<float> resumed = first.steps(50);
  CHECK(first.batches.epoch() == 1);  // 33 batches an epoch
  CHECK(first.batches.position() == 17);
  const std::string path = first.saver->save(first.session, "/models/m", 50);
  CHECK(first.steps(1).front() == losses[50]);  // saving changes nothing

  Process second(files);
  second.saver->restore(second.session, path);
  CHECK(second.batches.epoch() == 1);
  CHECK(second.batches.position() == 17);
  for (const float loss : second.steps(50)) resumed.push_back(loss);
  CHECK(resumed == losses);
  // And again in the same process.
  second.saver->restore(second.session, path);
  CHECK(second.steps(50) == std::vector<float>(losses.begin() + 50, losses.end()));
}

TEST_CASE("a state that cannot be restored leaves variables and iterators as they were") {
  const auto files = std::make_shared<df::MemoryFileSystem>();
  df::Graph graph;
  const df::Variable<float> w(graph, 1.0f, {.name = "w"});
  const auto to_two = w.assign(2.0f);
  std::string held = "one";
  bool fails = false;
  const df::train::SavedState state{"held", [&] { return held; },
                                    [&](std::string_view bytes) -> std::function<void()> {
                                      if (fails) df::throw_error(df::Status::data_loss("not these"));
                                      return [&held, text = std::string(bytes)] { held = text; };
                                    }};
  df::train::Saver saver(graph, {.states = {state}, .files = files});
  df::Session session(graph, {.devices = Process::devices(files)});
  session.run(df::initialize_variables(graph));
  const std::string path = saver.save(session, "/m");
  session.run(to_two);
  held = std::string("t\0wo", 4);
  const std::string later = saver.save(session, "/n");
  fails = true;
  CHECK(contains(error_of([&] { return saver.restore(session, path), 0; }, df::Code::data_loss), "'held': not these"));
  CHECK(session.run(w).scalar() == 2.0f);
  CHECK(held.size() == 4);
  fails = false;
  saver.restore(session, path);
  CHECK(session.run(w).scalar() == 1.0f);
  CHECK(held == "one");
  saver.restore(session, later);
  CHECK(held == std::string("t\0wo", 4));

  // A checkpoint without it, and names that are taken.
  df::train::Saver without(graph, {.files = files});
  const std::string bare = without.save(session, "/bare");
  CHECK(contains(error_of([&] { return saver.restore(session, bare), 0; }, df::Code::not_found), "held"));
  const auto twice = [&](const std::string& name) {
    df::train::SavedState other = state;
    other.name = name;
    return code_of([&] {
      return df::train::Saver(graph, {.states = {state, other}, .files = files}).checkpoints().size();
    });
  };
  CHECK(twice("held") == df::Code::invalid_argument);
  CHECK(twice("w") == df::Code::invalid_argument);
  CHECK(twice("other") == df::Code::ok);

  // Two that are saved keep apart.
  std::string second = "second";
  const df::train::SavedState other{"other", [&] { return second; },
                                    [&](std::string_view bytes) -> std::function<void()> {
                                      return [&second, text = std::string(bytes)] { second = text; };
                                    }};
  df::train::Saver both(graph, {.states = {state, other}, .files = files});
  held = "first";
  const std::string two = both.save(session, "/two");
  held = second = "";
  both.restore(session, two);
  CHECK(held == "first");
  CHECK(second == "second");
}
