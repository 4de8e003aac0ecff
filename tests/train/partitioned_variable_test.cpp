#include <dflow/train/partitioned_variable.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/base/files/base64.hpp>
#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/dflow.hpp>
#include <dflow/kernels/state/device_files.hpp>
#include <dflow/runtime/cpu_device.hpp>

#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace df = dflow;

TEST_CASE("A partitioned variable is shards of nearly equal size with names of their own") {
  df::Graph graph({.seed = 3});
  const auto table = df::partitioned_variable<float>(graph, {11, 2, 3}, 3, {.name = "words"});
  REQUIRE(table.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(table[i].name() == "words/part_" + std::to_string(i));
    CHECK(table[i].shape() == df::PartialShape{i < 2 ? 4 : 3, 2, 3});
  }
  const auto again = df::partitioned_variable<double>(graph, {4}, 4, {.name = "words", .trainable = false});
  CHECK(again[3].name() == "words_1/part_3");
  CHECK(df::global_variables(graph).size() == 7);
  CHECK(df::trainable_variables(graph).size() == 3);
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  std::set<float> values;
  for (const auto& shard : table) {
    for (const float value : session.run(shard)) values.insert(value);
  }
  CHECK(values.size() > 60);  // no two shards begin alike
}

TEST_CASE("Shards of a partitioned variable lie on different parameter servers") {
  df::Graph graph;
  const auto on = graph.device(df::train::replica_device(3, "/job:worker/task:0"));
  std::set<std::string> devices;
  for (const auto& shard : df::partitioned_variable<float>(graph, {12, 8}, 3)) {
    devices.insert(shard.handle().operation().node().device);
  }
  CHECK(devices.size() == 3);
}

TEST_CASE("Whatever a partitioned table and its lookup build has a line of the program") {
  df::Graph graph({.seed = 1});
  const auto ids = df::placeholder<std::int32_t>(graph, {df::dynamic, df::dynamic});
  const auto table = df::partitioned_variable<float>(graph, {12, 8}, 3);
  static_cast<void>(df::embedding_lookup(table, ids, df::PartitionStrategy::div));
  for (std::size_t i = 0; i < graph.num_nodes(); ++i) {
    const df::Node& node = graph.node(static_cast<df::NodeId>(i));
    INFO(node.op->name << " '" << node.name << "' at " << node.where.file_name());
    CHECK(std::string(node.where.file_name()) == __FILE__);
  }
}

TEST_CASE("A partitioned variable of no shards, or of more than it has rows, is refused") {
  df::Graph graph;
  const auto refused = [&](const df::Shape& shape, std::int64_t shards, df::PartitionedVariableOptions options = {}) {
    try {
      static_cast<void>(df::partitioned_variable<float>(graph, shape, shards, options));
    } catch (const df::Error& error) {
      CHECK(error.code() == df::Code::invalid_argument);
      CHECK(std::string(error.what()).find(__FILE__) != std::string::npos);
      return std::string(error.what()).find("partitioned_variable 'table'") != std::string::npos;
    }
    return false;
  };
  CHECK(refused({4, 2}, 0));
  CHECK(refused({4, 2}, -1));
  CHECK(refused({4, 2}, 5));
  CHECK(refused({4, 2}, std::int64_t{1} << 62));
  CHECK(refused({}, 1));
  CHECK(refused({4, 2}, 2, {.initializer = {}}));
  CHECK(refused({4, 2}, 2, {.partitioner = df::fixed_size_partitioner(2)}));
  CHECK(graph.num_nodes() == 0);
}

