// Arrays of tensors, and loops over rows.
#include <dflow/dflow.hpp>

#include "catch.hpp"
#include "support/control_flow_forms.hpp"
#include "support/errors.hpp"
#include "support/sanitized.hpp"

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <tuple>
#include <vector>

namespace df = dflow;

namespace {

template <class T>
std::vector<T> values(const df::Tensor<T>& tensor) {
  return {tensor.begin(), tensor.end()};
}

df::Tensor<float> numbers(const df::Shape& shape, float first = 1, float step = 1) {
  df::Tensor<float> tensor(shape);
  for (std::int64_t i = 0; i < tensor.num_elements(); ++i) tensor.data()[i] = first + step * static_cast<float>(i);
  return tensor;
}

template <class T>
df::Output<T> vector(df::Graph& graph, std::vector<T> of) {
  return df::constant(graph, df::Tensor<T>({static_cast<std::int64_t>(of.size())}, of));
}

/// Checks y(x), a scalar, in double against finite differences: the gradient against differences of y, and the
/// derivative of sum(w * gradient) against differences of the gradient.
void check_gradients(const df::Shape& shape,
                     const std::function<df::Output<double>(df::Graph&, df::Output<double>)>& f) {
  df::Graph graph;
  auto x = df::placeholder<double>(graph, shape);
  auto w = df::placeholder<double>(graph, shape);
  auto y = f(graph, x);
  auto gradient = df::gradients(y, x);
  auto second = df::gradients(df::reduce_sum(gradient * w), x);
  df::Session session(graph, {.passes = df::testing::each_form()});
  df::Tensor<double> at(shape), weights(shape);
  for (std::int64_t i = 0; i < at.num_elements(); ++i) {
    at.data()[i] = 0.6 + 0.3 * std::sin(static_cast<double>(3 * i + 1));
    weights.data()[i] = std::cos(static_cast<double>(2 * i));
  }
  const auto slope = [&](const df::Tensor<double>& of) {
    const df::Tensor<double> g = session.run({{x, of}}, gradient);
    double sum = 0;
    for (std::int64_t i = 0; i < g.num_elements(); ++i) sum += g.data()[i] * weights.data()[i];
    return sum;
  };
  const auto [g, h] = session.run({{x, at}, {w, weights}}, gradient, second);
  for (std::int64_t i = 0; i < at.num_elements(); ++i) {
    INFO("element " << i);
    constexpr double step = 1e-5;
    df::Tensor<double> more(at.deep_copy()), less(at.deep_copy());
    more.data()[i] += step;
    less.data()[i] -= step;
    const double dy = session.run({{x, more}}, y).scalar() - session.run({{x, less}}, y).scalar();
    CHECK(g.data()[i] == Approx(dy / (2 * step)).epsilon(1e-6).margin(1e-7));
    CHECK(h.data()[i] == Approx((slope(more) - slope(less)) / (2 * step)).epsilon(1e-5).margin(1e-6));
  }
}

}  // namespace

TEST_CASE("an array in a loop is written, read, stacked and gathered") {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {2});
  auto [i, squares] = df::while_loop([&](auto i, auto) { return i < 5; },
                                     [&](auto i, auto squares) {
                                       return std::tuple{i + 1, squares.write(i, x * df::cast<float>(i))};
                                     },
                                     std::tuple{df::constant(graph, 0), df::TensorArray<float>(graph, 5, {2})});
  auto all = squares.stack();
  CHECK(all.shape() == df::PartialShape({df::dynamic, 2}));
  auto some = squares.gather(vector<std::int32_t>(graph, {4, 0, 4}));
  auto third = squares.read(df::constant(graph, 3));
  df::Session session(graph, {.passes = df::testing::each_form()});
  for (int run = 0; run < 3; ++run) {
    const auto [a, b, c, n] = session.run({{x, df::Tensor<float>({2}, {1, 10})}}, all, some, third, squares.size());
    CHECK(values(a) == std::vector<float>{0, 0, 1, 10, 2, 20, 3, 30, 4, 40});
    CHECK(values(b) == std::vector<float>{4, 40, 0, 0, 4, 40});
    CHECK(values(c) == std::vector<float>{3, 30});
    CHECK(n.scalar() == 5);
  }
}

