#include <dflow/train/saving/weights.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/core/tensor.hpp>
#include <dflow/io/npz.hpp>
#include <dflow/io/safetensors.hpp>
#include <dflow/kernels/state/device_files.hpp>
#include <dflow/ops/state/typed_variable.hpp>
#include <dflow/runtime/cpu_device.hpp>
#include <dflow/train/layers.hpp>
#include <dflow/train/partitioned_variable.hpp>
#include <dflow/train/saving/saver.hpp>

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace df = dflow;
using df::Tensor;
using df::train::load_weights;
using df::train::WeightOptions;
using df::train::WeightReport;
namespace layout = df::train::layout;

namespace {

using WeightNames = std::vector<std::string>;

/// A dense layer of two inputs and three units, all zeros, and a counter that is not trained.
struct WeightModel {
  WeightModel() { session.run(df::initialize_variables(graph)); }

  Tensor<float> kernel_value() { return session.run(df::Variable<float>(layer.kernel())); }
  Tensor<float> bias_value() { return session.run(df::Variable<float>(layer.bias())); }
  bool is_untouched() {
    return bitwise_equal(kernel_value(), Tensor<float>::zeros({2, 3})) &&
           bitwise_equal(bias_value(), Tensor<float>::zeros({3})) && session.run(steps).scalar() == 0;
  }

  df::Graph graph;
  df::Output<float> x = df::placeholder<float>(graph, {1, 2});
  df::Dense layer{3, {.kernel_initializer = df::init::zeros(), .name = "fc"}};
  df::Output<float> y = layer(x);
  df::Variable<std::int64_t> steps{graph, 0, {.name = "steps", .trainable = false}};
  df::Session session{graph};
};

const Tensor<float> pytorch_weight({3, 2}, {1, 4, 2, 5, 3, 6}), dense_kernel({2, 3}, {1, 2, 3, 4, 5, 6});
const Tensor<float> dense_bias({3}, {7, 8, 9});

std::unique_ptr<df::SavedTensors> weights_in_memory(std::vector<df::NamedTensor> more = {}) {
  more.push_back({"fc.weight", pytorch_weight});
  more.push_back({"fc.bias", dense_bias});
  return df::held_tensors(more, "model.pt");
}

}  // namespace

TEST_CASE("weights of PyTorch in a safetensors file go into a dense layer, and the report names what is left") {
  df::MemoryFileSystem files;
  df::write_safetensors(
      files, "/m.safetensors",
      std::vector<df::NamedTensor>{
          {"fc.weight", pytorch_weight}, {"fc.bias", dense_bias}, {"head.weight", Tensor<float>::zeros({1, 3})}});
  WeightModel model;
  const auto from = df::open_saved_tensors(files, "/m.safetensors");
  const WeightReport report =
      load_weights(model.session, *from,
                   {{model.layer.kernel(), "fc.weight", layout::transposed()}, {model.layer.bias(), "fc.bias"}});
  CHECK(bitwise_equal(model.kernel_value(), dense_kernel));
  CHECK(bitwise_equal(model.bias_value(), dense_bias));
  CHECK(report.loaded == WeightNames{"fc.weight", "fc.bias"});
  CHECK(report.missing.empty());
  CHECK(report.unused == WeightNames{"head.weight"});
  CHECK(report.kept.empty());
  CHECK(bitwise_equal(model.session.run({{model.x, Tensor<float>({1, 2}, {1, 1})}}, model.y),
                      Tensor<float>({1, 3}, {12, 15, 18})));
}

TEST_CASE("weights go into variables that have no value yet") {
  df::MemoryFileSystem files;
  df::write_npz(files, "/m.npz", std::vector<df::NamedTensor>{{"w", Tensor<float>({2}, {1, 2})}});
  df::Graph graph;
  const df::Variable<float> w(graph, Tensor<float>::zeros({2}), {.name = "w"});
  df::Session session(graph);
  const WeightReport report =
      load_weights(session, *df::open_saved_tensors(files, "/m.npz"), {{w.any_variable(), "w"}});
  CHECK(report.loaded == WeightNames{"w"});
  CHECK(bitwise_equal(session.run(w), Tensor<float>({2}, {1, 2})));
}

