#pragma once

#include <dflow/base/files/crc32c.hpp>
#include <dflow/core/tensor.hpp>
#include <dflow/graph/graph_def.hpp>

#include <complex>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

/// GraphDefs for tests that save and load; no op table would accept them.
namespace dflow::test {

/// A tensor of the element type filled with awkward values.
template <class T>
AnyTensor awkward_tensor(const Shape& shape, std::uint32_t seed) {
  Tensor<T> tensor(shape);
  std::mt19937 random(seed);
  for (T& item : tensor.span()) {
    if constexpr (std::is_same_v<T, std::string>) {
      item = std::string(random() % 5, static_cast<char>(random()));
    } else if constexpr (is_complex_element<T>) {
      using Part = typename T::value_type;
      item = T(static_cast<Part>(static_cast<int>(random())) / 7, std::numeric_limits<Part>::infinity());
    } else if constexpr (is_floating_element<T>) {
      const T choices[] = {T(0.1f),
                           T(-0.0f),
                           std::numeric_limits<T>::infinity(),
                           std::numeric_limits<T>::max(),
                           std::numeric_limits<T>::denorm_min(),
                           std::numeric_limits<T>::quiet_NaN(),
                           T(-1e-3f)};
      item = choices[random() % 7];
    } else if constexpr (std::is_same_v<T, bool>) {
      item = random() % 2 == 0;
    } else {
      const T choices[] = {std::numeric_limits<T>::min(), std::numeric_limits<T>::max(), T(0), T(7)};
      item = choices[random() % 4];
    }
  }
  return tensor;
}

inline std::vector<AttrValue> awkward_values(bool with_large_tensors = true) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  std::vector<AttrValue> values{
      std::monostate(),
      true,
      false,
      std::int64_t{0},
      std::numeric_limits<std::int64_t>::min(),
      std::numeric_limits<std::int64_t>::max(),
      0.1,
      -0.0,
      nan,
      -nan,
      -infinity,
      5e-324,
      std::string(),
      std::string("base64:"),
      std::string("a\0b", 3),
      std::string("\xff\xfe"),
      std::string("tab\t \"quoted\" \\ line\n \xc3\xa9 [{,"),
      DType::invalid,
      DType::bfloat16,
      DType::resource,
      PartialShape(),
      PartialShape::unknown(),
      PartialShape{dynamic, 0, 784},
      AnyTensor(),
      std::vector<bool>{},
      std::vector<bool>{true, false, true},
      std::vector<std::int64_t>{},
      std::vector<std::int64_t>{-1, std::numeric_limits<std::int64_t>::max()},
      std::vector<double>{1, 2.5},
      std::vector<double>{nan, infinity, -0.0},
      std::vector<std::string>{},
      std::vector<std::string>{"", "a", std::string("\0", 1)},
      std::vector<DType>{DType::string, DType::invalid},
      std::vector<PartialShape>{PartialShape::unknown(), PartialShape{}, PartialShape{1, dynamic}},
      FunctionName{},
      FunctionName{"body"},
      FunctionName{std::string("\xff\0", 2)},
  };
  std::uint32_t seed = 0;
  for_each_type<AllTypes>([&]<class T>() {
    for (const Shape& shape : {Shape(), Shape{3}, Shape{2, 0}, Shape{2, 3, 2}, Shape{1100}}) {
      if (shape.num_elements() < 1000 || with_large_tensors) values.emplace_back(awkward_tensor<T>(shape, ++seed));
    }
  });
  // NaNs with bits that a conversion to double and back would lose, or keep only there.
  Tensor<float> signalling({2});
  const std::uint32_t bits[] = {0x7f800001u, 0xffc00000u};
  std::memcpy(signalling.data(), bits, sizeof bits);
  values.emplace_back(AnyTensor(signalling));
  return values;
}

inline GraphDef def_of_everything(bool with_large_tensors = true) {
  GraphDef def;
  def.seed = std::numeric_limits<std::uint64_t>::max();
  NodeDef& node = def.nodes.emplace_back();
  node.name = "everything";
  node.op = "Everything";
  node.device = "/job:ps/task:3/device:CPU:0";
  node.types = {{"T", DType::float32}, {"U", DType::int64}};
  node.inputs = {"a", "b:1", "^c"};
  node.colocated_with = "a";
  node.file = "src/model.cpp";
  node.line = std::numeric_limits<std::uint32_t>::max();
  for (const AttrValue& value : awkward_values(with_large_tensors))
    node.attrs.emplace_back("attr" + std::to_string(node.attrs.size()), value);
  def.nodes.emplace_back();
  def.nodes.emplace_back().name = std::string("\0 odd \xff name", 12);
  def.nodes.back().attrs = {{"", true}, {std::string("\0", 1), false}, {"twice", true}, {"twice", false}};
  def.collections = {{"empty", {}}, {"two", {"a", ""}}};
  return def;
}

inline GraphDef random_graph_def(std::uint32_t seed) {
  static const std::vector<AttrValue> values = awkward_values(false);
  std::mt19937 random(seed);
  const auto name = [&] { return "n" + std::to_string(random() % 50); };
  GraphDef def;
  def.seed = random();
  for (std::uint32_t nodes = random() % 12; nodes > 0; --nodes) {
    NodeDef& node = def.nodes.emplace_back();
    node.name = name();
    node.op = random() % 2 == 0 ? "Add" : "Const";
    if (random() % 3 == 0) node.device = "/cpu:0";
    if (random() % 3 == 0) node.types.emplace_back("T", static_cast<DType>(1 + random() % 19));
    for (std::uint32_t i = random() % 4; i > 0; --i) node.inputs.push_back((random() % 4 == 0 ? "^" : "") + name());
    for (std::uint32_t i = random() % 4; i > 0; --i) {
      node.attrs.emplace_back("a" + std::to_string(i), values[random() % values.size()]);
    }
    if (random() % 5 == 0) node.colocated_with = name();
    if (random() % 2 == 0) node.file = "f.cpp", node.line = random() % 1000;
  }
  for (std::uint32_t i = random() % 3; i > 0; --i)
    def.collections.emplace_back(name(), std::vector<std::string>{name(), name()});
  return def;
}

}  // namespace dflow::test
