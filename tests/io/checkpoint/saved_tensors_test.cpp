#include <dflow/io/checkpoint/saved_tensors.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/core/tensor.hpp>
#include <dflow/io/checkpoint/own/checkpoint_writer.hpp>
#include <dflow/io/checkpoint/tensorflow/tensor_bundle.hpp>
#include <dflow/io/npz.hpp>
#include <dflow/io/safetensors.hpp>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <vector>

using dflow::Code;
using dflow::Shape;
using dflow::Tensor;

namespace {

/// The float scalars of a TensorFlow checkpoint, and its vectors or boxes of one float.
std::map<std::string, float> floats_of_golden(const std::string& path) {
  dflow::PosixFileSystem files;
  const auto saved = dflow::open_saved_tensors(files, path);
  std::map<std::string, float> values;
  for (const std::string& name : saved->names()) {
    const dflow::AnyTensor tensor = saved->read(name);
    REQUIRE(tensor.num_elements() == 1);
    CHECK(saved->find(name)->dtype == dflow::DType::float32);
    CHECK(saved->find(name)->shape == tensor.shape());
    values[name] = tensor.span<float>()[0];
  }
  return values;
}

}  // namespace

// Files from tensorflow/serving, servables/tensorflow/testdata. The values are from its README and the models' names.
TEST_CASE("checkpoints that TensorFlow published with its models are read, of both versions") {
  const char* root = std::getenv("DFLOW_DATA");
  if (root == nullptr) {
    WARN("DFLOW_DATA is not set: tf_golden is not read");
    return;
  }
  const std::string data = std::string(root) + "/tf_golden/";
  using Values = std::map<std::string, float>;
  CHECK(floats_of_golden(data + "saved_model_counter/variables") == Values{{"counter", 0}});
  CHECK(floats_of_golden(data + "saved_model_half_plus_three/variables") == Values{{"a", 0.5f}, {"b", 3}, {"c", 3}});
  CHECK(floats_of_golden(data + "saved_model_half_plus_two_cpu/variables") ==
        Values{{"a", 0.5f}, {"a2", 0.5f}, {"b", 2}, {"c", 3}, {"c2", 3}});
  CHECK(floats_of_golden(data + "saved_model_half_plus_two_mkl/variables") == Values{{"a", 0.5f},
                                                                                     {"b", 2},
                                                                                     {"c", 3},
                                                                                     {"conv2d/bias", 0},
                                                                                     {"conv2d/kernel", -0.52239597f},
                                                                                     {"conv2d_1/bias", 0},
                                                                                     {"conv2d_1/kernel", -1.0451120f},
                                                                                     {"conv2d_2/bias", 0},
                                                                                     {"conv2d_2/kernel", 1.5779432f}});
  CHECK(floats_of_golden(data + "v1_bad_half_plus_two/export") == Values{{"Variable", 0.5f}, {"Variable_1", 2}});
}

TEST_CASE("npz and safetensors files are opened as checkpoints are") {
  dflow::MemoryFileSystem files;
  const Tensor<float> w({2, 2}, {1, 2, 3, 4});
  const std::vector<dflow::NamedTensor> tensors{{"w", w}, {"n", Tensor<std::int64_t>(7)}};
  dflow::write_npz(files, "/m.npz", tensors);
  dflow::write_safetensors(files, "/m.safetensors", tensors);
  for (const std::string path : {"/m.npz", "/m.safetensors"}) {
    const auto saved = dflow::open_saved_tensors(files, path);
    CHECK(saved->source() == path);
    CHECK(saved->names() == std::vector<std::string>{"n", "w"});
    REQUIRE(saved->find("w").has_value());
    CHECK(saved->find("w")->dtype == dflow::DType::float32);
    CHECK(saved->find("w")->shape == Shape{2, 2});
    CHECK_FALSE(saved->find("v").has_value());
    CHECK(bitwise_equal(saved->read("w"), w));
    CHECK(code_of([&] { return saved->read("v"); }) == Code::not_found);
    const auto parts = saved->read_slices("w", std::vector{dflow::CheckpointSlice::parse("2 2 1,1:-")});
    REQUIRE(parts.size() == 1);
    CHECK(bitwise_equal(parts[0], Tensor<float>({1, 2}, {3, 4})));
    CHECK(code_of([&] { return saved->read_slices("w", std::vector{dflow::CheckpointSlice::parse("3 2 1,1:-")}); }) ==
          Code::invalid_argument);
  }
}

TEST_CASE("tensors in memory are read as those of a file") {
  const Tensor<float> w({2}, {1, 2});
  const auto held = dflow::held_tensors(std::vector<dflow::NamedTensor>{{"w", w}, {"b", Tensor<float>(3.0f)}}, "my.h5");
  CHECK(held->source() == "my.h5");
  CHECK(held->names() == std::vector<std::string>{"b", "w"});
  CHECK(held->find("w")->shape == Shape{2});
  CHECK(bitwise_equal(held->read("w"), w));
  CHECK_FALSE(held->read("w").shares_buffer_with(w));
  CHECK(contains(error_of([&] { return held->read("v"); }, Code::not_found), "my.h5 has no tensor 'v', only 'b', 'w'"));
  CHECK(contains(error_of([&] {
                   return dflow::held_tensors(std::vector<dflow::NamedTensor>{{"w", w}, {"w", w}});
                 }),
                 "'w' is there twice"));
  CHECK(code_of([] {
          return dflow::held_tensors(std::vector<dflow::NamedTensor>{{"w", {}}});
        }) == Code::invalid_argument);
}

