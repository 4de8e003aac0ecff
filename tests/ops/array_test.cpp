#include <dflow/ops/array/list.hpp>

#include <dflow/autodiff/gradients.hpp>
#include <dflow/core/bfloat16.hpp>
#include <dflow/core/half.hpp>
#include <dflow/graph/graph.hpp>
#include <dflow/session/session.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace df = dflow;

namespace {

std::string shape_text(const df::AnyOutput& x) { return x.shape().to_string(); }

template <class T>
std::int64_t range_size(T start, T limit, T delta) {
  return df::detail::range_size(df::Tensor<T>(start), df::Tensor<T>(limit), df::Tensor<T>(delta));
}

}  // namespace

TEST_CASE("reshape infers the open dimension where the elements decide it") {
  df::Graph graph;
  const auto x = df::placeholder<float>(graph, {4, 3});
  CHECK(shape_text(df::reshape(x, {2, -1})) == "[2,6]");
  CHECK(shape_text(df::reshape(x, df::Shape{12})) == "[12]");
  CHECK(shape_text(df::reshape(x, df::shape(df::placeholder<float>(graph, {df::dynamic, 2})))) == "[?,2]");
  CHECK(shape_text(df::reshape(x, df::placeholder<std::int32_t>(graph, {3}))) == "[?,?,?]");
  const auto batch = df::placeholder<float>(graph, {df::dynamic, 3});
  CHECK(shape_text(df::reshape(batch, {-1, 1, 3})) == "[?,1,3]");
  CHECK(shape_text(df::expand_dims(x, -1)) == "[4,3,1]");
  CHECK(shape_text(df::squeeze(df::placeholder<float>(graph, {1, 4, 1}))) == "[4]");
  CHECK(shape_text(df::squeeze(df::placeholder<float>(graph, {1, 4, 1}), {-1})) == "[1,4]");
  CHECK(shape_text(df::squeeze(batch)) == "<unknown>");
}

TEST_CASE("an open dimension beside a 0 is what the other dimensions leave") {
  // TensorFlow 2's kernel: zeros are left out of both products, and the quotient is rounded down.
  struct Row {
    df::Shape x;
    std::vector<std::int64_t> to;
    std::string shape;
  };
  for (const Row& row : {Row{{0, 3}, {0, -1}, "[0,3]"}, Row{{0, 3}, {-1, 0}, "[3,0]"}, Row{{0, 3}, {-1}, "[0]"},
                         Row{{0}, {0, -1}, "[0,1]"}, Row{{2, 0, 6}, {0, 4, -1}, "[0,4,3]"},
                         Row{{0, 3}, {0, 2, -1}, "[0,2,1]"}, Row{{0, 3}, {5, -1}, "[5,0]"}}) {
    INFO(row.x.to_string() << " to " << row.shape);
    df::Graph graph;
    const auto known = df::reshape(df::placeholder<float>(graph, row.x), row.to);
    CHECK(shape_text(known) == row.shape);
    const auto x = df::placeholder<float>(graph);
    const auto to = df::placeholder<std::int32_t>(graph);
    const std::vector<std::int32_t> dims(row.to.begin(), row.to.end());
    df::Session session(graph);
    const df::Tensor<float> value(row.x);
    CHECK(session.run({{x, value}}, df::reshape(x, row.to)).shape().to_string() == row.shape);
    const df::Tensor<std::int32_t> fed({static_cast<std::int64_t>(dims.size())}, dims);
    CHECK(session.run({{x, value}, {to, fed}}, df::reshape(x, to)).shape().to_string() == row.shape);
  }
  df::Graph graph;
  CHECK(contains(error_of([&] { df::reshape(df::placeholder<float>(graph, {2, 3}), {0, -1}); }), "do not decide"));
  CHECK(shape_text(df::reshape(df::placeholder<float>(graph, {df::dynamic, 3}), {0, -1})) == "[0,?]");
  const std::int64_t large = std::int64_t{1} << 40;
  const auto huge = df::placeholder<float>(graph, {0, large, large});
  CHECK(contains(error_of([&] { df::reshape(huge, {0, -1}); }), "cannot be multiplied"));
}

