// Lists as the rows of one tensor. Expected values and which calls fail: TensorFlow 2's TensorListConcatV2 and
// TensorListSplit.
#include <dflow/dflow.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <cstdint>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

namespace df = dflow;

namespace {

using Extents = std::vector<std::int32_t>;
using RowCounts = std::vector<std::int64_t>;

template <class T>
df::Output<T> list_vector(df::Graph& graph, const std::vector<T>& of) {
  return df::constant(graph, df::Tensor<T>({static_cast<std::int64_t>(of.size())}, of));
}

template <class T = float>
std::tuple<df::Output<T>, df::Output<std::int64_t>> concat_list(df::Graph& graph, const df::AnyOutput& list,
                                                                const df::Output<std::int32_t>& shape,
                                                                const RowCounts& leading = {}) {
  const df::BuiltNode node = df::build<df::TensorListConcatV2>({list, shape, list_vector(graph, leading)}, {}, {},
                                                               df::detail::one_type(df::dtype_of<T>));
  return {df::Output<T>(node.output(0)), df::Output<std::int64_t>(node.output(1))};
}

template <class T>
df::AnyOutput split_to_list(df::Graph& graph, const df::Output<T>& x, const df::Output<std::int32_t>& shape,
                            const RowCounts& counts) {
  return df::build<df::TensorListSplit>({x, shape, list_vector(graph, counts)});
}

template <class T>
df::Output<T> matrix(df::Graph& graph, const df::Shape& shape, const std::vector<T>& of) {
  return df::constant(graph, df::Tensor<T>(shape, of));
}

template <class T>
std::vector<T> values_of(const df::Tensor<T>& tensor) {
  return {tensor.begin(), tensor.end()};
}

/// [[1, 2]] and [[3, 4], [5, 6]].
df::TensorStack<float> one_and_two_rows(df::Graph& graph) {
  return df::TensorStack<float>(graph, {df::dynamic, 2})
      .push(matrix<float>(graph, {1, 2}, {1, 2}))
      .push(matrix<float>(graph, {2, 2}, {3, 4, 5, 6}));
}

}  // namespace

TEST_CASE("the elements of a list are concatenated, whatever is known of their shape") {
  df::Graph graph;
  const df::AnyOutput list = one_and_two_rows(graph).list();
  df::Session session(graph);
  for (const auto& shape : {list_vector<std::int32_t>(graph, {-1, 2}), list_vector<std::int32_t>(graph, {-1, -1}),
                            df::constant(graph, -1)}) {
    auto [y, counts] = concat_list(graph, list, shape, {5});  // what is set has the rows that it has
    CHECK(y.shape() == df::PartialShape({df::dynamic, 2}));
    const auto [rows, n] = session.run(y, counts);
    CHECK(rows.shape() == df::Shape({3, 2}));
    CHECK(values_of(rows) == std::vector<float>{1, 2, 3, 4, 5, 6});
    CHECK(values_of(n) == RowCounts{1, 2});
  }
  auto numbers = df::TensorStack<float>(graph).push(list_vector<float>(graph, {})).push(list_vector<float>(graph, {1}));
  auto [y, counts] = concat_list(graph, numbers.list(), list_vector<std::int32_t>(graph, {-1}));
  const auto [rows, n] = session.run(y, counts);
  CHECK(values_of(rows) == std::vector<float>{1});
  CHECK(values_of(n) == RowCounts{0, 1});
}

TEST_CASE("a list without elements is concatenated to no rows of the shape that is asked for") {
  df::Graph graph;
  const df::AnyOutput list = df::TensorStack<float>(graph).list();
  df::Session session(graph);
  for (const Extents& extents : {Extents{-1, 2}, Extents{3, 2}}) {
    auto [y, counts] = concat_list(graph, list, list_vector(graph, extents));
    const auto [rows, n] = session.run(y, counts);
    CHECK(rows.shape() == df::Shape({0, 2}));
    CHECK(n.shape() == df::Shape({0}));
  }
  for (const auto& shape : {list_vector<std::int32_t>(graph, {-1, -1}), df::constant(graph, -1)}) {
    auto y = std::get<0>(concat_list(graph, list, shape));
    CHECK(mentions(status_of([&] { session.run(y); }), "their shape is not known"));
  }
}