namespace {

/// 0, 1, 2, ... of that shape.
df::Tensor<float> counted(const df::Shape& shape) {
  df::Tensor<float> value(shape);
  for (std::int64_t i = 0; i < value.num_elements(); ++i) value.data()[i] = static_cast<float>(i);
  return value;
}

df::Session session_on(const df::Graph& graph, const std::shared_ptr<df::MemoryFileSystem>& files) {
  const auto devices = df::cpu_devices(1);
  df::set_device_files(devices[0]->context(), files);
  return df::Session(graph, {.devices = devices});
}

/// A graph with one variable "w" of 7 x 6 x 2 in parts, and the state of its Adam.
struct PartsModel {
  explicit PartsModel(const df::Partitioner& partitioner) : graph({.seed = 3}) {
    weights = df::partitioned_variable<float>(
        graph, {7, 6, 2},
        {.partitioner = partitioner, .initializer = df::init::value(counted({7, 6, 2})), .name = "w"});
    const auto loss = df::reduce_sum(df::square(weights.as_tensor() - 1.0f));
    train = df::train::Adam(0.1f).minimize(loss);
    session = std::make_unique<df::Session>(graph);
    session->run(df::initialize_variables(graph));
  }
  df::Tensor<float> value() { return session->run(weights.as_tensor()); }
  std::unique_ptr<df::train::Saver> saver() {
    return std::make_unique<df::train::Saver>(graph, df::train::SaverOptions{.random_streams = false});
  }

  df::Graph graph;
  df::PartitionedVariable<float> weights;
  df::Operation train;
  std::unique_ptr<df::Session> session;
};

}  // namespace

TEST_CASE("A variable in parts along any axis is its whole, and its gradients are those of the parts") {
  std::vector<df::Tensor<float>> trained;
  for (const int axis : {0, 1, 2, -1, -3}) {
    for (const std::int64_t parts : {1, 2, 5, 100}) {
      PartsModel model(df::fixed_size_partitioner(parts, axis));
      INFO(parts << " parts along axis " << axis);
      const int along = axis < 0 ? axis + 3 : axis;
      const std::int64_t length = df::Shape{7, 6, 2}[along];
      CHECK(model.weights.size() == static_cast<std::size_t>(std::min(parts, length)));
      CHECK(model.weights.axis() == (parts == 1 ? 0 : along));
      CHECK(model.weights.name() == "w");
      CHECK(model.weights.shape() == df::Shape{7, 6, 2});
      CHECK(df::bitwise_equal(model.value(), counted({7, 6, 2})));
      for (int step = 0; step < 3; ++step) model.session->run(model.train);
      trained.push_back(model.value());
      CHECK(df::bitwise_equal(trained.back(), trained.front()));
    }
  }
}

// The rules come from tensorflow/python/ops/partitioned_variables.py; the numbers come from TensorFlow 2.21.
TEST_CASE("Partitioners give TensorFlow's numbers of parts") {
  using Parts = std::vector<std::int64_t>;
  const auto f32 = df::DType::float32, text = df::DType::string;
  CHECK(df::fixed_size_partitioner(3)({10, 4}, f32) == Parts{3, 1});
  CHECK(df::fixed_size_partitioner(3, 1)({10, 2}, f32) == Parts{1, 2});
  const auto by_size = df::variable_axis_size_partitioner(64 << 10);
  CHECK(by_size({1024, 256}, f32) == Parts{16, 1});
  CHECK(by_size({1024}, f32) == Parts{1});
  CHECK(by_size({4, 1 << 20}, f32) == Parts{4, 1});
  CHECK(by_size({100, 1000}, f32) == Parts{7, 1});
  CHECK(df::variable_axis_size_partitioner(64 << 10, {.axis = 1})({1024, 256}, f32) == Parts{1, 16});
  CHECK(df::variable_axis_size_partitioner(64 << 10, {.max_parts = 2})({1024, 256}, f32) == Parts{2, 1});
  CHECK(df::variable_axis_size_partitioner(32, {.bytes_per_string = 8})({8, 2}, text) == Parts{4, 1});
  CHECK(df::min_max_variable_partitioner()({1 << 20}, f32) == Parts{1});
  CHECK(df::min_max_variable_partitioner({.max_parts = 100})({2048, 1024}, f32) == Parts{32, 1});
  CHECK(df::min_max_variable_partitioner({.max_parts = 4, .axis = 1})({2048, 1024}, f32) == Parts{1, 4});
  CHECK(df::min_max_variable_partitioner({.max_parts = 100, .min_part_bytes = 16})({3, 1}, f32) == Parts{1, 1});
  for (const auto& made : std::initializer_list<std::function<df::Partitioner()>>{
           [] { return df::fixed_size_partitioner(0); }, [] { return df::variable_axis_size_partitioner(0); },
           [] { return df::variable_axis_size_partitioner(1, {.max_parts = -1}); },
           [] { return df::min_max_variable_partitioner({.max_parts = 0}); },
           [] { return df::min_max_variable_partitioner({.min_part_bytes = 0}); }}) {
    CHECK(code_of(made) == df::Code::invalid_argument);
  }
  CHECK(code_of([] {
          return df::fixed_size_partitioner(2, 2)({4, 4}, df::DType::float32);
        }) == df::Code::invalid_argument);
  CHECK(by_size({0, 4}, f32) == Parts{1, 1});
}

