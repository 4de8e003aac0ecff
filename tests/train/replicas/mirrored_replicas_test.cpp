#include <dflow/train/replicas/mirrored_replicas.hpp>

#include "catch.hpp"
#include "support/collective_members.hpp"
#include "support/errors.hpp"
#include "support/proof_device.hpp"
#include "support/temporary_folder.hpp"

#include <dflow/dflow.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/net/transport/memory_transport.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace dflow;
using dflow::testing::are_equal;
using dflow::testing::results_of;
using train::MirroredReplicas;

namespace {

constexpr std::int64_t mirrored_rows = 12, mirrored_features = 5;

Tensor<float> mirrored_batch(std::int64_t step, std::int64_t begin, std::int64_t end) {
  Tensor<float> x({end - begin, mirrored_features});
  for (std::int64_t row = begin; row < end; ++row) {
    for (std::int64_t i = 0; i < mirrored_features; ++i) {
      x(row - begin, i) = std::sin(static_cast<float>(1 + step * 131 + row * 17 + i * 7));
    }
  }
  return x;
}

/// A network with a dense layer, a table of rows and a slot optimizer, on as many devices as there are names.
struct MirroredModel {
  Graph graph{{.seed = 3}};
  std::vector<Output<float>> x;
  std::vector<Output<std::int32_t>> rows;
  std::vector<Variable<float>> first_weights;
  std::optional<MirroredReplicas> mirrored;
  Operation train;
  Output<std::int64_t> steps;

  explicit MirroredModel(const std::vector<std::string>& devices, const train::MinimizeOptions& options = {}) {
    const Variable<std::int64_t> global_step(graph, Tensor<std::int64_t>(0), {.name = "step", .trainable = false});
    steps = global_step.read();
    mirrored.emplace(train::Adam(0.05f), devices);
    train::MinimizeOptions with = options;
    with.global_step = global_step;
    train = mirrored->minimize(
        graph, [&](std::size_t) { return loss_of(); }, with);
  }

  /// The next replica's.
  Output<float> loss_of() {
    x.push_back(placeholder<float>(graph, {dynamic, mirrored_features}));
    rows.push_back(placeholder<std::int32_t>(graph, {dynamic}));
    const Variable<float> a(graph, random_normal<float>(graph, {mirrored_features, 4}, {.stddev = 0.3}), {.name = "a"});
    const Variable<float> table(graph, random_normal<float>(graph, {6, 4}, {.stddev = 0.3}), {.name = "table"});
    first_weights.push_back(a);
    first_weights.push_back(table);
    const auto hidden = tanh(matmul(x.back(), a)) + gather(table, rows.back());
    return reduce_mean(square(dense(hidden, 2, {}, {.name = "out"}) - 0.25f));
  }

  std::vector<Feed> feeds(std::int64_t step) const {
    std::vector<Feed> feeds;
    const auto share = mirrored_rows / static_cast<std::int64_t>(x.size());
    for (std::size_t r = 0; r < x.size(); ++r) {
      const auto begin = share * static_cast<std::int64_t>(r);
      Tensor<std::int32_t> which({share});
      for (std::int64_t i = 0; i < share; ++i) which(i) = static_cast<std::int32_t>((step + begin + i) % 6);
      feeds.emplace_back(x[r], mirrored_batch(step, begin, begin + share));
      feeds.emplace_back(rows[r], which);
    }
    return feeds;
  }