TEST_CASE("elements that are not set are so many rows of zeros as is said, as the shape says, or as all others have") {
  df::Graph graph;
  auto two = matrix<float>(graph, {2, 2}, {1, 2, 3, 4});
  const df::AnyOutput none = df::TensorArray<float>(graph, 3).list();
  const df::AnyOutput list = df::TensorArray<float>(graph, 3).write(df::constant(graph, 1), two).list();
  df::Session session(graph);
  const auto check = [&](const df::AnyOutput& of, const Extents& shape, const RowCounts& leading,
                         const std::vector<float>& wanted, const RowCounts& wanted_counts) {
    auto [y, counts] = concat_list(graph, of, list_vector(graph, shape), leading);
    const auto [rows, n] = session.run(y, counts);
    CHECK(values_of(rows) == wanted);
    CHECK(values_of(n) == wanted_counts);
  };
  check(none, {2, 2}, {}, std::vector<float>(12), {2, 2, 2});
  check(list, {2, 2}, {}, {0, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 0}, {2, 2, 2});
  check(list, {-1, 2}, {}, {0, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 0}, {2, 2, 2});
  check(list, {-1, 2}, {1, 1, 3}, {0, 0, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0}, {1, 2, 3});
  check(list, {-1, 2}, {1, 2}, {0, 0, 1, 2, 3, 4, 0, 0, 0, 0}, {1, 2, 2});
  check(list, {2, 2}, {1, 2, 1}, {0, 0, 1, 2, 3, 4, 0, 0}, {1, 2, 1});
  const auto fails = [&](const df::AnyOutput& of, const RowCounts& leading, const char* text) {
    auto y = std::get<0>(concat_list(graph, of, list_vector<std::int32_t>(graph, {-1, 2}), leading));
    const df::Status status = status_of([&] { session.run(y); });
    INFO(status.to_string());
    CHECK(status.code() == df::Code::invalid_argument);
    CHECK(mentions(status, text));
  };
  fails(none, {1, 1}, "element 2 of the list is not set");
  fails(list, {-1, 2, 1}, "element 0 of the list is not set, and has -1 rows");
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  fails(list, {most, 2, most}, "overflow");
}

TEST_CASE("elements of every type are concatenated and split") {
  df::Graph graph;
  const auto check = [&]<class T>(T value) {
    auto any = df::constant(graph, -1);
    auto parts = split_to_list(graph, df::fill<T>(graph, {3, 1}, value), any, {1, 0, 2});
    auto [y, counts] = concat_list<T>(graph, parts, any);
    auto last = df::TensorArray<T>(parts).read(df::constant(graph, 2));
    auto gap = df::TensorArray<T>(graph, 2).write(df::constant(graph, 1), df::fill<T>(graph, {1}, value));
    auto z = std::get<0>(concat_list<T>(graph, gap.list(), any));
    df::Session session(graph);
    const auto [rows, n, two, padded] = session.run(y, counts, last, z);
    CHECK(rows.shape() == df::Shape({3, 1}));
    CHECK(values_of(rows) == std::vector<T>{value, value, value});
    CHECK(values_of(n) == RowCounts{1, 0, 2});
    CHECK(values_of(two) == std::vector<T>{value, value});
    CHECK(values_of(padded) == std::vector<T>{T(), value});
  };
  df::for_each_type<df::NumberTypes>([&]<class T>() { check(T(3)); });
  check(std::string("text"));
  df::Session session(graph);
  auto flags = split_to_list(graph, df::fill<bool>(graph, {2}, true), df::constant(graph, -1), {2});
  const df::Tensor<bool> flag = session.run(std::get<0>(concat_list<bool>(graph, flags, df::constant(graph, -1))));
  CHECK(flag(0));
  CHECK(flag(1));
}