TEST_CASE("Partitioners that make no parts are refused by the variable's name") {
  df::Graph graph;
  const auto message_of = [&](const df::Partitioner& partitioner, const df::Shape& shape = {4, 3}) {
    return std::string(status_of([&] {
                         return df::partitioned_variable<float>(graph, shape,
                                                                {.partitioner = partitioner, .name = "mine"});
                       }).message());
  };
  const auto gives = [](std::vector<std::int64_t> parts) {
    return [parts](const df::Shape&, df::DType) { return parts; };
  };
  CHECK(message_of(gives({2})).find("'mine': the partitioner gives 1 numbers for shape [4,3]") != std::string::npos);
  CHECK(message_of(gives({2, 2})).find("parts along axes 0 and 1") != std::string::npos);
  CHECK(message_of(gives({0, 1})).find("does not make 0 parts along axis 0") != std::string::npos);
  CHECK(message_of(gives({1, 4})).find("does not make 4 parts along axis 1") != std::string::npos);
  CHECK(message_of(gives({}), {}).find("a scalar has no parts") != std::string::npos);
  CHECK(message_of(df::fixed_size_partitioner(2, 5)).find("no axis 5") != std::string::npos);
  CHECK(graph.num_nodes() == 0);
  const auto columns =
      df::partitioned_variable<float>(graph, {4, 4}, {.partitioner = df::fixed_size_partitioner(2, 1)});
  const auto ids = df::constant(graph, df::Tensor<std::int64_t>({1}, {0}));
  CHECK(code_of([&] { return df::embedding_lookup(columns, ids); }) == df::Code::invalid_argument);
}

TEST_CASE("A checkpoint of one partition is restored into any other, with what the optimizer keeps") {
  auto files = std::make_shared<df::MemoryFileSystem>();
  const auto device_files = [&](PartsModel& model) {
    model.session = std::make_unique<df::Session>(session_on(model.graph, files));
    model.session->run(df::initialize_variables(model.graph));
  };
  const std::vector<df::Partitioner> partitioners{df::fixed_size_partitioner(1), df::fixed_size_partitioner(3),
                                                  df::fixed_size_partitioner(5), df::fixed_size_partitioner(4, 1),
                                                  df::fixed_size_partitioner(2, 2)};
  for (std::size_t from = 0; from < partitioners.size(); ++from) {
    PartsModel saved(partitioners[from]);
    device_files(saved);
    for (int step = 0; step < 3; ++step) saved.session->run(saved.train);
    df::train::Saver saver(saved.graph, {.files = files});
    const std::string path = saver.save(*saved.session, "/models/w", static_cast<std::int64_t>(from));
    const df::Tensor<float> then = saved.value();
    const auto checkpoint = df::open_saved_tensors(*files, path);
    REQUIRE(checkpoint->find("w"));
    CHECK(checkpoint->find("w")->shape == df::Shape{7, 6, 2});
    CHECK(checkpoint->find("w/Adam"));
    CHECK_FALSE(checkpoint->find("w/part_0"));
    CHECK(df::bitwise_equal(checkpoint->read("w"), then));
    saved.session->run(saved.train);
    const df::Tensor<float> next = saved.value();
    for (const df::Partitioner& partitioner : partitioners) {
      PartsModel restored(partitioner);
      device_files(restored);
      df::train::Saver(restored.graph, {.files = files}).restore(*restored.session, path);
      CHECK(df::bitwise_equal(restored.value(), then));
      restored.session->run(restored.train);
      CHECK(df::bitwise_equal(restored.value(), next));
    }
  }
}