  /// The loss of each step.
  std::vector<float> train_in(Session& session, std::int64_t first, std::int64_t count) const {
    std::vector<float> losses;
    for (std::int64_t step = first; step < first + count; ++step) {
      const std::vector<AnyOutput> loss{mirrored->loss()};
      const std::vector<Operation> update{train};
      std::vector<AnyTensor> result(1);
      session.run_erased({}, nullptr, feeds(step), loss, update, result);
      losses.push_back(Tensor<float>(result[0]).scalar());
    }
    return losses;
  }
  void begin(Session& session) {
    session.run(initialize_variables(graph));
    session.run(mirrored->mirror());
  }
};

std::vector<std::shared_ptr<Device>> mirrored_cpus(int count) {
  std::vector<std::shared_ptr<Device>> devices;
  for (int i = 0; i < count; ++i) {
    devices.push_back(std::make_shared<CpuDevice>(
        CpuDeviceOptions{.name = str_cat("/job:localhost/replica:0/task:0/device:CPU:", i)}));
  }
  return devices;
}

/// Checks that the mirrored variables of all replicas are alike.
void check_mirrored(const MirroredModel& model, Session& session) {
  const std::size_t replicas = model.x.size(), each = model.first_weights.size() / replicas;
  for (std::size_t v = 0; v < each; ++v) {
    const Tensor<float> first = session.run(model.first_weights[v].read());
    for (std::size_t r = 1; r < replicas; ++r) {
      CHECK(are_equal(session.run(model.first_weights[r * each + v].read()), first));
    }
  }
}

void check_like_one(const std::vector<float>& got) {
  MirroredModel alone({"/cpu:0"});
  Session session(alone.graph);
  alone.begin(session);
  const std::vector<float> wanted = alone.train_in(session, 0, static_cast<std::int64_t>(got.size()));
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == Approx(wanted[i]).epsilon(2e-4));
  CHECK(wanted.back() < wanted.front());
}

}  // namespace

TEST_CASE("mirrored replicas train as one does on the whole batch, and stay alike", "[replicas]") {
  for (const int count : {2, 3}) {
    std::vector<std::string> names;
    for (int i = 0; i < count; ++i) names.push_back(str_cat("/cpu:", i));
    MirroredModel model(names);
    Session session(model.graph, {.devices = mirrored_cpus(count)});
    model.begin(session);
    const std::vector<float> losses = model.train_in(session, 0, 20);
    INFO(count << " replicas");
    check_like_one(losses);
    check_mirrored(model, session);
    CHECK(session.run(model.steps).scalar() == 20);
    CHECK(model.mirrored->losses().size() == static_cast<std::size_t>(count));
  }
}

TEST_CASE("mirrored replicas train on devices that have a memory of their own", "[replicas]") {
  std::vector<std::shared_ptr<Device>> devices = mirrored_cpus(1);
  std::vector<std::string> names;
  for (int i = 0; i < 3; ++i) {
    devices.push_back(std::make_shared<testing::ProofDevice>(i));
    names.push_back(str_cat("/device:PROOF:", i));
  }
  MirroredModel model(names);
  Session session(model.graph, {.devices = devices});
  model.begin(session);
  check_like_one(model.train_in(session, 0, 10));
  check_mirrored(model, session);
}

TEST_CASE("mirrored replicas train on three tasks of a cluster", "[replicas][net]") {
  net::ClusterSpec spec;
  for (int i = 0; i < 3; ++i) spec.add_task("worker", i, "worker" + std::to_string(i));
  const auto transport =
      std::make_shared<net::MemoryTransport>(std::make_shared<WorkStealingPool>(2, ThreadPoolOptions{.name = "io"}));
  std::vector<std::unique_ptr<net::Server>> servers;
  std::vector<std::string> names;
  for (int i = 0; i < 3; ++i) {
    spec.set_task("worker", i);
    servers.push_back(
        std::make_unique<net::Server>(spec, net::ServerOptions{.num_threads = 1, .transport = transport}));
    names.push_back(str_cat("/job:worker/task:", i));
  }
  MirroredModel model(names);
  Session session(model.graph, {.target = servers[1]->target()});
  model.begin(session);
  check_like_one(model.train_in(session, 0, 10));
  check_mirrored(model, session);
}