TEST_CASE("an array is a value: what is written later is not in what was before") {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {3, 2});
  auto first = df::TensorArray<float>::unstack(x);
  auto zero = df::constant(graph, 0);
  auto second = first.write(zero, vector<float>(graph, {7.0f, 8.0f}));
  auto third = second.write(zero, vector<float>(graph, {9.0f, 9.0f}));
  df::Session session(graph, {.passes = df::testing::each_form()});
  const df::Tensor<float> given = numbers({3, 2});
  const auto [a, b, c, d] =
      session.run({{x, given}}, first.stack(), second.stack(), third.read(zero), second.read(zero));
  CHECK(values(a) == values(given));
  CHECK(values(b) == std::vector<float>{7, 8, 3, 4, 5, 6});
  CHECK(values(c) == std::vector<float>{9, 9});
  CHECK(values(d) == std::vector<float>{7, 8});
  CHECK(values(given) == values(numbers({3, 2})));
}

TEST_CASE("arrays hold elements of every type, and what was not written is zero") {
  df::Graph graph;
  const auto check = [&]<class T>(T value) {
    auto array = df::TensorArray<T>(graph, 3, {2}).write(df::constant(graph, 1), df::fill<T>(graph, {2}, value));
    auto scattered =
        df::TensorArray<T>::scatter(vector<std::int32_t>(graph, {2, 0}), df::fill<T>(graph, {2, 1}, value));
    df::Session session(graph, {.passes = df::testing::each_form()});
    const auto [all, rows, one] = session.run(array.stack(), scattered.gather(vector<std::int32_t>(graph, {0, 2})),
                                              array.read(df::constant(graph, 2)));
    CHECK(values(all) == std::vector<T>{T(), T(), value, value, T(), T()});
    CHECK(values(rows) == std::vector<T>{value, value});
    CHECK(values(one) == std::vector<T>{T(), T()});
  };
  df::for_each_type<df::NumberTypes>([&]<class T>() { check(T(3)); });
  check(std::string("text"));
  df::Session session(graph, {.passes = df::testing::each_form()});
  auto flags = df::TensorArray<bool>(graph, 2, df::Shape{}).write(df::constant(graph, 1), df::constant(graph, true));
  const df::Tensor<bool> read = session.run(flags.stack());
  CHECK_FALSE(read(0));
  CHECK(read(1));
}

TEST_CASE("a stack gives back what was pushed, the last first") {
  df::Graph graph;
  auto n = df::placeholder<std::int32_t>(graph, {});
  auto [i, pushed] =
      df::while_loop([&](auto i, auto) { return i < n; },
                     [&](auto i, auto stack) {
                       return std::tuple{i + 1, stack.push(i * i)};
                     },
                     std::tuple{df::constant(graph, 0), df::TensorStack<std::int32_t>(graph, df::Shape{})});
  auto [rest, digits] = df::while_loop([&](auto stack, auto) { return stack.size() > 0; },
                                       [&](auto stack, auto digits) {
                                         auto [rest, top] = stack.pop();
                                         return std::tuple{rest, digits * 100 + top};
                                       },
                                       std::tuple{pushed, df::constant(graph, 0)});
  df::Session session(graph, {.passes = df::testing::each_form()});
  CHECK(session.run({{n, df::Tensor<std::int32_t>(5)}}, digits).scalar() == 1609040100);
  CHECK(session.run({{n, df::Tensor<std::int32_t>(0)}}, digits).scalar() == 0);
  auto [none, top] = df::TensorStack<float>(graph).pop();
  const df::Status status = status_of([&] { session.run(top); });
  CHECK(status.code() == df::Code::invalid_argument);
  CHECK(mentions(status, "empty"));
}

