#include <dflow/train/replicas/supervisor.hpp>
#include <dflow/train/saving/saver.hpp>

#include <catch2/catch.hpp>
#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/dflow.hpp>
#include <dflow/io/checkpoint/own/checkpoint_reader.hpp>
#include <dflow/kernels/state/device_files.hpp>
#include <dflow/net/server.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cluster_harness.hpp"
#include "support/held_files.hpp"

namespace df = dflow;
using df::testing::MemoryCluster;

namespace {

/// Two parameter servers and two workers; the first worker is the chief. All tasks see the same files.
struct SavingCluster {
  SavingCluster() {
    for (const char* job : {"ps", "worker"}) {
      for (int task = 0; task < 2; ++task) give_files(cluster.server(job, task));
    }
  }
  void give_files(df::net::Server& server) const {
    for (const auto& device : server.devices()) df::set_device_files(device->context(), files);
  }
  void restart(const std::string& job, int task) {
    cluster.stop(job, task);
    give_files(cluster.start(job, task));
  }

  std::shared_ptr<df::MemoryFileSystem> files = std::make_shared<df::MemoryFileSystem>();
  MemoryCluster cluster{{{"ps", 2}, {"worker", 2}}};
};

/// A perceptron with dropout, its variables over the parameter servers; each step trains on the same batch.
struct ReplicaModel {
  explicit ReplicaModel(const SavingCluster& cluster, int worker) : graph({.seed = 3}) {
    const auto on = graph.device(df::train::replica_device(cluster.cluster.spec_of("worker", worker)));
    step.emplace(graph, std::int64_t{0}, df::VariableOptions{.name = "global_step", .trainable = false});
    df::Tensor<float> batch({4, 3});
    for (std::size_t i = 0; i < 12; ++i) batch.span()[i] = 0.1f * static_cast<float>(i) - 0.6f;
    const auto hidden =
        df::dropout(df::dense(df::constant(graph, batch), 8, {.activation = df::Activation::tanh}), 0.5f);
    loss = df::reduce_mean(df::square(df::dense(hidden, 2) - 0.5f));
    train = df::train::Adam(0.05f).minimize(loss, {.global_step = *step});
  }
  std::vector<float> run(df::Session& session, int count) const {
    std::vector<float> losses;
    losses.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) losses.push_back(session.run(loss, train).scalar());
    return losses;
  }

  df::Graph graph;
  std::optional<df::Variable<std::int64_t>> step;
  df::Output<float> loss;
  df::Operation train;
};

}  // namespace

TEST_CASE("each parameter server writes its shard, and new ones go on from there, bit for bit") {
  SavingCluster cluster;
  ReplicaModel model(cluster, 0);
  df::train::Saver saver(model.graph, {.files = cluster.files});
  std::string path;
  std::vector<float> expected;
  {
    df::Session session(model.graph, {.target = cluster.cluster.server("worker", 0).target()});
    session.run(df::initialize_variables(model.graph));
    model.run(session, 5);
    path = saver.save(session, "/models/m", 5);
    expected = model.run(session, 5);
  }
  // The shards of both parameter servers, and the random streams of the chief.
  const df::CheckpointIndex index = df::read_checkpoint_index(*cluster.files, path + ".index");
  CHECK(index.num_shards == 3);
  const auto shard_of = [&](const std::string& name) { return index.find(name).front().shard; };
  const auto task_of = [&](const std::string& name) { return model.graph.find(name).node().device; };
  CHECK((shard_of("dense/kernel") == shard_of("dense_1/kernel")) ==
        (task_of("dense/kernel") == task_of("dense_1/kernel")));
  CHECK(shard_of("dense/kernel") == shard_of("dense/kernel/Adam"));

  for (const char* job : {"ps", "worker"}) {
    for (int task = 0; task < 2; ++task) cluster.restart(job, task);
  }
  ReplicaModel again(cluster, 0);
  df::train::Saver restorer(again.graph, {.files = cluster.files});
  df::Session session(again.graph, {.target = cluster.cluster.server("worker", 0).target()});
  restorer.restore(session, path);
  CHECK(again.run(session, 5) == expected);
}