TEST_CASE("a checkpoint has one copy of mirrored variables, and all go on from it", "[replicas]") {
  const dflow::testing::TemporaryFolder folder;
  const auto names = std::vector<std::string>{"/cpu:0", "/cpu:1"};
  MirroredModel model(names);
  train::Saver saver(model.graph, model.mirrored->saved_variables());
  Session session(model.graph, {.devices = mirrored_cpus(2)});
  model.begin(session);
  model.train_in(session, 0, 5);
  saver.save(session, folder.file("model"));
  const std::vector<float> wanted = model.train_in(session, 5, 5);
  for (const train::SavedVariable& saved : model.mirrored->saved_variables()) {
    CHECK_FALSE(contains(saved.name, "replica_"));
  }

  MirroredModel resumed(names);
  train::Saver restorer(resumed.graph, resumed.mirrored->saved_variables());
  Session other(resumed.graph, {.devices = mirrored_cpus(2)});
  other.run(initialize_variables(resumed.graph));
  restorer.restore(other, folder.file("model"));
  other.run(resumed.mirrored->mirror());
  CHECK(resumed.train_in(other, 5, 5) == wanted);
  check_mirrored(resumed, other);

  MirroredModel alone({"/cpu:0"});
  train::Saver of_one(alone.graph, alone.mirrored->saved_variables());
  Session single(alone.graph);
  of_one.restore(single, folder.file("model"));
  const std::vector<float> losses = alone.train_in(single, 5, 5);
  for (std::size_t i = 0; i < losses.size(); ++i) CHECK(losses[i] == Approx(wanted[i]).epsilon(2e-4));
}

TEST_CASE("what is saved of two mirrored models in a graph is one copy of each", "[replicas]") {
  Graph graph({.seed = 1});
  std::vector<MirroredReplicas> models;
  std::vector<Operation> steps;
  for (int model = 0; model < 3; ++model) {
    models.emplace_back(train::Momentum(0.1f, 0.9f), std::vector<std::string>{"/cpu:0", "/cpu:1", "/cpu:2"});
    steps.push_back(models.back().minimize(graph, [&](std::size_t) {
      const Variable<float> w(graph, Tensor<float>::full({2}, 1 + static_cast<float>(model)));
      return reduce_sum(square(w.read()));
    }));
  }
  for (const MirroredReplicas& each : models) {
    const auto saved = each.saved_variables();
    CHECK(saved.size() == 6);  // a weight and a slot of each
    for (const train::SavedVariable& variable : saved) CHECK_FALSE(contains(variable.name, "replica_"));
  }
  const dflow::testing::TemporaryFolder folder;
  train::Saver saver(graph, models.front().saved_variables());
  const auto begin = [&](Session& session) {
    session.run(initialize_variables(graph));
    for (const MirroredReplicas& each : models) session.run(each.mirror());
  };
  const auto losses_of = [&](Session& session) {
    std::vector<float> losses;
    for (std::size_t m = 0; m < models.size(); ++m) {
      session.run(steps[m]);
      for (const AnyOutput& loss : models[m].losses()) losses.push_back(session.run(loss.as<float>())());
    }
    return losses;
  };
  Session session(graph, {.devices = mirrored_cpus(3)}), other(graph, {.devices = mirrored_cpus(3)});
  begin(session);
  losses_of(session);
  saver.save(session, folder.file("model"));
  other.run(initialize_variables(graph));
  saver.restore(other, folder.file("model"));
  for (const MirroredReplicas& each : models) other.run(each.mirror());
  CHECK(losses_of(other) == losses_of(session));
}

TEST_CASE("a replica's penalties are those of its own variables", "[replicas]") {
  Graph graph({.seed = 1});
  const auto dense_loss = [&] {
    const Variable<float> w =
        get_variable<float>(graph, "w", {3}, {.initializer = init::ones(), .regularizer = regularizer::l2(0.25)});
    return reduce_sum(w.read()) + regularization_loss<float>(graph);
  };
  static_cast<void>(
      get_variable<float>(graph, "before", {2}, {.initializer = init::ones(), .regularizer = regularizer::l2(0.25)}));
  MirroredReplicas mirrored(train::GradientDescent(0.1f), {"/cpu:0", "/cpu:1", "/cpu:2"});
  const Operation step = mirrored.minimize(graph, [&](std::size_t) { return dense_loss(); });
  Session session(graph, {.devices = mirrored_cpus(3)});
  session.run(initialize_variables(graph));
  const float of_before = 0.5f * 2 / 2, of_own = 0.5f * 3 / 2;
  for (const AnyOutput& loss : mirrored.losses()) {
    CHECK(session.run(loss.as<float>())() == 3 + of_before + of_own);
  }
  session.run(step);
  // Outside of its replicas, the model has the losses of the first replica.
  const float w = 1 - 0.1f * 1.5f;
  CHECK(session.run(regularization_loss<float>(graph))() == Approx(of_before + 0.5f * 3 * w * w / 2));
}