TEST_CASE("a range ends before its limit where NumPy's and TensorFlow's do") {
  // Sizes: numpy.arange of NumPy 2.4.6 in the element type (bfloat16: with ml_dtypes).
  struct Row {
    double start, limit, delta;
    std::int64_t in_double, in_float, in_half, in_bfloat16;
  };
  for (const Row& row :
       {Row{0, 0.3, 0.1, 3, 3, 4, 3}, Row{0, 0.7, 0.1, 7, 7, 8, 7}, Row{1, 2, 0.1, 10, 10, 10, 10},
        Row{5, -3, -0.7, 12, 12, 12, 12}, Row{0, -0.3, -0.1, 3, 3, 4, 3}, Row{0.1, 0.8, 0.1, 7, 7, 7, 7},
        Row{0, 2.1, 0.7, 4, 3, 3, 3}, Row{-0.6, 0.6, 0.2, 6, 6, 7, 6}}) {
    INFO("from " << row.start << " to " << row.limit << " by " << row.delta);
    const auto size = [&]<class T>(T) { return range_size<T>(T(row.start), T(row.limit), T(row.delta)); };
    CHECK(size(double()) == row.in_double);
    CHECK(size(float()) == row.in_float);
    CHECK(size(df::Half(0)) == row.in_half);
    CHECK(size(df::BFloat16(0)) == row.in_bfloat16);
  }
  int ranges = 0, with_limit = 0;
  std::int64_t elements = 0;
  for (int k = 1; k <= 400; ++k) {
    for (int m = 1; m <= 50; ++m) {
      const float delta = static_cast<float>(m) / 100, limit = static_cast<float>(k) * delta;
      const std::int64_t size = range_size<float>(0, limit, delta);
      elements += size;
      if (static_cast<float>(static_cast<double>(size - 1) * static_cast<double>(delta)) >= limit) ++with_limit;
      if (++ranges >= 2000) break;
    }
  }
  CHECK(ranges == 2360);
  CHECK(elements == 120455);
  CHECK(with_limit == 75);

  df::Graph graph;
  const auto tenths = df::range(graph, 0.0f, 0.3f, 0.1f);
  CHECK(shape_text(tenths) == "[3]");
  const auto limit = df::placeholder<float>(graph, {});
  const auto fed = df::range(df::constant(graph, 0.0f), limit, df::constant(graph, 0.1f));
  df::Session session(graph);
  const auto [folded, computed] = session.run({{limit, 0.3f}}, tenths, fed);
  for (const auto* got : {&folded, &computed}) {
    REQUIRE(got->num_elements() == 3);
    CHECK(got->span()[0] == 0.0f);
    CHECK(got->span()[1] == 0.1f);
    CHECK(got->span()[2] == 0.2f);
  }
}

TEST_CASE("a range has all its elements where the element type cannot count them") {
  // Exact quotients.
  CHECK(range_size<df::Half>(df::Half(0), df::Half(60000), df::Half(0.5f)) == 120000);
  CHECK(range_size<df::Half>(df::Half(-60000), df::Half(60000), df::Half(60000)) == 2);
  CHECK(range_size<df::BFloat16>(df::BFloat16(0), df::BFloat16(1000), df::BFloat16(1.5f)) == 667);
  CHECK(range_size<float>(-0x1p127f, 0x1p127f, 0x1p126f) == 4);
  CHECK(range_size<float>(0, 1e-30f, 1e30f) == 1);
  CHECK(range_size<double>(0, 1e-300, 1e300) == 1);
  CHECK(range_size<std::int8_t>(-128, 127, 1) == 255);
  CHECK(range_size<std::int8_t>(127, -128, -128) == 2);
  CHECK(range_size<std::uint8_t>(0, 255, 254) == 2);
  CHECK(range_size<std::int64_t>(INT64_MIN, INT64_MAX, INT64_MAX) == 3);
  CHECK(range_size<std::uint64_t>(0, UINT64_MAX, UINT64_MAX) == 1);
}

TEST_CASE("an error at building names op, shapes and the line of the program") {
  df::Graph graph;
  const auto x = df::placeholder<float>(graph, {2, 3});
  const std::string text = error_of([&] { df::reshape(x, {4}, {.name = "flat"}); });
  CHECK(contains(text, "Reshape"));
  CHECK(contains(text, "[2,3]"));
  CHECK(contains(text, "[4]"));
  CHECK(contains(text, "flat"));
  CHECK(contains(text, "array_test.cpp:"));
}