TEST_CASE("a tensor is split into a list by numbers of rows") {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {df::dynamic, 2});
  df::Session session(graph);
  const df::Tensor<float> at({3, 2}, {1, 2, 3, 4, 5, 6});
  const auto parts_of = [&](const df::Output<std::int32_t>& shape, const RowCounts& counts) {
    const df::TensorArray<float> parts(split_to_list(graph, x, shape, counts));
    std::vector<std::vector<float>> all;
    for (int i = 0; i < static_cast<int>(counts.size()); ++i) {
      all.push_back(values_of(session.run({{x, at}}, parts.read(df::constant(graph, i)))));
    }
    CHECK(session.run({{x, at}}, parts.size()).scalar() == static_cast<std::int32_t>(counts.size()));
    return all;
  };
  using Parts = std::vector<std::vector<float>>;
  auto rows_of_two = list_vector<std::int32_t>(graph, {-1, 2});
  CHECK(parts_of(rows_of_two, {1, 2}) == Parts{{1, 2}, {3, 4, 5, 6}});
  CHECK(parts_of(rows_of_two, {0, 3, 0}) == Parts{{}, {1, 2, 3, 4, 5, 6}, {}});
  CHECK(parts_of(df::constant(graph, -1), {3}) == Parts{{1, 2, 3, 4, 5, 6}});
  CHECK(parts_of(list_vector<std::int32_t>(graph, {1, 2}), {1, 2}) == Parts{{1, 2}, {3, 4, 5, 6}});
  const auto fails = [&](const RowCounts& counts, const char* text) {
    const df::TensorArray<float> parts(split_to_list(graph, x, rows_of_two, counts));
    const df::Status status = status_of([&] { session.run({{x, at}}, parts.size()); });
    INFO(status.to_string());
    CHECK(status.code() == df::Code::invalid_argument);
    CHECK(mentions(status, text));
  };
  fails({1, 1}, "the elements have 2 rows of 3");
  fails({1, 3}, "element 1 of 3 rows from row 1 of 3");
  fails({-1, 4}, "element 0 of -1 rows");
  fails({1, std::numeric_limits<std::int64_t>::max()}, "element 1 of");
}

TEST_CASE("what is wrong with rows of a list is an error of the line that builds them, or of the step") {
  df::Graph graph;
  df::Session session(graph);
  const df::AnyOutput list = one_and_two_rows(graph).list();
  auto rows = list_vector<std::int32_t>(graph, {-1, 2});
  const auto refuses = [&](auto&& build) { CHECK(code_of(build) == df::Code::invalid_argument); };
  refuses([&] { return concat_list(graph, list, list_vector<std::int32_t>(graph, {-1, 3})); });
  refuses([&] { return concat_list(graph, list, list_vector<std::int32_t>(graph, {})); });
  refuses([&] { return concat_list(graph, df::TensorArray<float>(graph, 1, df::Shape{}).list(), rows); });
  refuses([&] {
    return df::build<df::TensorListConcatV2>({list, rows, df::constant(graph, std::int64_t{1})}, {}, {},
                                             df::detail::one_type(df::DType::float32));
  });
  auto x = matrix<float>(graph, {3, 2}, {1, 2, 3, 4, 5, 6});
  refuses([&] { return split_to_list(graph, x, list_vector<std::int32_t>(graph, {-1, 3}), {1, 2}); });
  refuses([&] { return split_to_list(graph, x, list_vector<std::int32_t>(graph, {}), {1, 2}); });
  refuses([&] { return split_to_list(graph, df::constant(graph, 5.0f), df::constant(graph, -1), {}); });
  refuses([&] { return df::build<df::TensorListSplit>({x, rows, df::constant(graph, std::int64_t{3})}); });

  const auto fails_with = [&](const auto& y, const char* text) {
    const df::Status status = status_of([&] { session.run(y); });
    INFO(status.to_string());
    CHECK(status.code() == df::Code::invalid_argument);
    CHECK(mentions(status, text));
  };
  auto any = df::constant(graph, -1);
  const auto pushed = [&](const df::Output<float>& a, const df::Output<float>& b) {
    return df::TensorStack<float>(graph).push(a).push(b).list();
  };
  auto one = df::constant(graph, 1.0f);
  fails_with(std::get<0>(concat_list(graph, pushed(one, one), any)), "element 0 of the list is a scalar");
  fails_with(std::get<0>(concat_list(graph, list, list_vector<std::int32_t>(graph, {1, 2}))),
             "element 1 of the list is float[2,2], not float[1,2]");
  fails_with(std::get<0>(concat_list(
                 graph, pushed(matrix<float>(graph, {1, 2}, {1, 2}), matrix<float>(graph, {1, 3}, {1, 2, 3})), any)),
             "element 1 of the list is float[1,3], not float[?,2]");
  fails_with(std::get<0>(
                 concat_list(graph, pushed(list_vector<float>(graph, {1}), matrix<float>(graph, {1, 2}, {2, 3})), any)),
             "element 1 of the list is float[1,2], not float[?]");
  fails_with(std::get<0>(concat_list<std::int32_t>(graph, list, rows)), "is float[1,2], not int32[?,2]");
}