TEST_CASE("mirrored replicas refuse models that differ, and what makes no sense", "[replicas]") {
  CHECK(code_of([] { return MirroredReplicas(train::Adam(0.1f), {}).num_replicas(); }) == Code::invalid_argument);
  const std::vector<std::string> two{"/cpu:0", "/cpu:1"};
  Graph graph;
  MirroredReplicas unused(train::Adam(0.1f), two);
  CHECK(code_of([&] { return unused.loss(); }) == Code::failed_precondition);
  CHECK(code_of([&] { return unused.mirror(); }) == Code::failed_precondition);
  CHECK(code_of([&] { return unused.saved_variables(); }) == Code::failed_precondition);
  const auto variable = [&](const std::string& name, const Shape& shape) {
    return Variable<float>(graph, Tensor<float>::full(shape, 1), {.name = name});
  };
  const auto error_with = [&](const std::function<Output<float>(std::size_t)>& model) {
    return error_of([&] { return MirroredReplicas(train::Adam(0.1f), two).minimize(graph, model); });
  };
  const std::string shapes = error_with(
      [&](std::size_t replica) { return reduce_sum(variable("w", {static_cast<std::int64_t>(replica + 2)}).read()); });
  CHECK(contains(shapes, "variable 0 of replica 1 is 'w', float [3], and of replica 0 'w', float [2]"));
  CHECK(contains(shapes, "mirrored_replicas_test.cpp"));
  CHECK(contains(error_with([&](std::size_t replica) {
                   const auto a = variable("v1", {2});
                   if (replica == 1) variable("more", {2});
                   return reduce_sum(a.read());
                 }),
                 "and of replica 0 no variable"));
  CHECK(contains(error_with([&](std::size_t replica) {
                   const auto a = variable("v2", {2}), b = variable("v3", {2});
                   return replica == 0 ? reduce_sum(a * b) : reduce_sum(a * 1.0f);
                 }),
                 "the loss of replica 1 does not depend on 'v3'"));
  // "w_1" may be "w" of a second model, but "_1" has no other name that was made unique
  const std::string numbered = error_with(
      [&](std::size_t replica) { return reduce_sum(variable(replica == 0 ? "in/_1" : "in/_2", {2}).read()); });
  CHECK(contains(numbered, "/_2', float [2], and of replica 0"));
  const auto x = placeholder<float>(graph, {});
  CHECK(contains(error_with([&](std::size_t) { return x; }), "makes no variables to train for replica 0"));
  CHECK(contains(error_of([&] {
                   return MirroredReplicas(train::Adam(0.1f), two)
                       .minimize(graph, [&](std::size_t) { return x; },
                                 {.variables = {variable("own", {2}).any_variable()}});
                 }),
                 "those that the model makes"));
  MirroredReplicas twice(train::GradientDescent(0.1f), {"/cpu:0"});
  const auto model = [&](std::size_t) { return reduce_sum(square(variable("w4", {2}) * 1.0f)); };
  twice.minimize(graph, model);
  CHECK(code_of([&] { return twice.minimize(graph, model); }) == Code::failed_precondition);
}

namespace {

/// A model of layers, on as many replicas as `mirrored` has: `layers` makes the result of an input.
struct MirroredLayers {
  Graph graph{{.seed = 5}};
  std::vector<Output<float>> x;
  Operation train;