TEST_CASE("A Saver with all it saves takes checkpoints of fewer and of more parts that random numbers began") {
  const auto files = std::make_shared<df::MemoryFileSystem>();
  const auto model = [](df::Graph& graph, std::int64_t parts, bool in_scope) {
    std::optional<df::VariableScope> scope;
    if (in_scope) scope.emplace(graph, "tower");
    const auto w = df::partitioned_variable<float>(
        graph, {7, 6},
        {.partitioner = df::fixed_size_partitioner(parts), .initializer = df::init::glorot_uniform(), .name = "w"});
    static_cast<void>(df::dropout(w.as_tensor(), 0.5f, df::Training(true)));  // its stream is saved
    return w;
  };
  for (const bool in_scope : {false, true}) {
    for (const std::int64_t from : {1, 3, 5}) {
      df::Graph saved({.seed = 1});
      const auto w = model(saved, from, in_scope);
      df::Session session = session_on(saved, files);
      session.run(df::initialize_variables(saved));
      const std::string path = df::train::Saver(saved, {.files = files}).save(session, "/random", from);
      const std::vector<std::string> names = df::open_saved_tensors(*files, path)->names();
      CHECK(names.size() == 2);
      for (const std::int64_t to : {1, 3, 5}) {
        INFO(from << " parts into " << to << (in_scope ? " in a scope" : ""));
        df::Graph restored({.seed = 2});
        const auto v = model(restored, to, in_scope);
        df::Session other = session_on(restored, files);
        df::train::Saver(restored, {.files = files}).restore(other, path);
        CHECK(df::bitwise_equal(other.run(v.as_tensor()), session.run(w.as_tensor())));
      }
    }
  }
}

TEST_CASE("One variable that random numbers begin takes a checkpoint of parts by a Saver without random streams") {
  const auto files = std::make_shared<df::MemoryFileSystem>();
  df::Graph parted({.seed = 1}), whole({.seed = 2});
  const auto parts = df::partitioned_variable<float>(parted, {4, 6}, 2, {.name = "w"});
  const df::Variable<float> w(whole, df::random_uniform<float>(whole, {4, 6}), {.name = "w"});
  df::Session of_parts = session_on(parted, files), of_whole = session_on(whole, files);
  of_parts.run(df::initialize_variables(parted));
  of_whole.run(df::initialize_variables(whole));
  const std::string path = df::train::Saver(parted, {.files = files}).save(of_parts, "/parts");
  CHECK(code_of([&] {
          df::train::Saver(whole, {.files = files}).restore(of_whole, path);
          return 0;
        }) == df::Code::not_found);
  df::train::Saver(whole, {.random_streams = false, .files = files}).restore(of_whole, path);
  CHECK(df::bitwise_equal(of_whole.run(w), of_parts.run(parts.as_tensor())));
  // The other way it takes no option.
  const std::string back = df::train::Saver(whole, {.files = files}).save(of_whole, "/whole");
  df::train::Saver(parted, {.files = files}).restore(of_parts, back);
}