TEST_CASE("weights of others go into the variables of all parameter servers, and into the parts of one variable") {
  SavingCluster cluster;
  ReplicaModel model(cluster, 0);
  df::PartitionedVariable<float> table;
  {
    const auto on = model.graph.device(df::train::replica_device(cluster.cluster.spec_of("worker", 0)));
    table = df::partitioned_variable<float>(model.graph, {5, 2}, 2, {.name = "table"});
  }
  const auto task_of = [](const df::AnyVariable& variable) { return variable.handle().node().device; };
  CHECK(task_of(table[0].any_variable()) != task_of(table[1].any_variable()));
  df::Session session(model.graph, {.target = cluster.cluster.server("worker", 0).target()});
  session.run(df::initialize_variables(model.graph));

  std::vector<df::NamedTensor> tensors;
  std::vector<df::train::Weight> weights;
  for (const df::AnyVariable& variable : df::trainable_variables(model.graph)) {
    const bool is_part = !variable.slice().empty();
    weights.push_back({variable, is_part ? "table" : variable.name()});
    if (!is_part)
      tensors.push_back({variable.name(), df::AnyTensor::zeros(variable.dtype(), variable.shape().to_shape())});
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    for (float& element : tensors[i].tensor.span<float>()) element = static_cast<float>(i) + 0.5f;
  }
  const df::Tensor<float> whole({5, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  tensors.push_back({"table", whole});
  df::write_safetensors(*cluster.files, "/m.safetensors", tensors);
  const auto report =
      df::train::load_weights(session, *df::open_saved_tensors(*cluster.files, "/m.safetensors"), weights);
  CHECK(report.loaded.size() == tensors.size());
  CHECK(report.unused.empty());
  CHECK(report.kept.empty());
  for (const df::train::Weight& weight : weights) {
    if (!weight.variable.slice().empty()) continue;
    const df::AnyTensor value = session.run(weight.variable.read_edge());
    for (const auto& [name, tensor] : tensors) {
      if (name == weight.variable.name()) CHECK(bitwise_equal(value, tensor));
    }
  }
  CHECK(bitwise_equal(session.run(table.as_tensor()), whole));
}

TEST_CASE("a shard that cannot be written is reported with its task, and the session goes on") {
  SavingCluster cluster;
  ReplicaModel model(cluster, 0);
  df::train::Saver saver(model.graph, {.files = cluster.files});
  df::Session session(model.graph, {.target = cluster.cluster.server("worker", 0).target()});
  session.run(df::initialize_variables(model.graph));
  const auto full = std::make_shared<df::MemoryFileSystem>();
  full->fail_change(1, df::Status::resource_exhausted("the disk is full"), true);
  df::set_device_files(cluster.cluster.server("ps", 1).devices().front()->context(), full);
  try {
    saver.save(session, "/models/m", 1);
    FAIL("a checkpoint without a shard was saved");
  } catch (const df::Error& error) {
    CHECK(error.code() == df::Code::resource_exhausted);
    CHECK(error.status().task() == "/job:ps/replica:0/task:1");
  }
  CHECK_FALSE(df::train::latest_checkpoint(*cluster.files, "/models"));
  model.run(session, 2);
  df::set_device_files(cluster.cluster.server("ps", 1).devices().front()->context(), cluster.files);
  saver.save(session, "/models/m", 2);
  CHECK(df::train::latest_checkpoint(*cluster.files, "/models") == "/models/m-2");
}

TEST_CASE("a chief restores what a parameter server has lost, and a worker goes on only when that is done") {
  SavingCluster cluster;
  ReplicaModel chief(cluster, 0), worker(cluster, 1);
  const auto options_of = [&](ReplicaModel& model, int task) {
    df::train::SupervisorOptions options{
        .session = {.target = cluster.cluster.server("worker", task).target({"/job:ps"})},
        .is_chief = task == 0,
        .ready_timeout = std::chrono::minutes(1),
        .poll_interval = std::chrono::milliseconds(1)};
    if (task != 0) return options;
    options.checkpoint_dir = "/models";
    options.saver_options.files = cluster.files;
    options.global_step = model.step;
    return options;
  };
  df::train::Supervisor chief_supervisor(chief.graph, options_of(chief, 0));
  df::train::Supervisor worker_supervisor(worker.graph, options_of(worker, 1));
  const auto step_of = [](const ReplicaModel& model) {
    return [&model](df::Session& session) { return session.run(*model.step).scalar(); };
  };
  chief_supervisor.run([&](df::Session& session) { chief.run(session, 4); });
  CHECK(chief_supervisor.save() == "/models/model-4");
  chief_supervisor.run([&](df::Session& session) { chief.run(session, 2); });
  CHECK(worker_supervisor.run(step_of(worker)) == 6);

  for (int round = 1; round <= 3; ++round) {
    for (int task = 0; task < 2; ++task) cluster.restart("ps", task);
    std::int64_t seen_by_worker = -1;
    std::thread waiting([&] { seen_by_worker = worker_supervisor.run(step_of(worker)); });
    const std::int64_t seen_by_chief = chief_supervisor.run(step_of(chief));
    waiting.join();
    CHECK(seen_by_chief == 4);
    CHECK(seen_by_worker == 4);
    CHECK(chief_supervisor.num_recoveries() >= round);
    chief_supervisor.run([&](df::Session& session) { chief.run(session, 1); });
    CHECK(worker_supervisor.run(step_of(worker)) == 5);
  }
}

TEST_CASE("a parameter server that is lost between a step and its save costs that save, not the step's result") {
  SavingCluster cluster;
  ReplicaModel chief(cluster, 0);
  std::vector<df::Status> errors;
  df::train::Supervisor supervisor(chief.graph,
                                   {.session = {.target = cluster.cluster.server("worker", 0).target({"/job:ps"})},
                                    .checkpoint_dir = "/models",
                                    .saver_options = {.files = cluster.files},
                                    .global_step = chief.step,
                                    .save_every_steps = 1,
                                    .on_save_error = [&](const df::Status& status) { errors.push_back(status); },
                                    .ready_timeout = std::chrono::minutes(1),
                                    .poll_interval = std::chrono::milliseconds(1)});
  supervisor.run([&](df::Session& session) { chief.run(session, 1); });
  CHECK(df::train::latest_checkpoint(*cluster.files, "/models") == "/models/model-1");
  int calls = 0;
  const std::int64_t step = supervisor.run([&](df::Session& session) {
    chief.run(session, 1);
    const std::int64_t number = session.run(*chief.step).scalar();
    cluster.cluster.stop("ps", 0);
    ++calls;
    return number;
  });
  CHECK(step == 2);
  CHECK(calls == 1);
  CHECK(errors.size() == 1);
  CHECK(supervisor.num_recoveries() == 1);
  cluster.give_files(cluster.cluster.start("ps", 0));
  CHECK(supervisor.run([&](df::Session& session) { return session.run(*chief.step).scalar(); }) == 1);
}

TEST_CASE("a task may stop while it saves: the session learns it, and no checkpoint is there") {
  SavingCluster cluster;
  ReplicaModel model(cluster, 0);
  df::train::Saver saver(model.graph, {.files = cluster.files});
  df::Session session(model.graph, {.target = cluster.cluster.server("worker", 0).target()});
  session.run(df::initialize_variables(model.graph));
  const auto held = std::make_shared<df::testing::HeldFiles>();
  df::set_device_files(cluster.cluster.server("ps", 1).devices().front()->context(), held);
  df::Code how = df::Code::ok;
  std::thread saving([&] {
    try {
      saver.save(session, "/models/m", 1);
    } catch (const df::Error& error) {
      how = error.code();
    }
  });
  held->is_held.wait_blocking();
  std::thread stopping([&] { cluster.cluster.stop("ps", 1); });
  saving.join();
  held->may_go.set();
  stopping.join();
  CHECK(how == df::Code::unavailable);
  CHECK_FALSE(df::train::latest_checkpoint(*cluster.files, "/models"));
  CHECK_FALSE(cluster.files->exists("/models/m-1.index"));
}