  Output<float> loss_of(const std::function<Output<float>(Graph&, const Output<float>&)>& layers) {
    x.push_back(placeholder<float>(graph, {dynamic, mirrored_features}));
    return reduce_mean(square(layers(graph, x.back()) - 0.25f));
  }
  void minimize(MirroredReplicas& mirrored, const std::function<Output<float>(Graph&, const Output<float>&)>& layers) {
    train = mirrored.minimize(graph, [&](std::size_t) { return loss_of(layers); });
  }
  std::vector<Feed> feeds(std::int64_t step) const {
    const auto share = mirrored_rows / static_cast<std::int64_t>(x.size());
    std::vector<Feed> feeds;
    for (std::size_t r = 0; r < x.size(); ++r) {
      const auto begin = share * static_cast<std::int64_t>(r);
      feeds.emplace_back(x[r], mirrored_batch(step, begin, begin + share));
    }
    return feeds;
  }
  void run(Session& session, const std::vector<Feed>& feeds) const {
    const std::vector<Operation> update{train};
    std::vector<AnyTensor> none;
    session.run_erased({}, nullptr, feeds, {}, update, none);
  }
  std::vector<std::string> trained() const {
    std::vector<std::string> names;
    for (const NodeId id : graph.store()->collection("trainable_variables")) {
      names.push_back(graph.store()->node(id).name);
    }
    return names;
  }
  Tensor<float> value(Session& session, const std::string& name) const {
    const AnyVariable variable = AnyVariable::of(Operation(graph.store(), graph.store()->find(name)));
    return session.run(variable.as<float>().read());
  }
};

const std::vector<std::string> two_cpus{"/cpu:0", "/cpu:1"};

}  // namespace

TEST_CASE("models whose variables are found by name are mirrored, those of mixed precision too", "[replicas]") {
  const auto layers = [](Graph& graph, const Output<float>& x) {
    VariableScope half(graph, "", {.compute = DType::float16});
    const auto hidden = dense(dense(x, 4), 3);
    VariableScope head(graph, "head");
    const auto scale = get_variable<float>(graph, "scale", {3}, {.initializer = init::ones()});
    return Output<float>(hidden * scale.read());
  };
  for (const std::string outer : {"", "tower"}) {
    MirroredLayers model;
    MirroredReplicas mirrored(train::GradientDescent(0.1f), two_cpus);
    {
      std::optional<VariableScope> around;
      if (!outer.empty()) around.emplace(model.graph, outer);
      model.minimize(mirrored, layers);
    }
    const std::string path = outer.empty() ? "" : outer + "/";
    INFO("in '" << outer << "'");
    CHECK(model.trained() == std::vector<std::string>{path + "dense/kernel", path + "dense/bias",
                                                      path + "dense_1/kernel", path + "dense_1/bias",
                                                      path + "head/scale", path + "replica_1/dense/kernel",
                                                      path + "replica_1/dense/bias", path + "replica_1/dense_1/kernel",
                                                      path + "replica_1/dense_1/bias", path + "replica_1/head/scale"});
    Session session(model.graph, {.devices = mirrored_cpus(2)});
    session.run(initialize_variables(model.graph));
    session.run(mirrored.mirror());
    for (int step = 0; step < 3; ++step) model.run(session, model.feeds(step));
    for (const std::string name : {"dense/kernel", "dense_1/bias", "head/scale"}) {
      const Tensor<float> first = model.value(session, path + name);
      CHECK(are_equal(model.value(session, path + "replica_1/" + name), first));
    }
    CHECK(mirrored.saved_variables().size() == 5);
  }
}

TEST_CASE("layers outside of variable scopes are named in replicas as without them", "[replicas]") {
  MirroredLayers model;
  MirroredReplicas mirrored(train::GradientDescent(0.1f), two_cpus);
  model.minimize(mirrored, [](Graph&, const Output<float>& x) {
    return dense(dense(x, 4, {}, {.name = "same"}), 4, {}, {.name = "same"});
  });
  CHECK(model.trained() == std::vector<std::string>{"same/kernel", "same/bias", "same_1/kernel", "same_1/bias",
                                                    "replica_1/same/kernel", "replica_1/same/bias",
                                                    "replica_1/same_1/kernel", "replica_1/same_1/bias"});
}

