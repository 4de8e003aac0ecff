#include <dflow/ops/data_flow/partition.hpp>

#include "catch.hpp"

#include <dflow/dflow.hpp>

#include <cstdint>
#include <string>
#include <vector>

using namespace dflow;

namespace {

Output<std::int32_t> int32s(Graph& graph, std::vector<std::int32_t> values) {
  const auto size = static_cast<std::int64_t>(values.size());
  return constant(graph, Tensor<std::int32_t>({size}, values));
}

template <class F>
std::string error_of_partition(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    CHECK(error.code() == Code::invalid_argument);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("stitching what was partitioned gives the rows back, in one thread and in many") {
  constexpr std::int64_t rows = 3000, width = 7, parts = 11;
  for (const int threads : {1, 4}) {
    Graph graph;
    Tensor<double> data({rows, width});
    Tensor<std::int32_t> partitions(Shape{rows}), positions(Shape{rows});
    for (std::int64_t i = 0; i < rows * width; ++i) data.data()[i] = static_cast<double>(i) / 8;
    for (std::int64_t i = 0; i < rows; ++i) {
      partitions(i) = static_cast<std::int32_t>(i * 31 % 10);  // partition 10 gets nothing
      positions(i) = static_cast<std::int32_t>(i);
    }
    const auto x = placeholder<double>(graph, {dynamic, width});
    const auto to = placeholder<std::int32_t>(graph, {dynamic});
    const auto each = dynamic_partition(x, to, parts);
    const auto merged = dynamic_stitch(dynamic_partition(constant(graph, positions), to, parts), each);
    Session session(graph, SessionOptions{.num_threads = threads});
    const auto [back, last] = session.run({{x, data}, {to, partitions}}, merged, each[10]);
    CHECK(back.shape() == Shape{rows, width});
    CHECK(std::equal(back.begin(), back.end(), data.begin()));
    CHECK(last.shape() == Shape{0, width});
  }
}

TEST_CASE("what shapes partitions and merged rows have is known as far as the indices are") {
  Graph graph;
  const auto x = placeholder<float>(graph, {dynamic, 2, 5});
  const auto open = placeholder<std::int32_t>(graph, {dynamic});
  const auto matrix = placeholder<std::int32_t>(graph, {dynamic, 2});
  const auto any = placeholder<std::int32_t>(graph, PartialShape::unknown());
  CHECK(dynamic_partition(x, open, 3)[2].shape().to_string() == "[?,2,5]");
  CHECK(dynamic_partition(x, matrix, 3)[0].shape().to_string() == "[?,5]");
  CHECK_FALSE(dynamic_partition(x, any, 3)[0].shape().has_rank());
  const auto parts = dynamic_partition(x, int32s(graph, {1, 1, 0, 1}), 3);
  CHECK(parts[0].shape().to_string() == "[1,2,5]");
  CHECK(parts[1].shape().to_string() == "[3,2,5]");
  CHECK(parts[2].shape().to_string() == "[0,2,5]");
  CHECK(dynamic_stitch<float>({open, open}, {x, x}).shape().to_string() == "[?,2,5]");
  CHECK(dynamic_stitch<float>({int32s(graph, {7})}, {x}).shape().to_string() == "[8,2,5]");
  CHECK(dynamic_stitch<float>({int32s(graph, {7}), open}, {x, x}).shape().to_string() == "[?,2,5]");
}

TEST_CASE("an index so large that there is no room for its rows is an error, and the session goes on") {
  Graph graph;
  const auto indices = placeholder<std::int32_t>(graph, {dynamic});
  const auto x = placeholder<double>(graph, {dynamic, 1024});
  const auto merged = dynamic_stitch<double>({indices}, {x});
  SessionOptions options;
  options.memory_limit_bytes = std::size_t{1} << 20;
  Session session(graph, options);
  const auto run = [&](std::int32_t index) {
    return session.run({{indices, Tensor<std::int32_t>({1}, {index})}, {x, Tensor<double>::full({1, 1024}, 2.0)}},
                       merged);
  };
  try {
    run(2147483647);
    CHECK(false);
  } catch (const Error& error) {
    CHECK(error.code() == Code::resource_exhausted);
  }
  CHECK(run(1).shape() == Shape{2, 1024});
}

TEST_CASE("partitions and lists that do not fit are refused where they are built") {
  Graph graph;
  const auto x = placeholder<float>(graph, {4, 2});
  const auto refused = [](auto&& build) { return error_of_partition(build); };
  CHECK(refused([&] { dynamic_partition(x, placeholder<std::int32_t>(graph, {5}), 2); }).find("DynamicPartition") !=
        std::string::npos);
  CHECK(refused([&] {
          dynamic_partition(x, int32s(graph, {0, 1, 2, 0}), 2);
        }).find("partitions[2] = 2 is outside [0, 2)") != std::string::npos);
  CHECK(!refused([&] { dynamic_partition(x, int32s(graph, {0, 0, 0, 0}), 0); }).empty());
  CHECK(!refused([&] { dynamic_partition(x, int32s(graph, {0, 0, 0, 0}), -3); }).empty());
  CHECK(!refused([&] { dynamic_stitch<float>({}, {}); }).empty());
  CHECK(!refused([&] { dynamic_stitch<float>({int32s(graph, {0})}, {x, x}); }).empty());
  CHECK(refused([&] {
          dynamic_stitch<float>({int32s(graph, {0, 1, 2, -4})}, {x});
        }).find("indices[0][3] = -4 is negative") != std::string::npos);
}