TEST_CASE("all that is wrong with weights is said at once, and nothing is set") {
  WeightModel model;
  const auto from = weights_in_memory({{"steps", Tensor<float>(1.0f)}, {"other", Tensor<float>(1.0f)}});
  const df::Status status = status_of([&] {
    return load_weights(model.session, *from,
                        {{model.layer.kernel(), "fc.weight"},
                         {model.layer.bias(), "fc.beta"},
                         {model.steps.any_variable(), "steps"},
                         {model.layer.bias(), "fc.bias"},
                         {df::AnyVariable(), "fc.bias"}});
  });
  CHECK(status.code() == df::Code::invalid_argument);
  CHECK(mentions(status, "load_weights from 'model.pt': no variable was set\n"));
  CHECK(mentions(status,
                 "\n  tensor 'fc.weight' is float[3,2], variable 'fc/kernel' is float[2,3]: transposed it fits, by "
                 "layout::transposed()"));
  CHECK(mentions(status, "\n  there is no tensor 'fc.beta'"));
  CHECK(mentions(status, "\n  tensor 'steps' is float[], variable 'steps' is int64[]: the element types differ"));
  CHECK(mentions(status, "\n  variable 'fc/bias' is there twice"));
  CHECK(mentions(status, "\n  a variable is empty"));
  CHECK(mentions(status, "\n  tensors that are not used: 'fc.bias', 'other'"));
  CHECK(mentions(status, "weights_test.cpp"));
  CHECK(model.is_untouched());
}

TEST_CASE("a weight that lacks a layout and a conversion of floats is told of both") {
  WeightModel model;
  const auto from = weights_in_memory({{"wide", Tensor<double>::zeros({3, 2})}, {"short", Tensor<double>::zeros({2})}});
  const df::Status status = status_of([&] {
    return load_weights(model.session, *from, {{model.layer.kernel(), "wide"}, {model.layer.bias(), "short"}});
  });
  CHECK(mentions(status,
                 "\n  tensor 'wide' is double[3,2], variable 'fc/kernel' is float[2,3]: transposed it fits, by "
                 "layout::transposed(), and WeightOptions::converts_floats would convert it\n"));
  CHECK(std::string(status.message()).ends_with("\n  tensor 'short' is double[2], variable 'fc/bias' is float[3]"));
  CHECK(model.is_untouched());
}

TEST_CASE("a tensor that is missing is NotFound, or is reported where that is allowed") {
  WeightModel model;
  const auto from = weights_in_memory();
  const std::vector<df::train::Weight> weights{{model.layer.kernel(), "fc.kernel"}, {model.layer.bias(), "fc.bias"}};
  const df::Status status = status_of([&] { return load_weights(model.session, *from, weights); });
  CHECK(status.code() == df::Code::not_found);
  CHECK(mentions(status, "tensors that are not used: 'fc.weight'"));
  CHECK(model.is_untouched());
  const WeightReport report = load_weights(model.session, *from, weights, {.allows_missing = true});
  CHECK(report.loaded == WeightNames{"fc.bias"});
  CHECK(report.missing == WeightNames{"fc.kernel"});
  CHECK(report.unused == WeightNames{"fc.weight"});
  CHECK(report.kept == WeightNames{"fc/kernel"});
  CHECK(bitwise_equal(model.bias_value(), dense_bias));
  CHECK(bitwise_equal(model.kernel_value(), Tensor<float>::zeros({2, 3})));
}

TEST_CASE("tensors that no variable takes are an error where all must be used") {
  WeightModel model;
  const df::Status status = status_of([&] {
    return load_weights(model.session, *weights_in_memory(), {{model.layer.bias(), "fc.bias"}},
                        {.allows_unused = false});
  });
  CHECK(status.code() == df::Code::invalid_argument);
  CHECK(mentions(status, "tensor 'fc.weight' is not used"));
  CHECK(model.is_untouched());
}

