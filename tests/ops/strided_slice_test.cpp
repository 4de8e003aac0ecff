#include <dflow/ops/array/strided_slice.hpp>

#include <dflow/autodiff/gradients.hpp>
#include <dflow/graph/graph.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/operators.hpp>
#include <dflow/ops/reduction/reduce.hpp>
#include <dflow/ops/state/typed_variable.hpp>
#include <dflow/session/check_gradients.hpp>
#include <dflow/session/session.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace df = dflow;

namespace {

df::Tensor<float> counted(const df::Shape& shape) {
  df::Tensor<float> tensor(shape);
  float next = 0;
  for (float& value : tensor) value = next++;
  return tensor;
}

std::string slice_shape(const df::AnyOutput& x) { return x.shape().to_string(); }

std::vector<float> elements_of(const df::Tensor<float>& tensor) { return {tensor.begin(), tensor.end()}; }

}  // namespace

TEST_CASE("a slice is written as a call with NumPy's indices") {
  df::Graph graph;
  const auto x = df::constant(graph, counted({4, 3}));
  df::Session session(graph);
  // numpy.arange(12).reshape(4, 3)[...]
  CHECK(elements_of(session.run(x(1))) == std::vector<float>{3, 4, 5});
  CHECK(elements_of(session.run(x(-1, 0))) == std::vector<float>{9});
  CHECK(elements_of(session.run(x(df::slice({}, {}, -2)))) == std::vector<float>{9, 10, 11, 3, 4, 5});
  CHECK(elements_of(session.run(x(df::ellipsis, df::slice(1, {})))) == std::vector<float>{1, 2, 4, 5, 7, 8, 10, 11});
  CHECK(elements_of(session.run(x(df::slice(), 2))) == std::vector<float>{2, 5, 8, 11});
  CHECK(session.run(x(df::new_axis, df::slice(0, -3), 1)).shape() == df::Shape{1, 1});
  CHECK(elements_of(session.run(df::strided_slice(x, {0, 2}, {4, -4}, {2, -1}))) ==
        std::vector<float>{2, 1, 0, 8, 7, 6});
}

TEST_CASE("an index of a slice may be an edge") {
  df::Graph graph;
  const auto x = df::constant(graph, counted({4, 3}));
  const auto i = df::placeholder<std::int32_t>(graph, {});
  const auto wide = df::placeholder<std::int64_t>(graph, {});
  df::Session session(graph);
  const auto row = x(i), part = x(df::slice(i, {}), df::slice({}, wide));
  CHECK(slice_shape(row) == "[3]");
  CHECK(slice_shape(part) == "[?,?]");
  CHECK(elements_of(session.run({{i, df::Tensor<std::int32_t>(-1)}}, row)) == std::vector<float>{9, 10, 11});
  CHECK(elements_of(session.run({{i, df::Tensor<std::int32_t>(2)}, {wide, df::Tensor<std::int64_t>(-2)}}, part)) ==
        std::vector<float>{6, 9});
  CHECK(contains(error_of([&] { session.run({{i, df::Tensor<std::int32_t>(4)}}, row); }), "position 4"));
}

TEST_CASE("the shape of a slice is inferred as far as its dimensions are known") {
  df::Graph graph;
  const auto x = df::placeholder<float>(graph, {df::dynamic, 8, 5});
  CHECK(slice_shape(x(0)) == "[8,5]");
  CHECK(slice_shape(x(df::slice(1, {}))) == "[?,8,5]");
  CHECK(slice_shape(x(df::ellipsis, df::slice(1, -1, 2), df::new_axis, 0)) == "[?,3,1]");
  CHECK(slice_shape(df::placeholder<float>(graph)(0)) == "<unknown>");
  const auto line = std::to_string(__LINE__ + 1);
  CHECK(contains(error_of([&] { x(df::ellipsis, 5); }), "strided_slice_test.cpp:" + line));
  CHECK(contains(error_of([&] { x(0, 0, 0, 0); }), "4 positions and ranges"));
  CHECK(contains(error_of([&] { x(df::slice(0, 1, 0)); }), "strides[0] is 0"));
  CHECK(contains(error_of([&] { x(df::ellipsis, df::ellipsis); }), "one ellipsis"));
}

TEST_CASE("the gradient of a slice is right for shapes that only the step knows") {
  df::Graph graph;
  const auto x = df::placeholder<double>(graph);
  const auto y = x(df::slice(1, {}, 2), df::ellipsis, -1);
  const auto dx = df::gradients(df::reduce_sum(df::square(y) * y), x);
  df::Session session(graph);
  const df::Tensor<double> at({4, 1, 2}, {1, 2, 3, 4, -5, 6, 7, -8});
  CHECK(df::check_gradients(session, y, {{x, at}}).is_ok());
  CHECK(df::check_gradients(session, dx, {{x, at}}).is_ok());
}

TEST_CASE("a part of a variable gets a value, and the rest stays") {
  df::Graph graph;
  const df::Variable<float> table(graph, counted({4, 3}));
  const auto row = df::placeholder<std::int32_t>(graph, {});
  const auto value = df::placeholder<float>(graph, df::PartialShape::unknown());
  const df::Operation clear = table.assign_slice({df::slice(1, 3), df::ellipsis}, 0.0f);
  const df::Operation one_row = table.assign_slice({row}, value);
  const df::Operation corner = table.assign_slice({df::slice({}, {}, -3), 2}, df::Tensor<float>({2}, {20, 21}));
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  const df::Tensor<float> before = session.run(table);
  session.run(clear);
  session.run(corner);
  CHECK(elements_of(session.run(table)) == std::vector<float>{0, 1, 21, 0, 0, 0, 0, 0, 0, 9, 10, 20});
  CHECK(elements_of(before) == elements_of(counted({4, 3})));  // a value that was read stays
  session.run({{row, df::Tensor<std::int32_t>(-3)}, {value, df::Tensor<float>({3}, {7, 8, 9})}}, one_row);
  CHECK(elements_of(session.run(table)) == std::vector<float>{0, 1, 21, 7, 8, 9, 0, 0, 0, 9, 10, 20});
  const std::string wrong = error_of([&] {
    session.run({{row, df::Tensor<std::int32_t>(0)}, {value, df::Tensor<float>({2}, {1, 2})}}, one_row);
  });
  CHECK(contains(wrong, "the value has shape [2], the slice [3] of the variable [4,3]"));
  CHECK(contains(error_of([&] {
                   session.run({{row, df::Tensor<std::int32_t>(4)}, {value, counted({3})}}, one_row);
                 }),
                 "position 4 is outside of dimension 0"));
  CHECK(elements_of(session.run(table)) == std::vector<float>{0, 1, 21, 7, 8, 9, 0, 0, 0, 9, 10, 20});
  CHECK_THROWS_AS(table.assign_slice({0, 0, 0}, 1.0f), df::Error);
  CHECK_THROWS_AS(table.assign_slice({0}, df::Tensor<float>({2}, {1, 2})), df::Error);
}

TEST_CASE("a part of a variable of strings gets a value") {
  df::Graph graph;
  const df::Variable<std::string> words(graph, df::Tensor<std::string>({3}, {"a", "b", std::string(50, 'c')}));
  const df::Operation change =
      words.assign_slice({df::slice(1, {})}, df::Tensor<std::string>("long" + std::string(40, 'x')));
  df::Session session(graph);
  session.run(df::initialize_variables(graph));
  session.run(change);
  const df::Tensor<std::string> found = session.run(words);
  CHECK(found(0) == "a");
  CHECK(found(1) == "long" + std::string(40, 'x'));
  CHECK(found(2) == found(1));
}
