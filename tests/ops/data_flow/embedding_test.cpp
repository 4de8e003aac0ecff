#include <dflow/ops/data_flow/embedding.hpp>

#include "catch.hpp"

#include <dflow/dflow.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

using namespace dflow;

namespace {

constexpr std::int64_t embedding_width = 3;

double table_value(std::int64_t row, std::int64_t column) {
  return std::sin(static_cast<double>(row * 17 + column * 5 + 1));
}

/// Row `row` of shard `shard`, as a row of the table.
std::int64_t row_in_table(std::int64_t rows, std::int64_t shards, std::int64_t shard, std::int64_t row,
                          PartitionStrategy strategy) {
  if (strategy == PartitionStrategy::mod) return row * shards + shard;
  for (std::int64_t before = 0; before < shard; ++before) row += rows_of_shard(rows, shards, before);
  return row;
}

std::vector<Variable<double>> sharded_table(Graph& graph, std::int64_t rows, std::int64_t shards,
                                            PartitionStrategy strategy) {
  std::vector<Variable<double>> all;
  all.reserve(static_cast<std::size_t>(shards));
  for (std::int64_t shard = 0; shard < shards; ++shard) {
    Tensor<double> value({rows_of_shard(rows, shards, shard), embedding_width});
    for (std::int64_t row = 0; row < value.dim(0); ++row) {
      for (std::int64_t i = 0; i < embedding_width; ++i) {
        value(row, i) = table_value(row_in_table(rows, shards, shard, row, strategy), i);
      }
    }
    all.emplace_back(graph, value, VariableOptions{.name = "part_" + std::to_string(shard)});
  }
  return all;
}

/// The result of a lookup of `ids` in `rows` rows, its loss over `steps` steps, and the table after them. `shards` =
/// 0: the table is one variable.
struct Trained {
  std::string shape;
  Tensor<double> found;
  std::vector<double> losses;
  std::vector<double> table;
};

template <class I>
Trained train_lookup(std::int64_t rows, std::int64_t shards, PartitionStrategy strategy, const Tensor<I>& ids,
                     const train::Optimizer& optimizer, bool known_shape = false) {
  Graph graph;
  const auto fed = placeholder<I>(graph, known_shape ? PartialShape(ids.shape()) : PartialShape::unknown(ids.rank()));
  const auto parts = sharded_table(graph, rows, std::max<std::int64_t>(shards, 1), strategy);
  const Output<double> found = shards == 0 ? embedding_lookup(parts[0], fed) : embedding_lookup(parts, fed, strategy);
  const auto loss = reduce_sum(square(found - 0.25));
  const Operation step = optimizer.minimize(loss);
  Session session(graph);
  session.run(initialize_variables(graph));
  Trained result;
  result.shape = found.shape().to_string();
  result.found = session.run({{fed, ids}}, found);
  for (int i = 0; i < 4; ++i) result.losses.push_back(session.run({{fed, ids}}, loss, step).scalar());
  result.table.resize(static_cast<std::size_t>(rows * embedding_width));
  for (std::size_t shard = 0; shard < parts.size(); ++shard) {
    const Tensor<double> value = session.run(parts[shard]);
    for (std::int64_t row = 0; row < value.dim(0); ++row) {
      const std::int64_t at =
          row_in_table(rows, static_cast<std::int64_t>(parts.size()), static_cast<std::int64_t>(shard), row, strategy);
      for (std::int64_t i = 0; i < embedding_width; ++i) {
        result.table[static_cast<std::size_t>(at * embedding_width + i)] = value(row, i);
      }
    }
  }
  return result;
}

void check_same(const Trained& sharded, const Trained& whole) {
  CHECK(sharded.found.shape() == whole.found.shape());
  CHECK(std::equal(sharded.found.begin(), sharded.found.end(), whole.found.begin(), whole.found.end()));
  CHECK(sharded.losses == whole.losses);
  CHECK(sharded.table == whole.table);
}

std::string message_of_lookup(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    CHECK(error.code() == Code::invalid_argument);
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a table in shards is looked up and trained as one table, bit for bit") {
  const Tensor<std::int32_t> ids({7}, {3, 9, 0, 3, 6, 3, 9});
  for (const PartitionStrategy strategy : {PartitionStrategy::mod, PartitionStrategy::div}) {
    for (const std::int64_t rows : {10, 12}) {
      for (const std::int64_t shards : {1, 2, 3, 5, 10}) {
        CAPTURE(static_cast<int>(strategy), rows, shards);
        const train::GradientDescent descent(0.25);
        check_same(train_lookup(rows, shards, strategy, ids, descent), train_lookup(rows, 0, strategy, ids, descent));
        const train::Adam adam(0.05);
        check_same(train_lookup(rows, shards, strategy, ids, adam), train_lookup(rows, 0, strategy, ids, adam));
        const train::Momentum momentum(0.05);
        check_same(train_lookup(rows, shards, strategy, ids, momentum), train_lookup(rows, 0, strategy, ids, momentum));
      }
    }
  }
}

TEST_CASE("ids of any rank, of int64, and none at all find their rows in shards") {
  const train::GradientDescent descent(0.5);
  const auto check = [&](const auto& ids, bool known, const std::string& shape) {
    CAPTURE(shape, known);
    const Trained sharded = train_lookup(11, 3, PartitionStrategy::div, ids, descent, known);
    const Trained whole = train_lookup(11, 0, PartitionStrategy::div, ids, descent, known);
    check_same(sharded, whole);
    CHECK(sharded.shape == shape);
    CHECK((known || ids.rank() > 1 || whole.shape == shape));
  };
  const Tensor<std::int64_t> matrix({2, 3}, {10, 0, 4, 4, 7, 3});
  check(matrix, true, "[2,3,3]");
  check(matrix, false, "[?,?,?]");
  check(Tensor<std::int32_t>(std::int32_t{8}), true, "[3]");
  check(Tensor<std::int32_t>({0}, {}), false, "[?,3]");
  check(Tensor<std::int32_t>({0}, {}), true, "[0,3]");
  check(Tensor<std::int64_t>({2, 0}, {}), false, "[?,?,?]");
}

TEST_CASE("the gradient of each shard is the rows that were read there") {
  Graph graph;
  const auto parts = sharded_table(graph, 7, 3, PartitionStrategy::mod);
  const auto ids = constant(graph, Tensor<std::int32_t>({4}, {5, 2, 5, 6}));
  const auto y = reduce_sum(embedding_lookup(parts, ids));
  std::vector<AnyOutput> xs(parts.begin(), parts.end());
  const std::vector<AnyOutput> ys{y};
  const std::vector<Gradient> all = gradients(std::span<const AnyOutput>(ys), std::span<const AnyOutput>(xs));
  Session session(graph);
  session.run(initialize_variables(graph));
  const std::vector<std::vector<std::int32_t>> rows{{2}, {}, {1, 0, 1}};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    REQUIRE(all[i].slices.has_value());
    const auto indices = session.run(Output<std::int32_t>(all[i].slices->indices));
    CHECK(std::vector<std::int32_t>(indices.begin(), indices.end()) == rows[i]);
    const auto values = session.run(Output<double>(all[i].slices->values));
    CHECK(values.shape() == Shape{static_cast<std::int64_t>(rows[i].size()), embedding_width});
    CHECK(std::all_of(values.begin(), values.end(), [](double value) { return value == 1; }));
  }
}