TEST_CASE("A whole variable and parts of one name take each other's checkpoints, and names for each part stay") {
  auto files = std::make_shared<df::MemoryFileSystem>();
  df::Graph parted, whole;
  const auto parts = df::partitioned_variable<float>(
      parted, {4, 6},
      {.partitioner = df::fixed_size_partitioner(3, 1), .initializer = df::init::value(counted({4, 6})), .name = "w"});
  const df::Variable<float> variable(whole, df::Tensor<float>::full({4, 6}, 0.0f), {.name = "w"});
  df::Session of_parts = session_on(parted, files), of_whole = session_on(whole, files);
  of_parts.run(df::initialize_variables(parted));
  of_whole.run(df::initialize_variables(whole));
  df::train::Saver saves_parts(parted, {.files = files}), saves_whole(whole, {.files = files});
  saves_whole.restore(of_whole, saves_parts.save(of_parts, "/parts"));
  CHECK(df::bitwise_equal(of_whole.run(variable), counted({4, 6})));
  of_whole.run(variable.assign(variable * 2.0f));
  saves_parts.restore(of_parts, saves_whole.save(of_whole, "/whole"));
  CHECK(of_parts.run(parts.as_tensor())(3, 5) == 46);
  // Each part as a tensor of its own, as a Saver of some of them wants it.
  df::train::Saver one(parted, {{"w/part_1", parts[1].any_variable()}}, {.files = files});
  const std::string path = one.save(of_parts, "/one");
  CHECK(df::open_saved_tensors(*files, path)->find("w/part_1")->shape == df::Shape{4, 2});
  one.restore(of_parts, path);
  // All of them under another name.
  std::vector<df::train::SavedVariable> renamed;
  for (const auto& part : parts) renamed.push_back({"v", part.any_variable()});
  const std::string other = df::train::Saver(parted, renamed, {.files = files}).save(of_parts, "/other");
  CHECK(df::open_saved_tensors(*files, other)->find("v")->shape == df::Shape{4, 6});

  const auto message_of = [](const auto& run) { return std::string(status_of(run).message()); };
  renamed.pop_back();
  CHECK(message_of([&] {
          return std::make_unique<df::train::Saver>(parted, renamed);
        }).find("variable 'v' have 16 of") != std::string::npos);
  renamed.push_back({"v", parts[0].any_variable()});
  CHECK(message_of([&] { return std::make_unique<df::train::Saver>(parted, renamed); }).find("are there twice") !=
        std::string::npos);
  // Rows of one and columns of another variable have as many elements as the whole, and some of them twice.
  const auto halves = [&](const char* name, int axis) {
    return df::partitioned_variable<float>(parted, {4, 6},
                                           {.partitioner = df::fixed_size_partitioner(2, axis), .name = name});
  };
  const auto rows = halves("rows", 0), columns = halves("columns", 1);
  CHECK(message_of([&] {
          return std::make_unique<df::train::Saver>(
              parted,
              df::train::SavedVariables{{"mixed", rows[0].any_variable()}, {"mixed", columns[1].any_variable()}});
        }).find("variable 'mixed' are not one behind the other") != std::string::npos);
  // Another element type is an error that names the tensor.
  df::Graph doubles;
  static_cast<void>(df::partitioned_variable<double>(doubles, {4, 6}, 2, {.name = "w"}));
  df::Session of_doubles = session_on(doubles, files);
  const df::Status type = status_of([&] {
    df::train::Saver(doubles, {.files = files}).restore(of_doubles, "/whole");
    return 0;
  });
  CHECK(type.code() == df::Code::invalid_argument);
  CHECK(std::string(type.message()).find("tensor 'w' is float[4,6]") != std::string::npos);
  CHECK(std::string(type.message()).find("the element types differ") != std::string::npos);
  // Other shapes, types and names are errors that name the tensor, and nothing is set.
  df::Graph wrong;
  static_cast<void>(df::partitioned_variable<float>(wrong, {4, 5}, 2, {.name = "w"}));
  df::Session of_wrong = session_on(wrong, files);
  of_wrong.run(df::initialize_variables(wrong));
  const df::Status shape = status_of([&] {
    df::train::Saver(wrong, {.files = files}).restore(of_wrong, "/whole");
    return 0;
  });
  CHECK(shape.code() == df::Code::invalid_argument);
  INFO(shape.message());
  CHECK(std::string(shape.message()).find("tensor 'w' is float[4,6]") != std::string::npos);
  const df::Status missing = status_of([&] {
    df::train::Saver(wrong, {.files = files}).restore(of_wrong, "/one");
    return 0;
  });
  CHECK(missing.code() == df::Code::not_found);
  CHECK(std::string(missing.message()).find("'w'") != std::string::npos);
}

