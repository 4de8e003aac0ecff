// Rows that a GPU parts, puts together, shuffles and finds in shards, beside the CPU's.
#include "cuda/gpu_that_is_none.hpp"
#include "support/errors.hpp"

#include <dflow/dflow.hpp>

#include <algorithm>
#include <complex>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace dflow;
using namespace dflow::testing;

namespace {

template <class T>
Tensor<T> counted(const Shape& shape) {
  Tensor<T> tensor(shape);
  std::int64_t next = 1;
  for (T& each : tensor) each = static_cast<T>(static_cast<float>(next++ % 100));
  return tensor;
}

template <class T>
std::vector<Tensor<T>> moved_on(const std::string& device, const std::shared_ptr<FakeDriver>& driver, const Shape& rows,
                                const Shape& row) {
  Graph graph;
  Shape shape = rows;
  for (int d = 0; d < row.rank(); ++d) shape = shape.appended(row[d]);
  const auto x = placeholder<T>(graph, shape);
  const auto parts = placeholder<std::int32_t>(graph, rows);
  std::vector<Output<T>> edges;
  {
    const auto on = graph.device(device);
    edges = dynamic_partition(x, parts, 4);
    // Later ones over earlier ones, and rows that nobody names.
    edges.push_back(dynamic_stitch<T>({parts * 2, parts + 3}, {x, x}));
    if (shape.rank() > 0) {
      edges.push_back(random_shuffle(x, {.seed = 7}));
      edges.push_back(random_shuffle(x, {.seed = 8}));
    }
  }
  Session session(graph, {.devices = gpus_and_cpu(driver)});
  Tensor<std::int32_t> numbers(rows);
  std::int32_t next = 5;
  for (std::int32_t& each : numbers) each = (next = next * 7 % 11) % 3;  // none for partition 3
  std::vector<Tensor<T>> all;
  for (int run = 0; run < 2; ++run) {
    for (auto& each : run_edges<T>(session, {{x, counted<T>(shape)}, {parts, numbers}}, edges)) all.push_back(each);
  }
  return all;
}

template <class T>
void compare_moves() {
  for (const auto& [rows, row] : std::vector<std::pair<Shape, Shape>>{
           {{7}, {3}}, {{2, 5}, {}}, {{1}, {2, 2}}, {{0}, {3}}, {{4}, {0}}, {{}, {2}}, {{300}, {1}}}) {
    INFO(dflow::dtype_name(dtype_of<T>) << ", rows " << rows.to_string() << " of " << row.to_string());
    const auto driver = std::make_shared<FakeDriver>(FakeDriverOptions{.seed = sizeof(T)});
    const auto got = moved_on<T>("/gpu:0", driver, rows, row), want = moved_on<T>("/cpu:0", driver, rows, row);
    for (std::size_t k = 0; k < want.size(); ++k) {
      INFO("result " << k);
      REQUIRE(got[k].shape() == want[k].shape());
      CHECK(std::equal(got[k].begin(), got[k].end(), want[k].begin()));
    }
    check_end(*driver);
  }
}

}  // namespace

TEST_CASE("a GPU parts rows, puts them together and shuffles them as the CPU does", "[cuda]") {
  compare_moves<std::uint8_t>();
  compare_moves<BFloat16>();
  compare_moves<float>();
  compare_moves<std::int64_t>();
  compare_moves<std::complex<double>>();
}

TEST_CASE("a bad partition, index or id names itself, wherever rows are moved", "[cuda]") {
  const auto driver = std::make_shared<FakeDriver>();
  Graph graph;
  const auto numbers = placeholder<std::int32_t>(graph, {3});
  const auto on = graph.device("/gpu:0");
  const auto x = constant(graph, counted<float>({3, 2}));
  const auto parts = dynamic_partition(x, numbers, 2);
  const auto whole = dynamic_stitch<float>({numbers}, {x});
  const auto shards = build<ShardOfRow>({cast<std::int64_t>(numbers)}, {.num_rows = 5, .num_shards = 2}).output(1);
  Session session(graph, {.devices = gpus_and_cpu(driver)});
  using Catch::Matchers::Contains;
  const Tensor<std::int32_t> bad({3}, {0, 1, 2}), negative({3}, {0, -1, 2}), far({3}, {0, 1, 5});
  CHECK_THAT(error_of([&] { return session.run({{numbers, bad}}, parts[0]); }), Contains("partitions[2] = 2"));
  CHECK_THAT(error_of([&] { return session.run({{numbers, negative}}, whole); }), Contains("[1] = -1 is negative"));
  CHECK_THAT(error_of([&] {
               return session.run({{numbers, far}}, shards);
             }),
             Contains("ids[2] = 5 is outside [0, 5)") && Contains("2 shards"));
  CHECK(session.run({{numbers, bad}}, whole).shape() == Shape{3, 2});
}

namespace {

/// Vectors of a table in three shards after two steps of training, on one device.
std::vector<float> embedded_on(const std::string& device, const std::shared_ptr<FakeDriver>& driver,
                               PartitionStrategy strategy) {
  Graph graph;
  const auto on = graph.device(device);
  std::vector<Variable<float>> shards;
  for (int i = 0; i < 3; ++i) {
    shards.emplace_back(graph, counted<float>({rows_of_shard(8, 3, i), 2}));
  }
  const auto ids = constant(graph, Tensor<std::int64_t>(Shape{5}, {7, 0, 3, 3, 5}));
  const auto vectors = embedding_lookup(shards, ids, strategy);
  const auto train = train::GradientDescent(0.1f).minimize(reduce_sum(square(vectors)));
  const auto initialize = initialize_variables(graph);
  Session session(graph, {.devices = gpus_and_cpu(driver)});
  session.run(initialize);
  for (int i = 0; i < 2; ++i) session.run(train);
  const Tensor<float> result = session.run(vectors);
  return {result.begin(), result.end()};
}

}  // namespace

TEST_CASE("a table in shards is looked up and trained on a GPU", "[cuda]") {
  for (const auto strategy : {PartitionStrategy::mod, PartitionStrategy::div}) {
    const auto driver = std::make_shared<FakeDriver>();
    const auto got = embedded_on("/gpu:0", driver, strategy), want = embedded_on("/cpu:0", driver, strategy);
    REQUIRE(got.size() == want.size());
    for (std::size_t i = 0; i < want.size(); ++i) CHECK(got[i] == Approx(want[i]));
    check_end(*driver);
  }
}