TEST_CASE("a table in shards may be looked up more than once in a step") {
  const auto run = [](std::int64_t shards) {
    Graph graph;
    const auto parts = sharded_table(graph, 9, std::max<std::int64_t>(shards, 1), PartitionStrategy::div);
    const auto look = [&](std::vector<std::int32_t> ids) {
      const auto fed = constant(graph, Tensor<std::int32_t>({static_cast<std::int64_t>(ids.size())}, ids));
      return shards == 0 ? embedding_lookup(parts[0], fed) : embedding_lookup(parts, fed, PartitionStrategy::div);
    };
    const auto loss = reduce_sum(look({1, 8, 4}) * look({4, 4, 0}));
    const Operation step = train::GradientDescent(0.125).minimize(loss);
    Session session(graph);
    session.run(initialize_variables(graph));
    std::vector<double> losses;
    for (int i = 0; i < 3; ++i) losses.push_back(session.run(loss, step).scalar());
    return losses;
  };
  CHECK(run(4) == run(0));
}

TEST_CASE("an id that the table does not have is refused, by its position and number") {
  for (const PartitionStrategy strategy : {PartitionStrategy::mod, PartitionStrategy::div}) {
    Graph graph;
    const auto parts = sharded_table(graph, 10, 3, strategy);
    const auto ids = placeholder<std::int64_t>(graph, {dynamic});
    const auto found = embedding_lookup(parts, ids, strategy);
    Session session(graph);
    session.run(initialize_variables(graph));
    const auto run = [&](std::int64_t id) {
      return session.run({{ids, Tensor<std::int64_t>({3}, {1, id, 2})}}, found);
    };
    for (const std::int64_t bad : {std::int64_t{10}, std::int64_t{-1}, std::int64_t{1} << 40}) {
      const std::string message = message_of_lookup([&] { run(bad); });
      CHECK(message.find("ids[1] = " + std::to_string(bad) + " is outside [0, 10)") != std::string::npos);
      CHECK(message.find("embedding_test.cpp") != std::string::npos);
      CHECK(run(9)(1, 0) == table_value(9, 0));
    }
  }
}