namespace {

// From TensorFlow 2.21: "w" [3, 4], at first 0, 1, 2 and so on, in three parts along its columns, after three steps of
// tf.compat.v1.train.AdamOptimizer(0.1).minimize(tf.reduce_sum(tf.square(w - 1.0))). Both versions of its format.
constexpr const char* parts_of_version_1 =
    "AADWAQrTAQoTCgtiZXRhMV9wb3dlchIAGAEiAAoTCgtiZXRhMl9wb3dlchIAGAEiAAoxCgF3EggSAggDEgIIBBgBIggKAhADCgIQAiIKCgIQAw"
    "oECAIQASIKCgIQAwoECAMQAQo2CgZ3L0FkYW0SCBICCAMSAggEGAEiCAoCEAMKAhACIgoKAhADCgQIAhABIgoKAhADCgQIAxABCjgKCHcvQWRh"
    "bV8xEggSAggDEgIIBBgBIggKAhADCgIQAiIKCgIQAwoECAIQASIKCgIQAwoECAMQARICCAEADxkAYmV0YTFfcG93ZXIAAQASFwoLYmV0YTFfcG"
    "93ZXISABoGKgQq9ic/BQoZMl9wb3dlcgABABIXCgtiZXRhMl9wb3dlchIAGgYqBEH6fj8BCSt3AAEBAoCDgIISKQoBdxIICgIQAwoCEAIaGioY"
    "jMmYPgAAgD8S02xAp2iWQJ9n9kC6MwtBCAIhgoESHwoBdxIKCgIQAwoECAIQARoOKgydzdk/KGi2QKozG0EIAiGDgRIfCgF3EgoKAhADCgQIAx"
    "ABGg4qDAjXLEDXZ9ZAnjMrQQINMC9BZGFtAAEBAoCDgIISLgoGdy9BZGFtEggKAhADCgIQAhoaKhiu2fe+AAAAAOm0yD9+CgdAxhpvQHDliEAN"
    "AiaCgRIkCgZ3L0FkYW0SCgoCEAMKBAgCEAEaDioMrNn3PpK6KUB/PZpADQImg4ESJAoGdy9BZGFtEgoKAhADCgQIAxABGg4qDBJVgz+rakxAj5"
    "WrQAcKMl8xAAEBAoCDgIISMAoIdy9BZGFtXzESCAoCEAMKAhACGhoqGJprIDwAAAAAQqLOPf3JOj7HIBI/E4w/Pw8CKIKBEiYKCHcvQWRhbV8x"
    "EgoKAhADCgQIAhABGg4qDJlrIDz4Z5M+phpzPw8CKIOBEiYKCHcvQWRhbV8xEgoKAhADCgQIAxABGg4qDHSVMT1+sdU+QGaWPwAAAAABAAAAAN"
    "jZPPUAAAAAAQAAAADA8qGwAAEDAQDlBQAAAAABAAAAAD+aBJrqBQj3BQ8AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAV/uAiyR1"
    "R9s=";
constexpr const char* parts_of_version_2_index =
    "AAAGCAEaAggBAAoVAHcAAQECgIOAgggBEggSAggDEgIIAiAIKBg1dw0DTQgCFYKBCAESCBICCAMSAggBICAoDDVQA9FiCAIVg4EIARIIEgIIAx"
    "ICCAEgLCgMNQhmbW8CDRUvQWRhbQABAQKAg4CCCAESCBICCAMSAggCIDgoGDWqOt6hDQIVgoEIARIIEgIIAxICCAEgUCgMNZyMJNQNAhWDgQgB"
    "EggSAggDEgIIASBcKAw1kug88wcKFV8xAAEBAoCDgIIIARIIEgIIAxICCAIgaCgYNbE2pP4PAhaCgQgBEggSAggDEgIIASCAASgMNQqIHe8PAh"
    "aDgQgBEggSAggDEgIIASCMASgMNSXrHo0ACwtiZXRhMV9wb3dlcggBEgAoBDWdTVgyBAcNMl9wb3dlcggBEgAgBCgENbFNHMQAAS53CAESCBIC"
    "CAMSAggEOggKAhADCgIQAjoKCgIQAwoECAIQAToKCgIQAwoECAMQAQEFLi9BZGFtCAESCBICCAMSAggEOggKAhADCgIQAjoKCgIQAwoECAIQAT"
    "oKCgIQAwoECAMQAQYCLl8xCAESCBICCAMSAggEOggKAhADCgIQAjoKCgIQAwoECAIQAToKCgIQAwoECAMQAQAAAAABAAAAAEn+ZjgAAAAAAQAA"
    "AADA8qGwAAEDeADjAwAAAAABAAAAAGArvJjoAwj1Aw8AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAV/uAiyR1R9s=";
constexpr const char* parts_of_version_2_data =
    "KvYnP0H6fj+MyZg+AACAPxLTbECnaJZAn2f2QLozC0Gdzdk/KGi2QKozG0EI1yxA12fWQJ4zK0Gu2fe+AAAAAOm0yD9+CgdAxhpvQHDliECs2f"
    "c+kropQH89mkASVYM/q2pMQI+Vq0CaayA8AAAAAEKizj39yTo+xyASPxOMPz+ZayA8+GeTPqYacz90lTE9frHVPkBmlj8=";

}  // namespace