TEST_CASE("a tensor that does not fit is named with its layout and what would fit") {
  df::Graph graph;
  const df::Variable<float> kernel(graph, Tensor<float>::zeros({2, 3, 4, 5}), {.name = "conv/kernel"});
  const df::Variable<float> matrix(graph, Tensor<float>::zeros({2, 3}), {.name = "matrix"});
  df::Session session(graph);
  const auto from = df::held_tensors(std::vector<df::NamedTensor>{{"oihw", Tensor<float>::zeros({5, 4, 2, 3})},
                                                                  {"right", Tensor<float>::zeros({2, 3})},
                                                                  {"other", Tensor<float>::zeros({3, 4})}});
  const auto message = [&](const df::train::Weight& weight) {
    return error_of([&] { return load_weights(session, *from, {weight}); });
  };
  CHECK(
      contains(message({kernel.any_variable(), "oihw"}),
               "tensor 'oihw' is float[5,4,2,3], variable 'conv/kernel' is float[2,3,4,5]: as [rows, columns, inputs, "
               "filters] it fits, by layout::pytorch_conv2d()"));
  CHECK(contains(message({matrix.any_variable(), "right", layout::transposed()}),
                 "tensor 'right' is float[2,3], by its layout float[3,2], variable 'matrix' is float[2,3]: without its "
                 "layout it fits"));
  CHECK(contains(message({matrix.any_variable(), "other"}),
                 "tensor 'other' is float[3,4], variable 'matrix' is float[2,3] ["));
  CHECK(contains(message({matrix.any_variable(), "oihw", layout::transposed()}), "{1, 0}, each once"));
  CHECK(contains(message({matrix.any_variable(), {"right", "other"}}), "several tensors need a layout"));
  CHECK(contains(message({matrix.any_variable(), {}}), "no tensor is named for it"));
}

TEST_CASE("floats are converted where that is asked for, and not beyond their range") {
  df::Graph graph;
  const df::Variable<df::BFloat16> brain(graph, Tensor<df::BFloat16>::zeros({2}), {.name = "brain"});
  const df::Variable<df::Half> half(graph, Tensor<df::Half>::zeros({2}), {.name = "half"});
  const df::Variable<float> single(graph, Tensor<float>::zeros({2}), {.name = "single"});
  df::Session session(graph);
  constexpr float infinite = std::numeric_limits<float>::infinity();
  const auto from = df::held_tensors(
      std::vector<df::NamedTensor>{{"float", Tensor<float>({2}, {1.00390625f, -2})},  // between two of bfloat16
                                   {"double", Tensor<double>({2}, {0.1, 1e300})},
                                   {"large", Tensor<float>({2}, {65520, 0})},
                                   {"infinite", Tensor<float>({2}, {infinite, 0})},
                                   {"brain", Tensor<df::BFloat16>({2}, {df::BFloat16(3.0f), df::BFloat16(-0.5f)})},
                                   {"small", Tensor<double>({2}, {0.1, 1})}});
  CHECK(contains(error_of([&] {
                   return load_weights(session, *from, {{brain.any_variable(), "float"}});
                 }),
                 "tensor 'float' is float[2], variable 'brain' is bfloat16[2]: WeightOptions::converts_floats would "
                 "convert it"));
  const WeightOptions converting{.converts_floats = true};
  load_weights(session, *from,
               {{brain.any_variable(), "float"}, {half.any_variable(), "infinite"}, {single.any_variable(), "small"}},
               converting);
  CHECK(bitwise_equal(session.run(brain), Tensor<df::BFloat16>({2}, {df::BFloat16(1.0f), df::BFloat16(-2.0f)})));
  CHECK(float(session.run(half)(0)) == infinite);
  CHECK(session.run(single)(0) == 0.1f);
  load_weights(session, *from, {{single.any_variable(), "brain"}}, converting);
  CHECK(bitwise_equal(session.run(single), Tensor<float>({2}, {3, -0.5f})));
  for (const auto& [variable, name, what] :
       {std::tuple(half.any_variable(), "large", "65520 is too large for"),
        std::tuple(single.any_variable(), "double", "1e+300 is too large for float")}) {
    const std::string message = error_of([&, v = variable, n = name] {
      return load_weights(session, *from, {{v, n}}, converting);
    });
    CHECK(contains(message, what));
    CHECK(contains(message, std::string("tensor '") + name + "'"));
  }
}

