// Sparse tensors among the feeds and the fetches of a step.
#include <dflow/core/sparse_tensor.hpp>

#include <dflow/dflow.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <cstdint>
#include <future>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace df = dflow;

namespace {

template <class T>
std::vector<T> elements_of_sparse(const df::Tensor<T>& tensor) {
  return {tensor.begin(), tensor.end()};
}

const df::SparseTensor<float>& unsorted_floats() {
  static const df::SparseTensor<float> value({{2, 1}, {0, 3}}, {7, 5}, {3, 4});
  return value;
}

}  // namespace

TEST_CASE("a sparse tensor is fed and fetched as one value") {
  df::Graph graph;
  const auto x = df::sparse_placeholder<float>(graph, {df::dynamic, 4});
  const auto y = df::placeholder<float>(graph);
  const auto sorted = df::sparse_reorder(x);
  const auto doubled = y * 2.0f;
  df::Session session(graph);
  const df::SparseTensor<float> alone = session.run({{x, unsorted_floats()}}, sorted);
  CHECK(elements_of_sparse(alone.indices()) == std::vector<std::int64_t>{0, 3, 2, 1});
  CHECK(elements_of_sparse(alone.values()) == std::vector<float>{5, 7});
  CHECK(elements_of_sparse(alone.dense_shape()) == std::vector<std::int64_t>{3, 4});
  // Beside dense feeds, dense fetches and an operation, in any order.
  const auto [number, sparse, dense] = session.run({{y, 3.0f}, {x, unsorted_floats()}}, doubled, sorted,
                                                   sorted.values.operation(), df::sparse_tensor_to_dense(sorted));
  CHECK(number.scalar() == 6);
  CHECK(elements_of_sparse(sparse.values()) == std::vector<float>{5, 7});
  CHECK(elements_of_sparse(dense) == std::vector<float>{0, 0, 0, 5, 0, 0, 0, 0, 0, 7, 0, 0});
}

TEST_CASE("sparse tensors go through asynchronous, prepared, compiled and partial steps") {
  df::Graph graph;
  const auto x = df::sparse_placeholder<float>(graph, {3, 4});
  const auto y = df::placeholder<float>(graph, {4});
  const auto product = df::sparse_dense_cwise_mul(x, y), sorted = df::sparse_reorder(product);
  df::Session session(graph);
  const df::Tensor<float> weights({4}, {1, 10, 100, 1000});
  const std::vector<float> expected{5000, 70};

  std::promise<std::pair<df::Status, df::SparseTensor<float>>> promise;
  session.run_async({{x, unsorted_floats()}, {y, weights}}, sorted,
                    [&](df::Status status, df::SparseTensor<float> result) {
                      promise.set_value({std::move(status), std::move(result)});
                    });
  const auto [status, later] = promise.get_future().get();
  REQUIRE(status.ok());
  CHECK(elements_of_sparse(later.values()) == expected);

  const auto step = session.prepare(df::feeds(x.indices, x.values, x.dense_shape, y), df::fetches(sorted, y));
  const auto [prepared, echo] =
      step(unsorted_floats().indices(), unsorted_floats().values(), unsorted_floats().dense_shape(), weights);
  CHECK(elements_of_sparse(prepared.values()) == expected);
  CHECK(elements_of_sparse(echo) == elements_of_sparse(weights));

  const auto function = df::compile(session, df::inputs(x.indices, x.values, x.dense_shape, y), df::outputs(y, sorted));
  const auto called =
      function(unsorted_floats().indices(), unsorted_floats().values(), unsorted_floats().dense_shape(), weights);
  CHECK(elements_of_sparse(std::get<1>(called).values()) == expected);

  auto run = session.partial_run(df::feeds(x.indices, x.values, x.dense_shape, y), df::fetches(sorted));
  const df::SparseTensor<float> partial = run.feed(x, unsorted_floats()).feed(y, weights).fetch(sorted);
  CHECK(elements_of_sparse(partial.values()) == expected);
}

TEST_CASE("a sparse tensor that is fed twice, or whose rank is another, is refused") {
  df::Graph graph;
  const auto x = df::sparse_placeholder<float>(graph, {3, 4}, {.name = "ids"});
  df::Session session(graph);
  const auto error_with = [&](const df::SparseTensor<float>& value) {
    return error_of([&] { session.run({{x, value}}, x.values); });
  };
  CHECK(error_with({{{0}}, {1}, {3}}).find("ids/indices") != std::string::npos);
  const std::string twice = error_of([&] { session.run({{x, unsorted_floats()}, {x, unsorted_floats()}}, x.values); });
  CHECK(twice.find("ids/indices") != std::string::npos);
}

TEST_CASE("a sparse tensor is refused unless its parts fit and its indices are inside") {
  using Sparse = df::SparseTensor<std::string>;
  const auto error_with = [](const df::Tensor<std::int64_t>& at, const std::vector<std::string>& values,
                             const std::vector<std::int64_t>& shape) {
    const auto count = static_cast<std::int64_t>(values.size()), rank = static_cast<std::int64_t>(shape.size());
    return error_of(
        [&] { return Sparse(at, df::Tensor<std::string>({count}, values), df::Tensor<std::int64_t>({rank}, shape)); });
  };
  const df::Tensor<std::int64_t> indices({{0, 3}, {2, 1}});
  CHECK(error_with(indices, {"a", "b"}, {3, 4}) == "no error");
  CHECK(error_with(indices, {"a", "b"}, {3, 3}).find("indices[0,1] = 3 is outside [0, 3)") != std::string::npos);
  CHECK(error_with(indices, {"a", "b"}, {2, 4}).find("indices[1,0] = 2 is outside [0, 2)") != std::string::npos);
  CHECK(error_with(indices, {"a", "b"}, {3, -4}).find("dense_shape[1] = -4 is negative") != std::string::npos);
  CHECK(error_with(indices, {"a"}, {3, 4}).find("values [1]") != std::string::npos);
  CHECK(error_with(indices, {"a", "b"}, {3}).find("dense_shape [1]") != std::string::npos);
  CHECK(error_of([] {
          return Sparse({}, df::Tensor<std::string>(), df::Tensor<std::int64_t>());
        }).find("uninitialised") != std::string::npos);
  const Sparse none(df::Tensor<std::int64_t>({0, 2}), {}, {3, 4});
  CHECK(none.values().num_elements() == 0);
}
