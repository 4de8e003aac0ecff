#include <dflow/kernels/cpu/reduction/prod_gradient.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/dflow.hpp>

#include <limits>
#include <vector>

using namespace dflow;

TEST_CASE("the gradient of a product refuses axes that do not exist, repeat or are too many, fed or known") {
  Graph graph;
  const auto x = placeholder<float>(graph, {dynamic, 3});
  const auto axes = placeholder<std::int32_t>(graph, {dynamic});
  const auto others = Output<float>(build<ExclusiveProd>({x, axes}).output(0));
  const auto gradient = Output<float>(build<ExclusiveProdGrad>({x, axes, x}).output(0));
  Session session(graph, {.num_threads = 1});
  const Tensor<float> value({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto both = [&](const std::vector<std::int32_t>& given) {
    const Tensor<std::int32_t> fed({static_cast<std::int64_t>(given.size())}, given);
    const Code first = code_of([&] { session.run({{x, value}, {axes, fed}}, others); });
    CHECK(first == code_of([&] { session.run({{x, value}, {axes, fed}}, gradient); }));
    return first;
  };
  CHECK(both(std::vector<std::int32_t>(400, 1)) == Code::invalid_argument);
  CHECK(both({7}) == Code::invalid_argument);
  CHECK(both({-3}) == Code::invalid_argument);
  CHECK(both({std::numeric_limits<std::int32_t>::min()}) == Code::invalid_argument);
  CHECK(both({1, -1}) == Code::invalid_argument);
  CHECK(both({1}) == Code::ok);
  CHECK(both({-1, 0}) == Code::ok);
  CHECK(both({}) == Code::ok);

  const auto known = constant(graph, Tensor<std::int32_t>({1}, {2}));
  CHECK(code_of([&] { build<ExclusiveProd>({x, known}); }) == Code::invalid_argument);
  CHECK(code_of([&] { build<ExclusiveProdGrad>({x, known, x}); }) == Code::invalid_argument);
  const auto matrix = constant(graph, Tensor<std::int32_t>({1, 1}, {0}));
  CHECK(code_of([&] { build<ExclusiveProd>({x, matrix}); }) == Code::invalid_argument);
}

TEST_CASE("feeding a product does not keep bad axes of its gradient from being refused") {
  Graph graph;
  const auto x = placeholder<float>(graph, {dynamic, 3});
  const auto axes = placeholder<std::int32_t>(graph, {dynamic});
  const auto y = reduce_prod(x, axes);
  const auto dx = gradients(y, x);
  Session session(graph, {.num_threads = 1});
  CHECK(code_of([&] {
          session.run({{x, Tensor<float>({2, 3}, {1, 2, 3, 4, 5, 6})},
                       {axes, Tensor<std::int32_t>::full({40}, 1)},
                       {y, Tensor<float>({2}, {6, 120})}},
                      dx);
        }) == Code::invalid_argument);
}