TEST_CASE("braces make a constant of the rank that they show") {
  df::Graph graph;
  const auto matrix = df::constant<float>(graph, {{1, 2}, {3, 4}}, {.name = "matrix"});
  CHECK(matrix.shape() == df::PartialShape{2, 2});
  CHECK(matrix.name() == "matrix");
  const auto vector = df::constant<std::int64_t>(graph, {5, 6, 7});
  const auto cube = df::constant<double>(graph, {{{1}, {2}, {0.25}}});
  CHECK(df::constant<float>(graph, {}).shape() == df::PartialShape{0});
  CHECK(df::constant<float>(graph, {{}, {}}).shape() == df::PartialShape{2, 0});
  CHECK(df::constant<float>(graph, {2}).shape() == df::PartialShape{1});
  CHECK(df::constant<float>(graph, {2}, {.name = "one"}).shape() == df::PartialShape{1});
  CHECK(df::constant<float>(graph, 2).shape() == df::PartialShape{});
  CHECK(df::constant<std::string>(graph, {"a", "b"}).shape() == df::PartialShape{2});
  CHECK(df::constant(graph, std::string("a")).shape() == df::PartialShape{});
  CHECK(df::constant(graph, "a").dtype() == df::DType::string);
  df::Session session(graph);
  const auto [m, v, c] = session.run(matrix, vector, cube);
  CHECK(m.to_string() == "float[2,2] [[1, 2], [3, 4]]");
  CHECK(v.to_string() == "int64[3] [5, 6, 7]");
  CHECK(c.to_string() == "double[1,3,1] [[[1], [2], [0.25]]]");
  const std::string text = error_of([&] { df::constant<float>(graph, {{1, 2}, {3}}, {.name = "c"}); });
  CHECK(contains(text, "row 1 has shape [1] and row 0 [2]"));
  CHECK(contains(text, "node 'c', at "));
}

TEST_CASE("a constant takes a tensor whose element type is known at run time only") {
  df::Graph graph;
  const df::AnyTensor value = df::Tensor<std::int32_t>({3}, {1, 2, 3});
  const df::AnyOutput edge = df::constant(graph, value, {.name = "numbers"});
  CHECK(edge.dtype() == df::DType::int32);
  CHECK(edge.name() == "numbers");
  CHECK(contains(error_of([&] { df::constant(graph, df::AnyTensor()); }), "the tensor is empty"));
  df::Session session(graph);
  CHECK(df::bitwise_equal(session.run(edge), value));
}

TEST_CASE("a constant of an empty tensor is refused with its line, one of no elements is not") {
  df::Graph graph;
  const std::string text = error_of([&] { df::constant(graph, df::Tensor<float>(), {.name = "c"}); });
  CHECK(contains(text, "the tensor is empty"));
  CHECK(contains(text, "op Const, node 'c'"));
  CHECK(contains(text, "array_test.cpp:"));
  CHECK(df::constant(graph, df::Tensor<float>({0}, {})).shape() == df::PartialShape{0});
}