TEST_CASE("What TensorFlow saved in parts is restored into any others, optimizer and all, and trained on as there") {
  auto files = std::make_shared<df::MemoryFileSystem>();
  const auto write = [&](const char* path, const char* text) {
    files->write_file_atomically(path, std::string_view(*df::from_base64(text)));
  };
  files->create_directories("/tf");
  write("/tf/v1", parts_of_version_1);
  write("/tf/v2.index", parts_of_version_2_index);
  write("/tf/v2.data-00000-of-00001", parts_of_version_2_data);
  const float saved[] = {0.29841268f, 1.0f,        1.7015873f, 2.7006245f,  3.7003827f, 4.700275f,
                         5.7002144f,  6.70017577f, 7.700149f,  8.70012856f, 9.7001133f, 10.700102f};
  const float next[] = {0.3960596f, 1.0f,       1.6039404f, 2.6015062f, 3.600915f,  4.6006546f,
                        5.6005092f, 6.6004162f, 7.6003523f, 8.6003046f, 9.6002684f, 10.6002407f};
  for (const char* path : {"/tf/v1", "/tf/v2"}) {
    for (const int axis : {0, 1}) {
      for (const std::int64_t parts : {1, 2, 3}) {
        INFO(path << " into " << parts << " along axis " << axis);
        df::Graph graph;
        const auto w = df::partitioned_variable<float>(
            graph, {3, 4}, {.partitioner = df::fixed_size_partitioner(parts, axis), .name = "w"});
        const auto train = df::train::Adam(0.1f).minimize(df::reduce_sum(df::square(w.as_tensor() - 1.0f)));
        df::Session session = session_on(graph, files);
        std::vector<df::train::SavedVariable> variables;  // there the powers of beta are in no scope
        for (const df::AnyVariable& each : df::global_variables(graph)) {
          const std::string name = each.whole_name();
          variables.push_back({name.starts_with("Adam/") ? name.substr(5) : name, each});
        }
        df::train::Saver(graph, variables, {.files = files}).restore(session, path);
        const df::Tensor<float> then = session.run(w.as_tensor());
        session.run(train);
        const df::Tensor<float> after = session.run(w.as_tensor());
        for (int i = 0; i < 12; ++i) {
          CHECK(then.data()[i] == Approx(saved[i]).epsilon(1e-6));
          CHECK(after.data()[i] == Approx(next[i]).epsilon(1e-6));
        }
      }
    }
  }
  // One part is damaged.
  std::string data = *df::from_base64(parts_of_version_2_data);
  data[8] = static_cast<char>(data[8] ^ 1);
  files->write_file_atomically("/tf/v2.data-00000-of-00001", std::string_view(data));
  df::Graph graph;
  const auto w =
      df::partitioned_variable<float>(graph, {3, 4}, {.partitioner = df::fixed_size_partitioner(2), .name = "w"});
  df::Session session = session_on(graph, files);
  const df::Status damaged = status_of([&] {
    df::train::Saver(graph, {.random_streams = false, .files = files}).restore(session, "/tf/v2");
    return 0;
  });
  CHECK(damaged.code() == df::Code::data_loss);
  CHECK(mentions(damaged, "tensor 'w'"));
}