TEST_CASE("lists of more elements than 2^24 are not concatenated, nor made by a split") {
  df::Graph graph;
  df::Session session(graph);
  const df::AnyOutput list = df::TensorArray<float>(graph, 2'000'000'000).list();
  auto [y, counts] = concat_list(graph, list, list_vector<std::int32_t>(graph, {0, 1}));
  CHECK(code_of([&] { session.run(y); }) == df::Code::resource_exhausted);
  auto many = df::fill<std::int64_t>(graph, {(1 << 24) + 1}, 0);
  const df::AnyOutput parts =
      df::build<df::TensorListSplit>({df::fill<float>(graph, {0, 1}, 0.0f), df::constant(graph, -1), many});
  CHECK(code_of([&] { session.run(df::TensorArray<float>(parts).size()); }) == df::Code::resource_exhausted);
}

TEST_CASE("a concatenated list and a split tensor have gradients, twice, as TensorFlow gives them") {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {4, 2});
  auto a = df::placeholder<float>(graph, {1, 2});
  auto w = matrix<float>(graph, {6, 2}, {1, 10, 2, 20, 3, 30, 4, 40, 5, 50, 6, 60});
  auto any_rows = list_vector<std::int32_t>(graph, {-1, 2});
  df::TensorStack<float> parts(split_to_list(graph, x, any_rows, {1, 3}));
  auto three = df::TensorArray<float>(parts.list()).read(df::constant(graph, 1));
  auto list = parts.push(a).push(df::reduce_sum(three, {0}, {.keep_dims = true})).list();
  auto [y, counts] = concat_list(graph, list, any_rows);
  auto [gx, ga] = df::gradients(df::reduce_sum(w * y * y), x, a);
  const df::AnyOutput rows = df::TensorArray<float>::unstack(gx).list();
  auto row_1 = df::TensorArray<float>(rows).read(df::constant(graph, 1));
  auto row_2 = df::TensorArray<float>(rows).read(df::constant(graph, 2));
  auto [hx, ha] = df::gradients(df::reduce_sum(row_1 * row_2) + df::reduce_sum(ga * ga), x, a);
  df::Session session(graph);
  const df::Tensor<float> at({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), at_a({1, 2}, {0.5f, -1});
  const auto [n, by_x, by_a, twice_x, twice_a] = session.run({{x, at}, {a, at_a}}, counts, gx, ga, hx, ha);
  CHECK(values_of(n) == RowCounts{1, 3, 1, 1});
  CHECK(values_of(by_x) == std::vector<float>{2, 40, 192, 2320, 210, 2520, 236, 2800});
  CHECK(values_of(by_a) == std::vector<float>{5, -100});
  CHECK(values_of(twice_x) == std::vector<float>{0, 0, 5664, 681600, 5976, 720000, 4824, 580800});
  CHECK(values_of(twice_a) == std::vector<float>{100, -20000});
}

TEST_CASE("of a split of which one part is read the others have zero gradients") {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {df::dynamic, df::dynamic});
  const df::AnyOutput parts = split_to_list(graph, x, df::constant(graph, -1), {1, 2, 1});
  auto gradient = df::gradients(df::reduce_sum(df::TensorArray<float>(parts).read(df::constant(graph, 1))), x);
  df::Session session(graph);
  const df::Tensor<float> slope = session.run({{x, df::Tensor<float>({4, 1}, {1, 2, 3, 4})}}, gradient);
  CHECK(slope.shape() == df::Shape({4, 1}));
  CHECK(values_of(slope) == std::vector<float>{0, 1, 1, 0});
}