TEST_CASE("impossible shapes are refused when they are built") {
  df::Graph graph;
  const auto x = df::placeholder<float>(graph, {2, 3});
  CHECK(contains(error_of([&] { df::reshape(x, {-1, -1}); }), "more than one dimension open"));
  CHECK(contains(error_of([&] { df::reshape(x, {-2, 3}); }), "is -2"));
  CHECK(contains(error_of([&] { df::reshape(x, {1, 1, 1, 1, 1, 1, 1, 2, 3}); }), "more than 8"));
  CHECK(df::reshape(x, {1, 1, 1, 1, 1, 1, 2, 3}).shape() == df::PartialShape{1, 1, 1, 1, 1, 1, 2, 3});
  const auto deep = df::placeholder<float>(graph, {1, 1, 1, 1, 1, 1, 1, 1}), one = df::placeholder<float>(graph, {});
  CHECK(contains(error_of([&] { df::pack({deep, deep}); }), "a tensor has at most 8 dimensions"));
  CHECK(contains(error_of([&] { df::concat(0, {one, one}); }), "scalars cannot be concatenated; pack makes them"));
  const auto pair = df::constant(graph, df::Tensor<std::int32_t>({2}, {0, 0}));
  const auto single = df::constant(graph, df::Tensor<std::int32_t>({1}, {1}));
  const auto unknown = df::placeholder<float>(graph, df::PartialShape::unknown());
  CHECK(contains(error_of([&] { df::build<df::Slice>({unknown, pair, single}); }), "Slice"));
  CHECK(contains(error_of([&] { df::expand_dims(x, 4); }), "ExpandDims"));
  CHECK(contains(error_of([&] { df::squeeze(x, {1}); }), "is 3, not 1"));
  CHECK(contains(error_of([&] { df::fill(graph, {2, -1}, 1.0f); }), "negative"));
  CHECK(contains(error_of([&] { df::zeros<float>(graph, {INT64_MAX, 2}); }), "more elements than can be counted"));
  CHECK(contains(error_of([&] { df::slice(x, {0, 2}, {1, 2}); }), "past dimension 1"));
  CHECK(contains(error_of([&] { df::slice(x, {0}, {1}); }), "rank"));
  CHECK(contains(error_of([&] { df::pad(x, {{1, 1}}); }), "Pad"));
  CHECK(contains(error_of([&] { df::pad(x, {{-1, 1}, {0, 0}}); }), "negative"));
  CHECK(contains(error_of([&] { df::concat(2, {x, x}); }), "axis 2"));
  CHECK(contains(error_of([&] { df::concat(0, {x, df::placeholder<float>(graph, {2, 4})}); }), "Concat"));
  CHECK(contains(error_of([&] { df::split(1, 2, x); }), "does not divide"));
  CHECK(contains(error_of([&] { df::split(1, 0, x); }), "Split"));
  CHECK(contains(error_of([&] { df::transpose(x, {0, 0}); }), "repeats dimension 0"));
  CHECK(contains(error_of([&] { df::transpose(x, {0, 2}); }), "names dimension 2"));
  CHECK(contains(error_of([&] { df::range(graph, 0, 5, -1); }), "does not reach"));
  CHECK(contains(error_of([&] { df::range(graph, 0.0f, 5.0f, 0.0f); }), "delta is 0"));
  CHECK(contains(error_of([&] { df::unpack(x, 3); }), "not num = 3"));
  const df::AnyOutput axis = df::constant<std::int32_t>(graph, 0);
  CHECK(
      contains(error_of([&] { df::build<df::ConcatOffset>({axis}, {.count = 0}, {}, df::type_args<std::int32_t>()); }),
               "at least one shape"));
  const auto scalar = df::placeholder<float>(graph, {});
  CHECK(contains(error_of([&] { df::gather(scalar, df::placeholder<std::int32_t>(graph, {1})); }), "Gather"));
  CHECK(contains(error_of([&] { df::one_hot<float>(df::placeholder<std::int32_t>(graph, {2}), 3, {.axis = 2}); }),
                 "axis 2"));
}

TEST_CASE("slices, pads and joins know their shapes as far as their inputs do") {
  df::Graph graph;
  const auto x = df::placeholder<float>(graph, {df::dynamic, 4});
  CHECK(shape_text(df::slice(x, {1, 1}, {-1, 2})) == "[?,2]");
  CHECK(shape_text(df::slice(x, {1, 1}, {3, -1})) == "[3,3]");
  CHECK(shape_text(df::pad(x, {{1, 1}, {2, 0}})) == "[?,6]");
  CHECK(shape_text(df::concat(0, {x, x})) == "[?,4]");
  CHECK(shape_text(df::concat(-1, {x, df::placeholder<float>(graph, {5, 2})})) == "[5,6]");
  CHECK(shape_text(df::concat({x, df::placeholder<float>(graph, {5, 2})}, -1)) == "[5,6]");
  CHECK(shape_text(df::concat(std::vector{x, x}, 1)) == "[?,8]");
  CHECK(shape_text(df::split(x, 2, 1).at(1)) == "[?,2]");
  CHECK(shape_text(df::pack({x, x}, {.axis = 1})) == "[?,2,4]");
  const auto parts = df::split(1, 2, x);
  REQUIRE(parts.size() == 2);
  CHECK(shape_text(parts[1]) == "[?,2]");
  CHECK(shape_text(df::unpack(x, 4, -1)[3]) == "[?]");
}

TEST_CASE("gathered and reordered tensors know their shapes") {
  df::Graph graph;
  const auto table = df::placeholder<float>(graph, {100, 16});
  const auto ids = df::placeholder<std::int64_t>(graph, {df::dynamic, 7});
  CHECK(shape_text(df::embedding_lookup(table, ids)) == "[?,7,16]");
  CHECK(shape_text(df::one_hot<float>(ids, 5)) == "[?,7,5]");
  CHECK(shape_text(df::one_hot<float>(ids, 5, {.axis = 0})) == "[5,?,7]");
  CHECK(shape_text(df::transpose(table)) == "[16,100]");
  CHECK(shape_text(df::transpose(df::placeholder<float>(graph, {1, 2, 3, 4}), {0, 3, 1, 2})) == "[1,4,2,3]");
  CHECK(shape_text(df::transpose(df::placeholder<float>(graph))) == "<unknown>");
  CHECK(shape_text(df::range(graph, 3, 18, 4)) == "[4]");
  CHECK(shape_text(df::fill(graph, {2, 0, 3}, true)) == "[2,0,3]");
  CHECK(shape_text(df::fill(df::shape(table), 0.5f)) == "[100,16]");
  CHECK(shape_text(df::shape(table)) == "[2]");
  CHECK(shape_text(df::rank(table)) == "[]");
  CHECK(shape_text(df::zeros_like(ids)) == "[?,7]");
}