TEST_CASE("what is wrong with an array is an error of the line that builds it, or of the step") {
  df::Graph graph;
  auto array = df::TensorArray<float>(graph, 3, {2});
  auto at = [&](int i) { return df::constant(graph, i); };
  CHECK(code_of([&] { array.write(at(0), vector<float>(graph, {1.0f, 2.0f, 3.0f})); }) == df::Code::invalid_argument);
  CHECK(code_of([&] {
          array.write(vector<std::int32_t>(graph, {1, 2}), vector<float>(graph, {1.0f, 2.0f}));
        }) == df::Code::invalid_argument);
  auto ragged = df::TensorArray<float>(graph, 2)
                    .write(at(0), vector<float>(graph, {1.0f}))
                    .write(at(1), vector<float>(graph, {1.0f, 2.0f}));
  auto outside = array.write(at(3), vector<float>(graph, {1.0f, 2.0f})).stack();
  auto before = array.read(at(-1));
  auto unknown = df::TensorArray<float>(graph, 2).stack();
  auto unwritten = df::TensorArray<float>(graph, 2).read(at(1));
  auto negative = df::TensorArray<float>(df::constant(graph, -1)).size();
  auto mixed = df::TensorArray<std::int32_t>(array.write(at(0), vector<float>(graph, {1.0f, 2.0f})).list()).read(at(0));
  df::Session session(graph, {.passes = df::testing::each_form()});
  const auto fails_with = [&](const auto& y, const char* text) {
    const df::Status status = status_of([&] { session.run(y); });
    INFO(status.to_string());
    CHECK(status.code() == df::Code::invalid_argument);
    CHECK(mentions(status, text));
  };
  fails_with(ragged.stack(), "element 1 of the list is float[2], not float[1]");
  fails_with(outside, "element 3 of a list of 3");
  fails_with(before, "element -1 of a list of 3");
  fails_with(unknown, "their shape is not known");
  fails_with(unwritten, "its shape is not known");
  fails_with(negative, "-1 elements");
  fails_with(mixed, "is float[2], not int32[2]");
  CHECK(values(session.run(ragged.read(at(1)))) == std::vector<float>{1, 2});
  CHECK(code_of([&] { session.run(array.list()); }) == df::Code::invalid_argument);  // no array is fetched
}

TEST_CASE("map, foldl, foldr and scan go over rows") {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {df::dynamic, 2});
  auto k = df::placeholder<std::int32_t>(graph, {df::dynamic});
  auto squares = df::map([](auto row) { return row * row; }, x);
  CHECK(squares.shape() == df::PartialShape({df::dynamic, 2}));
  auto [sums, scaled] = df::map(
      [](const auto& row) {
        auto [of_x, of_k] = row;
        return std::tuple{df::reduce_sum(of_x), of_x * df::cast<float>(of_k)};
      },
      std::tuple{x, k});
  auto zero = vector<float>(graph, {0.0f, 0.0f});
  auto left = df::foldl([](auto state, auto row) { return state * 2.0f + row; }, x, zero);
  auto right = df::foldr([](auto state, auto row) { return state * 2.0f + row; }, x, zero);
  auto running = df::scan([](auto state, auto row) { return state + row; }, x, zero);
  auto backwards = df::scan([](auto state, auto row) { return state + row; }, x, zero, {.reverse = true});
  auto [count, last] = df::foldl(
      [](const auto& state, auto row) {
        return std::tuple{std::get<0>(state) + 1, row};
      },
      x, std::tuple{df::constant(graph, 0), zero});
  df::Session session(graph, {.passes = df::testing::each_form()});
  const df::Feed of_x(x, numbers({3, 2})), of_k(k, df::Tensor<std::int32_t>({3}, {1, 2, 3}));
  for (int run = 0; run < 3; ++run) {
    CHECK(values(session.run({of_x}, squares)) == std::vector<float>{1, 4, 9, 16, 25, 36});
    const auto [a, b] = session.run({of_x, of_k}, sums, scaled);
    CHECK(values(a) == std::vector<float>{3, 7, 11});
    CHECK(values(b) == std::vector<float>{1, 2, 6, 8, 15, 18});
    const auto [l, r, s, t] = session.run({of_x}, left, right, running, backwards);
    CHECK(values(l) == std::vector<float>{4 + 6 + 5, 8 + 8 + 6});
    CHECK(values(r) == std::vector<float>{20 + 6 + 1, 24 + 8 + 2});
    CHECK(values(s) == std::vector<float>{1, 2, 4, 6, 9, 12});
    CHECK(values(t) == std::vector<float>{9, 12, 8, 10, 5, 6});
    const auto [n, z] = session.run({of_x}, count, last);
    CHECK(n.scalar() == 3);
    CHECK(values(z) == std::vector<float>{5, 6});
  }
  const df::Feed none(x, df::Tensor<float>(df::Shape{0, 2}));
  CHECK(session.run({none}, squares).shape() == df::Shape({0, 2}));
  CHECK(values(session.run({none}, left)) == std::vector<float>{0, 0});
  CHECK(session.run({none}, running).shape() == df::Shape({0, 2}));
}

