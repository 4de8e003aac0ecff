#include <dflow/kernels/cpu/array/concat.hpp>

#include "catch.hpp"

#include <dflow/dflow.hpp>

#include <limits>

using namespace dflow;

TEST_CASE("offsets of a concatenation that int32 cannot hold are an error, the end of the last part is not one") {
  Graph graph;
  const auto axis = constant<std::int32_t>(graph, 0);
  const auto first = placeholder<std::int32_t>(graph, {1}), second = placeholder<std::int32_t>(graph, {1});
  const BuiltNode built = build<ConcatOffset>({axis, first, second, second}, {.count = 3});
  const Output<std::int32_t> third(built.output(2)), middle(built.output(1));
  Session session(graph, {.num_threads = 1});
  const auto run = [&](std::int32_t a, std::int32_t b) {
    return session.run({{first, Tensor<std::int32_t>({1}, {a})}, {second, Tensor<std::int32_t>({1}, {b})}}, third)(0);
  };
  constexpr std::int32_t most = std::numeric_limits<std::int32_t>::max();
  CHECK(run(5, 4) == 9);
  CHECK(run(0, most) == most);
  CHECK_THROWS_WITH(run(5, most), Catch::Matchers::Contains("beyond the range of int32"));
}
