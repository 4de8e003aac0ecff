// Builders on sparse tensors, against values by hand.
#include <dflow/dflow.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace df = dflow;

namespace {

template <class T>
std::vector<T> values_in(const df::Tensor<T>& tensor) {
  return {tensor.begin(), tensor.end()};
}

/// [[0, 5, 0], [7, 0, 2]], with 7 in two parts and out of order.
df::SparseTensor<double> two_sparse_rows() { return {{{1, 2}, {1, 0}, {0, 1}, {1, 0}}, {2, 4, 5, 3}, {2, 3}}; }

bool has_slices(const df::AnyOutput& y, const df::AnyOutput& x) {
  const std::vector<df::AnyOutput> of{y}, by{x};
  return df::gradients(of, by, df::GradientOptions{})[0].slices.has_value();
}

}  // namespace

TEST_CASE("sums of a sparse tensor over axes are those of the dense one") {
  df::Graph graph;
  const auto x = df::sparse_placeholder<double>(graph, {df::dynamic, df::dynamic});
  df::Session session(graph);
  const auto [all, kept, rows, columns, kept_rows, both] =
      session.run({{x, two_sparse_rows()}}, df::sparse_reduce_sum(x), df::sparse_reduce_sum(x, {}, {.keep_dims = true}),
                  df::sparse_reduce_sum(x, 1), df::sparse_reduce_sum(x, {-2}),
                  df::sparse_reduce_sum(x, {-1}, {.keep_dims = true}), df::sparse_reduce_sum(x, {0, 1}));
  CHECK(all.scalar() == 14);
  CHECK(kept.shape() == df::Shape{1, 1});
  CHECK(values_in(rows) == std::vector<double>{5, 9});
  CHECK(values_in(columns) == std::vector<double>{7, 5, 2});
  CHECK(kept_rows.shape() == df::Shape{2, 1});
  CHECK(values_in(kept_rows) == values_in(rows));
  CHECK(both.scalar() == 14);
}