TEST_CASE("what is wrong with rows is an error of the line that maps them") {
  df::Graph graph;
  auto scalar = df::placeholder<float>(graph, {});
  auto two = df::placeholder<float>(graph, {2});
  auto three = df::placeholder<float>(graph, {3});
  const auto same = [](const auto& row) { return row; };
  const int line = __LINE__ + 1;
  const df::Status status = status_of([&] { df::map(same, scalar); });
  CHECK(status.code() == df::Code::invalid_argument);
  CHECK(status.where().line() == line);
  CHECK(code_of([&] { df::map(same, std::tuple{two, three}); }) == df::Code::invalid_argument);
  CHECK(code_of([&] { df::map(same, df::Output<float>()); }) == df::Code::invalid_argument);
  CHECK(code_of([&] {
          df::foldl(
              [](auto state, auto row) {
                return df::concat(0, {state, df::expand_dims(row, 0)});
              },
              three, df::fill<float>(graph, {1}, 0.0f));
        }) == df::Code::invalid_argument);  // the state grows
  auto grown = df::foldl(
      [](auto state, auto row) {
        return df::concat(0, {state, df::expand_dims(row, 0)});
      },
      three, df::fill<float>(graph, {1}, 0.0f), {.shapes = {{df::dynamic}}});
  df::Session session(graph, {.passes = df::testing::each_form()});
  CHECK(values(session.run({{three, numbers({3})}}, grown)) == std::vector<float>{0, 1, 2, 3});
  auto some = df::placeholder<float>(graph, {df::dynamic}), more = df::placeholder<float>(graph, {df::dynamic});
  auto sums = df::map([](const auto& row) { return std::get<0>(row) + std::get<1>(row); }, std::tuple{some, more});
  CHECK(values(session.run({{some, numbers({2})}, {more, numbers({2})}}, sums)) == std::vector<float>{2, 4});
  for (const std::int64_t other : {1, 3}) {
    const df::Status differ = status_of([&] { session.run({{some, numbers({2})}, {more, numbers({other})}}, sums); });
    CHECK(differ.code() == df::Code::invalid_argument);
    CHECK(mentions(differ, "has not as many rows as"));
  }
}