TEST_CASE("the dimensions of a fill may be the only edge") {
  df::Graph graph;
  const auto dims = df::constant<std::int64_t>(graph, {2});
  const auto four = df::constant(graph, 4.0f);
  df::Session session(graph);
  const df::Output<float> halves = df::fill(dims, 0.5f);
  const df::Output<std::int32_t> ones = df::fill(dims, 1);
  const df::Output<std::string> words = df::fill(dims, "word");
  const df::Output<bool> flags = df::fill(dims, true);
  CHECK(session.run(halves).to_string() == "float[2] [0.5, 0.5]");
  CHECK(session.run(ones).to_string() == "int32[2] [1, 1]");
  CHECK(session.run(words).to_string() == "string[2] [\"word\", \"word\"]");
  CHECK(session.run(flags).to_string() == "bool[2] [true, true]");
  CHECK(session.run(df::fill(dims, df::Tensor<double>(2.5))).to_string() == "double[2] [2.5, 2.5]");
  CHECK(session.run(df::fill(dims, four)).to_string() == "float[2] [4, 4]");
  CHECK(session.run(df::fill(2, four)).to_string() == "float[2] [4, 4]");
}

TEST_CASE("a tensor of strings may be filled and gathered, but not padded") {
  df::Graph graph;
  CHECK(df::fill<std::string>(graph, {2}, "word").dtype() == df::DType::string);
  const auto words = df::placeholder<std::string>(graph, {3});
  CHECK(df::gather(words, df::placeholder<std::int32_t>(graph, {2})).dtype() == df::DType::string);
  const df::AnyOutput paddings = df::placeholder<std::int32_t>(graph, {1, 2});
  CHECK(contains(error_of([&] { df::build<df::Pad>({words, paddings}); }), "not defined for T = string"));
}

TEST_CASE("the gradient of gather has the table's shape, whatever of the shapes is known") {
  const auto check = [](const df::PartialShape& of_table, const df::PartialShape& of_ids,
                        const df::Tensor<float>& table, const df::Tensor<std::int32_t>& ids, float sum) {
    INFO(of_table.to_string() << ' ' << of_ids.to_string());
    df::Graph graph;
    const auto params = df::placeholder<float>(graph, of_table);
    const auto indices = df::placeholder<std::int32_t>(graph, of_ids);
    const auto dx = df::Output<float>(df::gradients(df::gather(params, indices), params));
    df::Session session(graph);
    const df::Tensor<float> got = session.run({{params, table}, {indices, ids}}, dx);
    CHECK(got.shape() == table.shape());
    float total = 0;
    for (const float each : got) total += each;
    CHECK(total == sum);
  };
  const df::Tensor<float> table({3, 2}, {1, 2, 3, 4, 5, 6}), no_columns({3, 0}, {});
  const df::Tensor<std::int32_t> ids({2, 2}, {0, 2, 2, 1}), none({0, 2}, {});
  const df::PartialShape unknown = df::PartialShape::unknown();
  for (const df::PartialShape& of_ids : {df::PartialShape({2, 2}), df::PartialShape({df::dynamic, 2}), unknown}) {
    for (const df::PartialShape& of_table : {df::PartialShape({3, 2}), df::PartialShape({3, df::dynamic}), unknown}) {
      check(of_table, of_ids, table, ids, 8);
    }
    for (const df::PartialShape& of_table : {df::PartialShape({3, 0}), df::PartialShape({df::dynamic, 0}), unknown}) {
      check(of_table, of_ids, no_columns, ids, 0);
    }
  }
  for (const df::PartialShape& of_ids : {df::PartialShape({0, 2}), df::PartialShape({df::dynamic, 2})}) {
    check(df::PartialShape({3, 2}), of_ids, table, none, 0);
    check(df::PartialShape({3, 0}), of_ids, no_columns, none, 0);
  }
}