TEST_CASE("shards that are not those of one table are refused where the lookup is built") {
  Graph graph, other;
  const auto ids = placeholder<std::int32_t>(graph, {dynamic});
  const auto of_shape = [&](Graph& where, const Shape& shape) {
    return Variable<float>(where, Tensor<float>::zeros(shape));
  };
  const auto refused = [&](const std::vector<Variable<float>>& shards) {
    return message_of_lookup([&] { embedding_lookup(shards, ids); });
  };
  CHECK(refused({}).find("no shards") != std::string::npos);
  CHECK(refused({of_shape(graph, {4, 2}), of_shape(graph, {3, 3})}).find("shard 1") != std::string::npos);
  CHECK(refused({of_shape(graph, {4, 2}), of_shape(graph, {4})}).find("shard 1") != std::string::npos);
  CHECK(refused({of_shape(graph, {3, 2}), of_shape(graph, {4, 2})}).find("of 7 rows in 2 shards it has 4") !=
        std::string::npos);
  CHECK(refused({of_shape(graph, {}), of_shape(graph, {})}).find("shard 0") != std::string::npos);
  CHECK(refused({of_shape(graph, {4, 2}), of_shape(other, {4, 2})}).find("another graph") != std::string::npos);
  CHECK(refused({of_shape(graph, {4, 2}), Variable<float>()}).find("shard 1") != std::string::npos);
  const std::vector<Variable<float>> good{of_shape(graph, {4, 2}), of_shape(graph, {4, 2})};
  CHECK(message_of_lookup([&] { embedding_lookup(good, Output<std::int32_t>()); }).find("ids") != std::string::npos);
}

TEST_CASE("a table of one shard may have as many rows as there are numbers") {
  Graph graph;
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const auto ids = constant(graph, Tensor<std::int64_t>({3}, {0, 5, most - 1}));
  for (const auto strategy : {PartitionStrategy::mod, PartitionStrategy::div}) {
    const BuiltNode places = build<ShardOfRow>({ids}, {.num_rows = most, .num_shards = 1, .strategy = strategy});
    Session session(graph);
    const Output<std::int64_t> rows(places.output(1));
    CHECK(session.run(rows)(2) == most - 1);
  }
}