TEST_CASE("a dynamic loss scale is one of all replicas, and changes once in a step", "[replicas]") {
  MirroredLayers model;
  const train::LossScaleOptimizer optimizer(train::GradientDescent(0.01f),
                                            train::LossScale::dynamic({.initial = 8, .growth_interval = 3}));
  const auto scale_of = [&](Session& session) { return session.run(optimizer.scale()).scalar(); };
  MirroredReplicas mirrored(optimizer, two_cpus);
  model.minimize(mirrored, [](Graph& graph, const Output<float>& x) {
    VariableScope half(graph, "", {.compute = DType::float16});
    return dense(x, 2);
  });
  Session session(model.graph, {.devices = mirrored_cpus(2)});
  session.run(initialize_variables(model.graph));
  session.run(mirrored.mirror());
  const auto are_alike = [&] {
    return are_equal(model.value(session, "dense/kernel"), model.value(session, "replica_1/dense/kernel"));
  };
  for (int step = 0; step < 3; ++step) {
    CHECK(scale_of(session) == 8);
    CHECK(session.run(optimizer.good_steps()).scalar() == step);
    model.run(session, model.feeds(step));
  }
  CHECK(scale_of(session) == 16);
  CHECK(are_alike());
  // One bad batch skips the step of all.
  const Tensor<float> before = model.value(session, "dense/kernel");
  for (std::size_t bad : {0u, 1u}) {
    std::vector<Feed> feeds = model.feeds(3);
    feeds[bad] =
        Feed(model.x[bad], Tensor<float>::full({6, mirrored_features}, std::numeric_limits<float>::infinity()));
    model.run(session, feeds);
    CHECK(scale_of(session) == (bad == 0 ? 8 : 4));
    CHECK(are_equal(model.value(session, "dense/kernel"), before));
    CHECK(are_alike());
  }
  std::size_t scales = 0;
  for (const train::SavedVariable& saved : mirrored.saved_variables()) scales += saved.name == "current_loss_scale";
  CHECK(scales == 1);
}

TEST_CASE("mirrored replicas take no name that a model or a user wants", "[replicas]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {dynamic, 3});
  identity(x, {.name = "mean_loss"});
  identity(x, {.name = "mirror"});
  dense(x, 2);  // so that the first replica's layer is another one
  const auto model = [&](std::size_t) { return reduce_mean(square(dense(x, 2))); };
  MirroredReplicas first(train::Adam(0.1f), two_cpus), second(train::Adam(0.1f), two_cpus);
  first.minimize(graph, model);
  second.minimize(graph, model);
  CHECK(first.loss().node().name == "mean_loss_1");
  CHECK(second.loss().node().name == "mean_loss_2");
  CHECK(second.mirror().name() == "mirror_2");
}

TEST_CASE("a minimize that fails leaves nothing, and can be tried again", "[replicas]") {
  Graph graph;
  const auto x = placeholder<float>(graph, {dynamic, 3});
  MirroredReplicas mirrored(train::Adam(0.1f), two_cpus);
  std::size_t bad = 1;
  const auto model = [&](std::size_t replica) {
    const Variable<float> w(graph, Tensor<float>::full({3}, 1), {.name = "w", .trainable = replica != bad});
    const Variable<float> v(graph, Tensor<float>::full({3}, 1), {.name = "v"});
    return reduce_mean(square(x * w + v));
  };
  const std::size_t before = graph.store()->size();
  CHECK(contains(error_of([&] { return mirrored.minimize(graph, model); }),
                 "variable 0 of replica 1 is 'w', float [3], not trained, and of replica 0 'w', float [3]"));
  CHECK(graph.store()->size() == before);
  CHECK(graph.store()->collection("variables").empty());
  bad = 2;
  mirrored.minimize(graph, model);
  CHECK(graph.store()->find("w").is_valid());
}