TEST_CASE("a tensor that a checkpoint lacks is answered with those that it has") {
  dflow::MemoryFileSystem files;
  const Tensor<float> one(1.0f);
  std::vector<dflow::NamedTensor> many;
  for (char name = 'a'; name < 'l'; ++name) many.push_back({std::string(1, name), one});
  dflow::write_tensor_bundle(files, "/many", many);
  CHECK(mentions(status_of([&] { return dflow::open_saved_tensors(files, "/many")->read("w"); }),
                 "has no tensor 'w', only 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h' and 3 others"));
  dflow::CheckpointShardWriter shard(files, "/own");
  shard.add("w/Adam", one);
  shard.finish();
  dflow::merge_checkpoint(files, std::vector<std::string>{"/own"}, "/own");
  CHECK(mentions(status_of([&] { return dflow::open_saved_tensors(files, "/own")->read("w"); }),
                 "has no tensor 'w', only 'w/Adam'"));
}

TEST_CASE("a checkpoint of dflow's own and one of TensorFlow's are told apart by their files") {
  dflow::MemoryFileSystem files;
  const Tensor<float> one(1.0f), two({2}, {1, 2});
  dflow::CheckpointShardWriter shard(files, "/own");
  shard.add("a", one);
  shard.add("b", two);
  shard.finish();
  dflow::merge_checkpoint(files, std::vector<std::string>{"/own"}, "/own");
  dflow::write_tensor_bundle(files, "/bundle", std::vector<dflow::NamedTensor>{{"a", one}, {"b", two}});
  for (const std::string prefix : {"/own", "/bundle"}) {
    const auto saved = dflow::open_saved_tensors(files, prefix);
    CHECK(saved->names() == std::vector<std::string>{"a", "b"});
    CHECK(bitwise_equal(saved->read("b"), two));
    CHECK(saved->find("b")->shape == Shape{2});
    CHECK_FALSE(saved->find("c").has_value());
    CHECK(contains(error_of([&] { return saved->read("c"); }, Code::not_found), "'c'"));
  }
  CHECK(code_of([&] { return dflow::open_saved_tensors(files, "/none"); }) == Code::not_found);
  files.write_file_atomically("/bad.index", std::string_view("neither"));
  CHECK(code_of([&] { return dflow::open_saved_tensors(files, "/bad"); }) == Code::data_loss);
  files.write_file_atomically("/worse", std::string_view("neither"));
  CHECK(code_of([&] { return dflow::open_saved_tensors(files, "/worse"); }) == Code::data_loss);
}

TEST_CASE("a file of a checkpoint in place of its prefix is named as that") {
  dflow::MemoryFileSystem files;
  files.create_directories("/d");
  for (const std::string name :
       {"m.5-7.index", "m.5-7.meta", "m.5-7.data-00000-of-00001", "checkpoint", "notes.txt", ".index"}) {
    files.write_file_atomically("/d/" + name, "no table");
  }
  for (const std::string name : {"m.5-7.index", "m.5-7.meta", "m.5-7.data-00000-of-00001"}) {
    const dflow::Status status = status_of([&] { dflow::open_saved_tensors(files, "/d/" + name); });
    CHECK(status.code() == Code::invalid_argument);
    CHECK(status.to_string().find("'/d/" + name + "' is a file of the checkpoint '/d/m.5-7'") != std::string::npos);
  }
  const dflow::Status state = status_of([&] { dflow::open_saved_tensors(files, "/d/checkpoint"); });
  CHECK(state.code() == Code::invalid_argument);
  CHECK(state.to_string().find("latest_checkpoint") != std::string::npos);
  CHECK(status_of([&] { dflow::open_saved_tensors(files, "/d/notes.txt"); }).code() == Code::data_loss);
  // A file of version 1 may have any name: it is read as one.
  files.write_file_atomically("/d/m.5-7.old", "no table");
  CHECK(status_of([&] { dflow::open_saved_tensors(files, "/d/m.5-7.old"); }).code() == Code::data_loss);
  files.create_directories("/e/checkpoint");
  CHECK(status_of([&] { dflow::open_saved_tensors(files, "/e/checkpoint"); }).code() == Code::not_found);
  CHECK(status_of([&] { dflow::open_saved_tensors(files, "/d/m.5-8.index"); }).code() == Code::not_found);
  CHECK(dflow::has_saved_tensors(files, "/d/m.5-7"));
  CHECK_FALSE(dflow::has_saved_tensors(files, "/d/m.5-8"));
}