TEST_CASE("a sparse tensor times, by and plus a dense one") {
  df::Graph graph;
  const auto x = df::sparse_placeholder<double>(graph, {2, 3});
  const auto y = df::placeholder<double>(graph, {3}), z = df::placeholder<double>(graph, {2, 3});
  df::Session session(graph);
  const df::Tensor<double> columns({3}, {1, 10, 4}), full({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto [product, quotient, sum] =
      session.run({{x, two_sparse_rows()}, {y, columns}, {z, full}}, df::sparse_dense_cwise_mul(x, y),
                  df::sparse_dense_cwise_div(x, y), df::sparse_tensor_dense_add(x, z));
  CHECK(values_in(product.values()) == std::vector<double>{8, 4, 50, 3});
  CHECK(values_in(product.indices()) == values_in(two_sparse_rows().indices()));
  CHECK(values_in(quotient.values()) == std::vector<double>{0.5, 4, 0.5, 3});
  CHECK(values_in(sum) == std::vector<double>{1, 7, 3, 11, 5, 8});
}

TEST_CASE("builders on sparse tensors have gradients of first and second order") {
  df::Graph graph;
  const auto x = df::sparse_placeholder<double>(graph, {2, 3});
  const auto y = df::placeholder<double>(graph, {3}), z = df::placeholder<double>(graph, {2, 3});
  const auto ordered = df::sparse_reorder(x);
  const auto z_row = df::constant(graph, df::Tensor<double>({3}, {1, 3, 2}));
  const auto weights = df::constant(graph, df::Tensor<double>({6}, {1, 3, 2, 5, 4, 6}));
  const auto squared = [](const df::Output<double>& value) { return df::reduce_sum(value * value); };
  const std::vector<df::Output<double>> losses{
      squared(ordered.values * 3.0 + ordered.values * ordered.values),
      squared(df::sparse_reduce_sum(x, 1)),
      squared(df::sparse_dense_cwise_mul(x, y).values),
      squared(df::sparse_dense_cwise_div(x, y).values),
      squared(df::sparse_tensor_dense_add(x, z)),
      squared(df::sparse_tensor_dense_matmul(x, df::sparse_tensor_dense_matmul(x, z, {.adjoint_a = true}))),
      squared(df::sparse_tensor_to_dense(ordered, 0, {.validate_indices = false})),
      squared(df::sparse_add(x, ordered).values * z_row),
      squared(df::sparse_concat(1, std::vector{x, ordered}).values * weights),
      squared(df::sparse_split(1, 2, x)[0].values) + squared(df::sparse_split(0, 2, x)[1].values),
  };
  df::Session session(graph);
  const df::SparseTensor<double> at({{1, 2}, {0, 1}, {1, 0}}, {2, 4, 5}, {2, 3});
  const df::Tensor<double> columns({3}, {1, 2, 4}), full({2, 3}, {1, 2, 3, 4, 5, 6});
  const std::vector<df::Feed> fed{{x.values, at.values()}, {y, columns}, {z, full}};
  for (const df::Output<double>& loss : losses) {
    const df::GradientCheckOptions options{.feeds = {{x.indices, at.indices()}, {x.dense_shape, at.dense_shape()}}};
    const auto slope = df::gradients(loss, x.values);
    for (const df::Output<double>& of : {loss, df::reduce_sum(slope * x.values * x.values)}) {
      const auto check = df::check_gradients(session, of, fed, options);
      INFO(check.to_string());
      CHECK(check.is_ok());
    }
  }
}

TEST_CASE("the sum of sparse tensors has the indices of both, each once, and none below the threshold") {
  df::Graph graph;
  const auto a = df::sparse_placeholder<double>(graph, {2, 3}), b = df::sparse_placeholder<double>(graph);
  const auto sum = df::sparse_add(a, b), large = df::sparse_add(a, b, 2.0);
  df::Session session(graph);
  const df::SparseTensor<double> other({{0, 0}, {0, 1}, {1, 2}}, {1, -5, 3}, {2, 3});
  const auto [every, some] = session.run({{a, two_sparse_rows()}, {b, other}}, sum, large);
  CHECK(values_in(every.indices()) == std::vector<std::int64_t>{0, 0, 0, 1, 1, 0, 1, 2});
  CHECK(values_in(every.values()) == std::vector<double>{1, 0, 7, 5});
  CHECK(values_in(every.dense_shape()) == std::vector<std::int64_t>{2, 3});
  CHECK(values_in(some.indices()) == std::vector<std::int64_t>{1, 0, 1, 2});
  CHECK(values_in(some.values()) == std::vector<double>{7, 5});
  const df::SparseTensor<double> longer({{0, 0}}, {1}, {2, 4});
  const std::string error = error_of([&] { session.run({{a, two_sparse_rows()}, {b, longer}}, sum); });
  CHECK(error.find("SparseAdd: the dense shapes differ") != std::string::npos);
  CHECK(error.find("sparse_test.cpp") != std::string::npos);
}

TEST_CASE("sparse tensors are joined along an axis and split again") {
  df::Graph graph;
  const auto a = df::sparse_placeholder<double>(graph, {2, 3}), b = df::sparse_placeholder<double>(graph, {2, 2});
  const auto joined = df::sparse_concat(-1, std::vector{a, b, a});
  const auto below = df::sparse_concat(0, std::vector{a, b});
  const auto parts = df::sparse_split(1, 3, joined), halves = df::sparse_split(0, 2, a);
  df::Session session(graph);
  const df::SparseTensor<double> left({{0, 1}, {1, 0}, {1, 2}}, {5, 7, 2}, {2, 3});
  const df::SparseTensor<double> right({{0, 0}, {1, 1}}, {8, 9}, {2, 2});
  const auto [all, x, y, z, top, bottom] =
      session.run({{a, left}, {b, right}}, joined, parts[0], parts[1], parts[2], halves[0], halves[1]);
  CHECK(values_in(all.dense_shape()) == std::vector<std::int64_t>{2, 8});
  CHECK(values_in(all.indices()) == std::vector<std::int64_t>{0, 1, 0, 3, 0, 6, 1, 0, 1, 2, 1, 4, 1, 5, 1, 7});
  CHECK(values_in(all.values()) == std::vector<double>{5, 8, 5, 7, 2, 9, 7, 2});
  // Parts of 3, 3 and 2 columns, as TensorFlow's.
  CHECK(values_in(x.dense_shape()) == std::vector<std::int64_t>{2, 3});
  CHECK(values_in(x.indices()) == std::vector<std::int64_t>{0, 1, 1, 0, 1, 2});
  CHECK(values_in(x.values()) == std::vector<double>{5, 7, 2});
  CHECK(values_in(y.indices()) == std::vector<std::int64_t>{0, 0, 1, 1, 1, 2});
  CHECK(values_in(y.values()) == std::vector<double>{8, 9, 7});
  CHECK(values_in(z.dense_shape()) == std::vector<std::int64_t>{2, 2});
  CHECK(values_in(z.indices()) == std::vector<std::int64_t>{0, 0, 1, 1});
  CHECK(values_in(z.values()) == std::vector<double>{5, 2});
  CHECK(values_in(top.indices()) == std::vector<std::int64_t>{0, 1});
  CHECK(values_in(bottom.values()) == std::vector<double>{7, 2});
  const auto error_with = [&](const df::SparseTensor<double>& value, const auto& fetched) {
    return error_of([&] { session.run({{a, left}, {b, value}}, fetched); });
  };
  CHECK(error_with(right, below).find("another dimension than that of the axis differs") != std::string::npos);
  CHECK(error_with(right, df::sparse_split(1, 4, a)[0]).find("more parts than the dimension") != std::string::npos);
  CHECK(error_of([&] {
          df::sparse_concat(2, std::vector{a, b});
        }).find("axis 2 is outside [-2, 2)") != std::string::npos);
  CHECK(error_of([&] { df::sparse_concat(0, std::vector<df::SparseOutput<double>>{}); }).find("there are no") !=
        std::string::npos);
  CHECK(error_of([&] {
          df::sparse_concat(0, std::vector{a, df::sparse_placeholder<double>(graph, {df::dynamic})});
        }).find("another rank") != std::string::npos);
  CHECK(error_of([&] { df::sparse_split(0, 0, a); }).find("0 parts") != std::string::npos);
}

TEST_CASE("a sparse tensor becomes dense with any default, and texts do, too") {
  df::Graph graph;
  const auto words = df::string_split(df::constant(graph, df::Tensor<std::string>({3}, {"a b", "", "c"})), " ");
  const auto x = df::sparse_placeholder<double>(graph);
  df::Session session(graph);
  const df::Tensor<std::string> dense = session.run(df::sparse_tensor_to_dense(words, "-"));
  CHECK(values_in(dense) == std::vector<std::string>{"a", "b", "-", "-", "c", "-"});
  const auto y = df::sparse_tensor_to_dense(x, -1);
  CHECK(values_in(session.run({{x, {{{1}, {3}}, {5, 6}, {4}}}}, y)) == std::vector<double>{-1, 5, -1, 6});
  const std::string error = error_of([&] { session.run({{x, two_sparse_rows()}}, y); });
  for (const char* part : {"index 1, [1,0], of dense shape [2,3], is out of order: it comes before index 0, [1,2]",
                           "SparseToDense", "sparse_test.cpp"}) {
    CHECK(error.find(part) != std::string::npos);
  }
}

TEST_CASE("rows of a table are combined for each row of sparse ids") {
  df::Graph graph;
  const df::Variable<double> table(graph, df::Tensor<double>({5, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}));
  const auto shards =
      std::vector<df::Variable<double>>{df::Variable<double>(graph, df::Tensor<double>({3, 2}, {1, 2, 5, 6, 9, 10})),
                                        df::Variable<double>(graph, df::Tensor<double>({2, 2}, {3, 4, 7, 8}))};
  const auto ids = df::sparse_placeholder<std::int64_t>(graph, {df::dynamic, df::dynamic});
  const auto weights = df::sparse_placeholder<float>(graph, {df::dynamic, df::dynamic});
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  // Rows 1 and 3 of the batch have no ids.
  const df::Tensor<std::int64_t> places({{0, 0}, {0, 2}, {2, 0}});
  const df::SparseTensor<std::int64_t> named(places, {1, 4, 2}, {4, 3});
  const df::SparseTensor<float> weighing(places, {2, 0.5f, 3}, {4, 3});
  const double root = std::sqrt(2.0), norm = std::sqrt(4.25);
  const std::vector<std::vector<double>> plain{
      {12, 14, 0, 0, 5, 6, 0, 0}, {6, 7, 0, 0, 5, 6, 0, 0}, {12 / root, 14 / root, 0, 0, 5, 6, 0, 0}};
  const std::vector<std::vector<double>> with_weights{
      {10.5, 13, 0, 0, 15, 18, 0, 0}, {4.2, 5.2, 0, 0, 5, 6, 0, 0}, {10.5 / norm, 13 / norm, 0, 0, 5, 6, 0, 0}};
  const auto close = [](const df::Tensor<double>& got, const std::vector<double>& wanted) {
    REQUIRE(got.shape() == df::Shape{4, 2});
    for (std::size_t i = 0; i < wanted.size(); ++i) CHECK(got.span()[i] == Catch::Approx(wanted[i]));
  };
  for (const df::Combiner combiner : {df::Combiner::sum, df::Combiner::mean, df::Combiner::sqrtn}) {
    const auto i = static_cast<std::size_t>(combiner);
    const auto one = df::embedding_lookup_sparse(table, ids, combiner);
    const auto many = df::embedding_lookup_sparse(shards, ids, combiner);
    const auto weighted = df::embedding_lookup_sparse(table, ids, weights, combiner);
    const auto weighted_many = df::embedding_lookup_sparse(shards, ids, weights, combiner);
    const auto [a, b, c, d] = session.run({{ids, named}, {weights, weighing}}, one, many, weighted, weighted_many);
    close(a, plain[i]);
    close(b, plain[i]);
    close(c, with_weights[i]);
    close(d, with_weights[i]);
    CHECK(has_slices(df::reduce_sum(one), table));
    CHECK(has_slices(df::reduce_sum(weighted), table));
    CHECK(has_slices(df::reduce_sum(many), shards[1]));
    CHECK(has_slices(df::reduce_sum(weighted_many), shards[0]));
  }
}

TEST_CASE("an empty batch and an empty vocabulary of sparse ids, and weights whose sum is 0") {
  df::Graph graph;
  const auto table = df::placeholder<double>(graph, {df::dynamic, 2});
  const auto ids = df::sparse_placeholder<std::int32_t>(graph, {df::dynamic, df::dynamic});
  const auto weights = df::sparse_placeholder<double>(graph, {df::dynamic, df::dynamic});
  const auto plain = df::embedding_lookup_sparse(table, ids);
  const auto weighted = df::embedding_lookup_sparse(table, ids, weights);
  const auto by_weights = df::gradients(df::reduce_sum(weighted), weights.values);
  df::Session session(graph);
  const df::SparseTensor<std::int32_t> none(df::Tensor<std::int64_t>({0, 2}), {}, {3, 0});
  const df::Tensor<double> no_rows({0, 2}), rows({2, 2}, {1, 2, 3, 4});
  CHECK(values_in(session.run({{table, no_rows}, {ids, none}}, plain)) == std::vector<double>(6, 0));
  const df::Tensor<std::int64_t> places({{0, 0}, {0, 1}, {2, 0}});
  const df::SparseTensor<std::int32_t> named(places, {0, 1, 0}, {3, 2});
  const df::SparseTensor<double> weighing(places, {1, -1, 2}, {3, 2});
  const auto [y, slope] = session.run({{table, rows}, {ids, named}, {weights, weighing}}, weighted, by_weights);
  CHECK(values_in(y) == std::vector<double>{0, 0, 0, 0, 1, 2});
  CHECK(values_in(slope) == std::vector<double>{0, 0, 0});
  const auto error_with = [&](const df::SparseTensor<std::int32_t>& of, const df::SparseTensor<double>& by) {
    return error_of([&] { session.run({{table, rows}, {ids, of}, {weights, by}}, plain, weighted); });
  };
  CHECK(error_with({places, {0, 2, 0}, {3, 2}}, weighing).find("indices[1] = 2") != std::string::npos);
  CHECK(error_with({{{2, 0}, {0, 0}}, {0, 1}, {3, 2}}, weighing).find("below the one before") != std::string::npos);
  CHECK(error_with(named, {{{0, 0}}, {1}, {3, 2}}) != "no error");
}