TEST_CASE("a replica's weight decay waits for its own gradients, not for those of all", "[replicas]") {
  const std::vector<std::string> four{"/cpu:0", "/cpu:1", "/cpu:2", "/cpu:3"};
  const auto sends_of = [&](auto optimizer) {
    MirroredLayers model;
    MirroredReplicas mirrored(optimizer, four);
    model.minimize(mirrored, [](Graph&, const Output<float>& x) { return dense(dense(x, 4), 3); });
    Session session(model.graph, {.devices = mirrored_cpus(4)});
    session.run(initialize_variables(model.graph));
    RunMetadata metadata;
    const std::vector<Operation> update{model.train};
    std::vector<AnyTensor> none;
    session.run_erased({.trace = true}, &metadata, model.feeds(0), {}, update, none);
    return std::count_if(metadata.stats.nodes.begin(), metadata.stats.nodes.end(),
                         [](const NodeStats& node) { return node.op == "_Send"; });
  };
  const auto adam = sends_of(train::Adam(0.1f)), decaying = sends_of(train::AdamW(0.1f, 0.01f));
  INFO(adam << " sends by Adam, " << decaying << " by AdamW");
  CHECK(adam > 0);
  CHECK(decaying == adam);
}

TEST_CASE("the mean gradients of mirrored replicas may be clipped before they are applied", "[replicas]") {
  int calls = 0;
  const train::MinimizeOptions clipped{.change = [&](auto gradients) {
    ++calls;
    return train::clip_by_global_norm(std::move(gradients), 0.01);
  }};
  std::vector<std::vector<float>> all;
  for (const int count : {1, 2, 3}) {
    std::vector<std::string> names;
    for (int i = 0; i < count; ++i) names.push_back(str_cat("/cpu:", i));
    MirroredModel model(names, clipped);
    CHECK(std::exchange(calls, 0) == count);
    Session session(model.graph, {.devices = mirrored_cpus(count)});
    model.begin(session);
    all.push_back(model.train_in(session, 0, 10));
    check_mirrored(model, session);
  }
  for (const std::vector<float>& losses : all) {
    for (std::size_t i = 0; i < losses.size(); ++i) CHECK(losses[i] == Approx(all[0][i]).epsilon(2e-3));
  }
  // By gradient descent, three steps are as long as the clipped gradients are.
  Graph graph;
  std::vector<Variable<float>> w;
  MirroredReplicas mirrored(train::GradientDescent(1.0), two_cpus);
  const Operation train = mirrored.minimize(
      graph,
      [&](std::size_t replica) {
        w.push_back(Variable<float>(graph, Tensor<float>(0.0f), {.name = "w"}));
        return Output<float>(w.back() * (replica == 0 ? 100.0f : -99.0f));  // their mean is 0.5
      },
      {.change = [](auto gradients) { return train::clip_by_global_norm(std::move(gradients), 0.25); }});
  Session session(graph, {.devices = mirrored_cpus(2)});
  session.run(initialize_variables(graph));
  for (int i = 0; i < 3; ++i) session.run(train);
  for (const Variable<float>& each : w) CHECK(session.run(each.read()).scalar() == -0.75f);
}

TEST_CASE("an optimizer that clips gets the mean gradients of all replicas", "[replicas]") {
  class Clipping final : public train::Optimizer {
    std::string_view name() const override { return "Clipping"; }
    std::unique_ptr<Updates> start(GraphStore&) const override { return nullptr; }
    Operation update(std::span<const train::GradientAndVariable> gradients,
                     const std::optional<Variable<std::int64_t>>& global_step, const At& at) const override {
      return inner_.apply_gradients(train::clip_by_global_norm({gradients.begin(), gradients.end()}, 1.0), global_step,
                                    at);
    }
    train::GradientDescent inner_{1.0};
  };
  Graph graph;
  std::vector<Variable<float>> w;
  MirroredReplicas mirrored(Clipping(), two_cpus);
  const Operation train = mirrored.minimize(graph, [&](std::size_t replica) {
    w.push_back(Variable<float>(graph, Tensor<float>(0.0f), {.name = "w"}));
    return Output<float>(w.back() * (replica == 0 ? 100.0f : -99.5f));  // their mean is 0.25
  });
  Session session(graph, {.devices = mirrored_cpus(2)});
  session.run(initialize_variables(graph));
  session.run(train);
  for (const Variable<float>& each : w) CHECK(session.run(each.read()).scalar() == -0.25f);
}