TEST_CASE("a tensor that cannot be read is one of the things that are wrong") {
  df::MemoryFileSystem files;
  const std::string header =
      R"({"a":{"dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})";
  const std::uint64_t size = header.size();
  std::string file(reinterpret_cast<const char*>(&size), sizeof(size));
  file += header + std::string(8, '\0');
  files.write_file_atomically("/m.safetensors", std::string_view(file));
  df::Graph graph;
  const df::Variable<float> a(graph, Tensor<float>::zeros({4}), {.name = "a"});
  const df::Variable<float> b(graph, Tensor<float>::zeros({1}), {.name = "b"});
  df::Session session(graph);
  const auto from = df::open_saved_tensors(files, "/m.safetensors");
  const df::Status status = status_of([&] {
    return load_weights(session, *from, {{a.any_variable(), "a"}, {b.any_variable(), "c"}});
  });
  CHECK(status.code() == df::Code::unimplemented);
  CHECK(mentions(status, "is of type F8_E4M3, which is not read"));
  CHECK(mentions(status, "there is no tensor 'c'"));
  CHECK(load_weights(session, *from, {{b.any_variable(), "b"}}).unused == WeightNames{"a"});
}

TEST_CASE("the parts of a partitioned variable take their slices of one tensor") {
  df::Graph graph;
  const auto table = df::partitioned_variable<float>(graph, {5, 2}, 2, {.name = "table"});
  df::Session session(graph);
  const Tensor<float> whole({5, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  const auto from = df::held_tensors(std::vector<df::NamedTensor>{{"embedding.weight", whole}});
  std::vector<df::train::Weight> weights;
  for (const auto& part : table) weights.push_back({part.any_variable(), "embedding.weight"});
  const WeightReport report = load_weights(session, *from, weights);
  CHECK(report.loaded == WeightNames{"embedding.weight"});
  CHECK(report.kept.empty());
  CHECK(bitwise_equal(session.run(table.as_tensor()), whole));
  // A tensor of the part's own shape is the part.
  df::train::assign(session, {{table[1].any_variable(), Tensor<float>::zeros({2, 2})}});
  CHECK(bitwise_equal(session.run(table.as_tensor()).slice(2, 5), Tensor<float>({3, 2}, {4, 5, 0, 0, 0, 0})));
}

TEST_CASE("variables are assigned tensors, all or none") {
  WeightModel model;
  df::train::assign(model.session, {{model.layer.kernel(), dense_kernel}, {model.layer.bias(), dense_bias}});
  CHECK(bitwise_equal(model.kernel_value(), dense_kernel));
  CHECK(bitwise_equal(model.bias_value(), dense_bias));
  WeightModel other;
  const std::string message = error_of([&] {
    df::train::assign(other.session, {{other.layer.kernel(), pytorch_weight},
                                      {other.layer.bias(), dense_bias},
                                      {other.steps.any_variable(), Tensor<float>(1.0f)},
                                      {model.layer.kernel(), dense_kernel}});
    return 0;
  });
  CHECK(contains(message, "assign: no variable was set"));
  CHECK(contains(message, "variable 'fc/kernel' is float[2,3], and its value float[3,2]"));
  CHECK(contains(message, "variable 'steps' is int64[], and its value float[]"));
  CHECK(contains(message, "a variable is empty or of another graph"));
  CHECK(other.is_untouched());
  df::train::assign(other.session, {});
  CHECK(other.is_untouched());
}

TEST_CASE("a saver restores variables from npz and safetensors files") {
  const auto files = std::make_shared<df::MemoryFileSystem>();
  const std::vector<df::NamedTensor> tensors{{"w", dense_kernel}};
  df::write_npz(*files, "/m.npz", tensors);
  df::write_safetensors(*files, "/m.safetensors", tensors);
  df::Graph graph;
  const df::Variable<float> w(graph, Tensor<float>::zeros({2, 3}), {.name = "weights"});
  const df::Variable<float> wrong(graph, Tensor<float>::zeros({3, 2}), {.name = "wrong"});
  df::train::Saver saver(graph, {{"w", w.any_variable()}}, {.files = files});
  df::train::Saver other(graph, {{"w", wrong.any_variable()}}, {.files = files});
  for (const char* path : {"/m.npz", "/m.safetensors"}) {
    const auto devices = df::cpu_devices(1, {.pool = std::make_shared<df::InlinePool>()});
    for (const auto& device : devices) df::set_device_files(device->context(), files);
    df::Session session(graph, {.devices = devices});
    saver.restore(session, path);
    CHECK(bitwise_equal(session.run(w), dense_kernel));
    CHECK(contains(error_of([&] {
                     other.restore(session, path);
                     return 0;
                   }),
                   "the shapes differ"));
  }
}