TEST_CASE("A scope's partitioner makes the parts that none is given for, and finds them again") {
  df::Graph graph;
  const auto build = [&](df::Reuse reuse, std::int64_t parts) {
    df::VariableScope scope(graph, "tower", {.reuse = reuse, .partitioner = df::fixed_size_partitioner(parts, 1)});
    return df::partitioned_variable<float>(graph, {4, 8}, {.name = "w"});
  };
  const auto made = build(df::Reuse::never, 2), found = build(df::Reuse::always, 2);
  REQUIRE(made.size() == 2);
  CHECK(made[1].name() == "tower/w/part_1");
  CHECK(made[1].any_variable().whole_name() == "tower/w");
  CHECK(made[1].any_variable().slice() == "4 8 -:4,4");
  CHECK(found[1].handle() == made[1].handle());
  CHECK(code_of([&] { return build(df::Reuse::always, 4); }) == df::Code::invalid_argument);
  {
    // Rows of the same sizes are other parts.
    df::VariableScope scope(graph, "tower", {.reuse = df::Reuse::always});
    CHECK(code_of([&] { return scope.get_variable<float>("w/part_1", {4, 4}); }) == df::Code::invalid_argument);
  }
  CHECK(df::partitioned_variable<float>(graph, {4, 8}, {.name = "alone"}).size() == 1);
}

TEST_CASE("An initializer knows of what its part is") {
  df::Graph graph({.seed = 5});
  const auto parts = df::partitioned_variable<float>(
      graph, {400, 100},
      {.partitioner = df::fixed_size_partitioner(4), .initializer = df::init::glorot_uniform(), .name = "w"});
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  // For a part by itself the limit would be sqrt(6 / 200).
  const double limit = std::sqrt(6.0 / 500);
  double most = 0;
  for (const float value : session.run(parts.as_tensor())) most = std::max(most, std::abs(static_cast<double>(value)));
  CHECK(most <= limit);
  CHECK(most > 0.99 * limit);
  std::vector<df::VariablePart> told;
  const df::Initializer watching = [&](df::GraphStore& store, df::DType dtype, const df::VariablePart& part) {
    told.push_back(part);
    return df::init::zeros().of_part(store, dtype, part);
  };
  static_cast<void>(df::partitioned_variable<float>(graph, {5, 3}, 2, {.initializer = watching, .name = "watched"}));
  REQUIRE(told.size() == 2);
  CHECK(told[1].shape == df::Shape{2, 3});
  CHECK(told[1].whole == df::Shape{5, 3});
  CHECK(told[1].begin == std::vector<std::int64_t>{3, 0});
  df::Graph other;
  for (const df::AnyOutput& bad : {df::AnyOutput(), df::AnyOutput(df::constant(other, 1.0f))}) {
    const df::Initializer wrong = [&](df::GraphStore&, df::DType, const df::VariablePart&) { return bad; };
    CHECK(code_of([&] {
            return df::partitioned_variable<float>(graph, {5, 3}, 2, {.initializer = wrong, .name = "wrong"});
          }) == df::Code::invalid_argument);
  }
  using OfShape = std::function<df::AnyOutput(df::GraphStore&, df::DType, const df::Shape&)>;
  CHECK_FALSE(df::Initializer());
  CHECK_FALSE(df::Initializer(nullptr));
  CHECK_FALSE(df::Initializer(OfShape()));
  CHECK(df::Initializer(OfShape(df::init::ones())));
  CHECK(code_of([&] {
          return df::partitioned_variable<float>(graph, {5, 3}, 2, {.initializer = df::init::value(counted({3, 5}))});
        }) == df::Code::invalid_argument);
}