TEST_CASE("lists in lists may be deep") {
  df::Graph graph;
  auto n = df::placeholder<std::int32_t>(graph, {});
  const df::AnyOutput zero = df::constant(graph, std::int64_t{0});
  auto [i, nested] = df::while_loop(
      [&](auto i, auto) { return i < n; },
      [&](auto i, auto nested) {
        return std::tuple{i + 1, df::TensorArray<float>(df::build<df::TensorListOneList>({zero, nested.list()}))};
      },
      std::tuple{df::constant(graph, 0), df::TensorArray<float>(graph, 1)});
  auto size = nested.size();
  df::Session session(graph, {.passes = df::testing::each_form()});
  CHECK(session.run({{n, df::Tensor<std::int32_t>(100)}}, size).scalar() == 1);
  CHECK(session.run({{n, df::Tensor<std::int32_t>(100'000)}}, size).scalar() == 1);
}

// Values and errors: TensorFlow 2.21's TensorArray.concat and TensorArray.split.
TEST_CASE("the rows of an array's elements are joined, and rows are split into elements, of every type") {
  df::Graph graph;
  const auto at = [&](std::int32_t i) { return df::constant(graph, i); };
  df::Session session(graph);
  const auto check = [&]<class T>(T one, T two) {
    const auto x = df::constant(graph, df::Tensor<T>({3, 2}, {one, two, two, one, one, one}));
    const auto parts = df::TensorArray<T>::split(x, vector<std::int64_t>(graph, {1, 0, 2}));
    const auto narrow = df::TensorArray<T>::split(x, vector<std::int32_t>(graph, {1, 0, 2}));
    const auto turned = df::TensorArray<T>(graph, 3, {df::dynamic, 2})
                            .write(at(0), parts.read(at(2)))
                            .write(at(1), parts.read(at(1)))
                            .write(at(2), parts.read(at(0)));
    const auto joined = turned.concat();
    CHECK(joined.shape() == df::PartialShape({df::dynamic, 2}));
    CHECK(parts.read(at(0)).shape() == df::PartialShape({df::dynamic, 2}));
    const auto [a, b, c, d, e, n] =
        session.run(parts.read(at(0)), parts.read(at(1)), parts.read(at(2)), joined, narrow.concat(), parts.size());
    CHECK(values(a) == std::vector<T>{one, two});
    CHECK(b.shape() == df::Shape{0, 2});
    CHECK(values(c) == std::vector<T>{two, one, one, one});
    CHECK(values(d) == std::vector<T>{two, one, one, one, one, two});
    CHECK(values(e) == std::vector<T>{one, two, two, one, one, one});
    CHECK(n.scalar() == 3);
  };
  df::for_each_type<df::NumberTypes>([&]<class T>() { check(T(1), T(2)); });
  check(std::string("one"), std::string("two"));
  const auto flags = df::constant(graph, df::Tensor<bool>({3}, {true, false, true}));
  const df::Tensor<bool> same =
      session.run(df::TensorArray<bool>::split(flags, vector<std::int64_t>(graph, {2, 1})).concat());
  CHECK((same(0) && !same(1) && same(2)));
}

TEST_CASE("elements that were not written have as many rows of zeros as the others, and an array of none has no rows") {
  df::Graph graph;
  const auto rows = df::constant(graph, numbers({2, 2}));
  const auto one = df::constant(graph, 1);
  const auto known = df::TensorArray<float>(graph, 3, {2, 2}).write(one, rows).concat();
  const auto open = df::TensorArray<float>(graph, 3, {df::dynamic, 2}).write(one, rows).concat();
  const auto none = df::TensorArray<float>(graph, 0, {df::dynamic, 2}).concat();
  const auto empty =
      df::TensorArray<float>::split(df::fill<float>(graph, {0, 2}, 1.0f), vector<std::int64_t>(graph, {}));
  df::Session session(graph);
  const auto [a, b, c, d, n] = session.run(known, open, none, empty.concat(), empty.size());
  CHECK(values(a) == std::vector<float>{0, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 0});
  CHECK(values(b) == values(a));
  CHECK(c.shape() == df::Shape{0, 2});
  CHECK(d.shape() == df::Shape{0, 2});
  CHECK(n.scalar() == 0);
}

TEST_CASE("elements that cannot be joined and lengths that are not those of the rows are errors") {
  df::Graph graph;
  df::Session session(graph);
  const auto at = [&](std::int32_t i) { return df::constant(graph, i); };
  const auto fails = [&](const auto& fetched, std::string_view why) {
    const df::Status status = status_of([&] { return session.run(fetched); });
    INFO(status.to_string());
    CHECK(status.code() == df::Code::invalid_argument);
    CHECK(mentions(status, why));
  };
  const auto array = [&](const auto& first, const auto& second) {
    return df::TensorArray<float>(graph, 3).write(at(0), first).write(at(1), second);
  };
  const auto row = df::fill<float>(graph, {1, 1}, 1.0f), wide = df::fill<float>(graph, {1, 2}, 1.0f);
  const auto scalar = df::constant(graph, 1.0f);
  fails(array(scalar, scalar).concat(), "scalar");
  fails(array(row, wide).concat(), "[1,2]");
  fails(array(row, df::fill<float>(graph, {2, 1}, 1.0f)).concat(), "element 2 of the list is not set");
  fails(df::TensorArray<float>(graph, 2).concat(), "no element is set");
  CHECK(contains(error_of([&] { return df::TensorArray<float>(graph, 2, df::Shape{}).concat(); }), "scalars"));

  const auto x = df::fill<float>(graph, {4, 2}, 1.0f);
  const auto split = [&](const std::vector<std::int64_t>& lengths) {
    return df::TensorArray<float>::split(x, vector<std::int64_t>(graph, lengths)).size();
  };
  fails(split({5, -1}), "element 0 of 5 rows");
  fails(split({2, -1, 3}), "element 1 of -1 rows");
  fails(split({1, 2}), "3 rows of 4");
  fails(split({3, 2}), "element 1 of 2 rows");
  CHECK(code_of([&] { return df::TensorArray<float>::split(scalar, vector<std::int64_t>(graph, {1})); }) ==
        df::Code::invalid_argument);
  CHECK(code_of([&] { return df::TensorArray<float>::split(x, df::constant(graph, std::int64_t{4})); }) ==
        df::Code::invalid_argument);
}

TEST_CASE("what a loop writes in elements of different numbers of rows is joined") {
  df::Graph graph;
  const auto n = df::placeholder<std::int32_t>(graph, {});
  const auto [i, array] = df::while_loop([&](auto i, auto) { return i < n; },
                                         [&](auto i, auto array) {
                                           auto row = df::fill(df::reshape(i, {1}), df::cast<float>(i));
                                           return std::tuple{i + 1, array.write(i, row)};
                                         },
                                         std::tuple{df::constant(graph, 0), df::TensorArray<float>(n, {df::dynamic})});
  const auto joined = array.concat();
  df::Session session(graph);
  CHECK(values(session.run({{n, 4}}, joined)) == std::vector<float>{1, 2, 2, 3, 3, 3});
  CHECK(values(session.run({{n, 0}}, joined)).empty());
}

TEST_CASE("gradients of loops are differentiated again") {
  SECTION("powers") {
    check_gradients({3}, [](df::Graph& graph, auto x) {
      auto [i, power] = df::while_loop([&](auto i, auto) { return i < 4; },
                                       [&](auto i, auto power) {
                                         return std::tuple{i + 1, power * df::sin(x) + power};
                                       },
                                       std::tuple{df::constant(graph, 0), x});
      return df::reduce_sum(power);
    });
  }
  SECTION("a loop in a loop") {
    check_gradients({2}, [](df::Graph& graph, auto x) {
      auto [i, sum] = df::while_loop([&](auto i, auto) { return i < 3; },
                                     [&](auto i, auto sum) {
                                       auto [j, inner] = df::while_loop([&](auto j, auto) { return j < i + 1; },
                                                                        [&](auto j, auto inner) {
                                                                          return std::tuple{j + 1, df::tanh(inner * x)};
                                                                        },
                                                                        std::tuple{df::constant(graph, 0), sum + x});
                                       return std::tuple{i + 1, sum + inner};
                                     },
                                     std::tuple{df::constant(graph, 0), x});
      return df::reduce_sum(sum * sum);
    });
  }
  SECTION("branches in a loop") {
    check_gradients({2}, [](df::Graph& graph, auto x) {
      auto [i, y] = df::while_loop([&](auto i, auto) { return i < 4; },
                                   [&](auto i, auto y) {
                                     auto next = df::cond(
                                         df::equal(df::mod(i, df::constant(graph, 2)), df::constant(graph, 0)),
                                         [&] { return y * df::exp(x * 0.3); }, [&] { return df::sin(y) + x; });
                                     return std::tuple{i + 1, next};
                                   },
                                   std::tuple{df::constant(graph, 0), x});
      return df::reduce_sum(y);
    });
  }
  SECTION("no iteration") {
    check_gradients({2}, [](df::Graph& graph, auto x) {
      auto [i, y] = df::while_loop([&](auto i, auto) { return i < 0; },
                                   [&](auto i, auto y) {
                                     return std::tuple{i + 1, y * x};
                                   },
                                   std::tuple{df::constant(graph, 0), x * x});
      return df::reduce_sum(y);
    });
  }
}

TEMPLATE_TEST_CASE("rows of 16-bit floats that are scattered on one place are rounded once", "", df::Half,
                   df::BFloat16) {
  df::Graph graph;
  const auto places = vector<std::int32_t>(graph, std::vector<std::int32_t>(3000, 1));
  const auto ones = df::fill<TestType>(graph, {3000, 2}, TestType(1.0f));
  const auto array = df::TensorArray<TestType>::scatter(places, ones);
  df::Session session(graph);
  const auto sums = session.run(array.read(df::constant(graph, 1)));
  const auto expected = static_cast<TestType>(3000.0f);  // 2048 and 256 if it is rounded with each row
  CHECK(values(sums) == std::vector<TestType>{expected, expected});
}

TEST_CASE("gradients go through arrays, twice") {
  SECTION("written in a loop and stacked") {
    check_gradients({3}, [](df::Graph& graph, auto x) {
      auto [i, last, array] =
          df::while_loop([&](auto i, auto, auto) { return i < 4; },
                         [&](auto i, auto last, auto array) {
                           auto next = last * df::cos(x);
                           return std::tuple{i + 1, next, array.write(i, next * next)};
                         },
                         std::tuple{df::constant(graph, 0), x, df::TensorArray<double>(graph, 4, {3})});
      return df::reduce_sum(array.stack() * df::constant(graph, 0.5)) + df::reduce_sum(last);
    });
  }
  SECTION("written over, gathered twice, scattered on one place") {
    check_gradients({4, 2}, [](df::Graph& graph, auto x) {
      auto array = df::TensorArray<double>::unstack(x);
      auto one = df::constant(graph, 1);
      array = array.write(one, array.read(one) * array.read(df::constant(graph, 2)));
      auto rows = array.gather(vector<std::int32_t>(graph, {1, 3, 1}));
      auto scattered = df::TensorArray<double>::scatter(vector<std::int32_t>(graph, {2, 0, 2}), df::exp(rows));
      auto together = scattered.read(df::constant(graph, 2)) * scattered.read(df::constant(graph, 0));
      return df::reduce_sum(together);
    });
  }
  SECTION("split, changed and joined") {
    check_gradients({4, 2}, [](df::Graph& graph, auto x) {
      auto parts = df::TensorArray<double>::split(x, vector<std::int64_t>(graph, {1, 0, 3}));
      auto first = parts.read(df::constant(graph, 0));
      auto changed = parts.write(df::constant(graph, 0), df::concat(0, {first * first, df::sin(first)})).concat();
      return df::reduce_sum(changed * changed * changed) + df::reduce_sum(parts.concat() * x);
    });
  }
  SECTION("joined after a loop") {
    check_gradients({3}, [](df::Graph& graph, auto x) {
      auto [i, array] = df::while_loop([&](auto i, auto) { return i < 3; },
                                       [&](auto i, auto array) {
                                         auto of = df::cast<double>(i + 1);
                                         return std::tuple{i + 1, array.write(i, df::pow(x, of))};
                                       },
                                       std::tuple{df::constant(graph, 0), df::TensorArray<double>(graph, 3, {3})});
      auto again = df::TensorArray<double>::split(array.concat(), vector<std::int32_t>(graph, {4, 5}));
      return df::reduce_sum(df::exp(again.read(df::constant(graph, 1))));
    });
  }
  SECTION("pushed and popped") {
    check_gradients({2}, [](df::Graph& graph, auto x) {
      auto [i, stack] = df::while_loop([&](auto i, auto) { return i < 3; },
                                       [&](auto i, auto stack) {
                                         return std::tuple{i + 1, stack.push(x * df::cast<double>(i + 1))};
                                       },
                                       std::tuple{df::constant(graph, 0), df::TensorStack<double>(graph, {2})});
      auto [rest, product] = df::while_loop([&](auto stack, auto) { return stack.size() > 1; },
                                            [&](auto stack, auto product) {
                                              auto [rest, top] = stack.pop();
                                              return std::tuple{rest, product * top};
                                            },
                                            std::tuple{stack, x});
      auto [none, bottom] = rest.pop();
      return df::reduce_sum(product * bottom);
    });
  }
}

TEST_CASE("an array that a loop reads and writes has a gradient, whatever is known of its elements") {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {4});
  auto [i, products] =
      df::while_loop([&](auto i, auto) { return i < 3; },
                     [&](auto i, auto products) {
                       return std::tuple{i + 1, products.write(i + 1, products.read(i) * products.read(i + 1))};
                     },
                     std::tuple{df::constant(graph, 0), df::TensorArray<float>::unstack(x)});
  auto y = products.stack();
  auto gradient = df::gradients(df::reduce_sum(y), x);
  df::Session session(graph, {.passes = df::testing::each_form()});
  const auto [a, b] = session.run({{x, df::Tensor<float>({4}, {1, 2, 3, 4})}}, y, gradient);
  CHECK(values(a) == std::vector<float>{1, 2, 6, 24});
  CHECK(values(b) == std::vector<float>{1 + 2 + 6 + 24, 1 + 3 + 12, 2 + 8, 6});
}

TEST_CASE("elements that were dropped from a list have no gradient") {
  df::Graph graph;
  auto x = df::placeholder<float>(graph, {4});
  const df::AnyOutput list = df::TensorArray<float>::unstack(x).list();
  const df::AnyOutput fewer = df::build<df::TensorListResize>({list, df::constant(graph, 2)});
  auto y = df::TensorArray<float>(df::build<df::TensorListResize>({fewer, df::constant(graph, 4)})).stack();
  auto gradient = df::gradients(df::reduce_sum(y * y + y), x);
  df::Session session(graph, {.passes = df::testing::each_form()});
  const auto [a, b] = session.run({{x, df::Tensor<float>({4}, {1, 2, 3, 4})}}, y, gradient);
  CHECK(values(a) == std::vector<float>{1, 2, 0, 0});
  CHECK(values(b) == std::vector<float>{3, 5, 0, 0});
}

TEST_CASE("elements far from each other are refused, not given memory between them") {
  df::Graph graph;
  auto array = df::TensorArray<float>(graph, 2'000'000'000, df::Shape{});
  auto one = df::constant(graph, 1.0f);
  auto apart = array.write(df::constant(graph, 0), one).write(df::constant(graph, 1'999'999'999), one);
  df::Session session(graph, {.passes = df::testing::each_form()});
  CHECK(code_of([&] { session.run(apart.read(df::constant(graph, 0))); }) == df::Code::resource_exhausted);
  CHECK(session.run(array.write(df::constant(graph, 1'999'999'999), one).size()).scalar() == 2'000'000'000);
}

TEST_CASE("gradients go through map, folds and scan, twice") {
  SECTION("map") {
    check_gradients({3, 2}, [](df::Graph&, auto x) {
      return df::reduce_sum(df::map([&](auto row) { return df::tanh(row * df::reduce_sum(x)); }, x));
    });
  }
  SECTION("map in a map") {
    check_gradients({2, 3}, [](df::Graph&, auto x) {
      return df::reduce_sum(df::map(
          [&](auto row) {
            return df::reduce_sum(df::map([&](auto element) { return df::sin(element) * df::reduce_sum(row); }, row));
          },
          x));
    });
  }
  SECTION("folds") {
    check_gradients({3, 2}, [](df::Graph& graph, auto x) {
      auto one = df::fill<double>(graph, {2}, 1.0);
      auto left = df::foldl([](auto state, auto row) { return df::sin(state) + row * state; }, x, one);
      auto right = df::foldr([](auto state, auto row) { return state * row + row; }, x, one);
      return df::reduce_sum(left * right);
    });
  }
  SECTION("scan") {
    check_gradients({3, 2}, [](df::Graph& graph, auto x) {
      auto one = df::fill<double>(graph, {2}, 1.0);
      auto forward = df::scan([](auto state, auto row) { return df::tanh(state * row); }, x, one);
      auto backward = df::scan([](auto state, auto row) { return state + row * row; }, x, one, {.reverse = true});
      return df::reduce_sum(forward * backward);
    });
  }
}

TEST_CASE("a loop of many iterations writes an array without copying it") {
  df::Graph graph;
  constexpr std::int32_t count = df::testing::is_sanitized ? 10'000 : 100'000;
  auto x = df::placeholder<float>(graph, {});
  auto [i, array] =
      df::while_loop([&](auto i, auto) { return i < count; },
                     [&](auto i, auto array) {
                       return std::tuple{i + 1, array.write(i, x * 2.0f)};
                     },
                     std::tuple{df::constant(graph, 0), df::TensorArray<float>(graph, count, df::Shape{})});
  auto sum = df::reduce_sum(array.stack());
  auto gradient = df::gradients(sum, x);
  df::Session session(graph, {.passes = df::testing::each_form()});
  CHECK(session.run({{x, df::Tensor<float>(0.5f)}}, sum).scalar() == count);
  CHECK(session.run({{x, df::Tensor<float>(0.5f)}}, gradient).scalar() == 2.0f * count);
}
