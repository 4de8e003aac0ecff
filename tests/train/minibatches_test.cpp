#include <dflow/train/minibatches.hpp>

#include <dflow/base/status.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <limits>
#include <set>
#include <string>
#include <vector>

using dflow::train::Minibatches;

namespace {

std::vector<std::int64_t> copy(std::span<const std::int64_t> rows) { return {rows.begin(), rows.end()}; }

}  // namespace

TEST_CASE("An epoch visits rows once, in an order that the seed and the epoch decide") {
  Minibatches batches(10, 3, 5), again(10, 3, 5), other(10, 3, 7);
  CHECK(batches.per_epoch() == 3);
  std::vector<std::vector<std::int64_t>> epochs;
  for (int epoch = 0; epoch < 2; ++epoch) {
    std::set<std::int64_t> seen;
    epochs.emplace_back();
    for (int batch = 0; batch < 3; ++batch) {
      const auto rows = copy(batches.next());
      CHECK(rows == copy(again.next()));
      seen.insert(rows.begin(), rows.end());
      epochs.back().insert(epochs.back().end(), rows.begin(), rows.end());
    }
    CHECK(seen.size() == 9);
    CHECK(*seen.rbegin() < 10);
  }
  CHECK(epochs[0] != epochs[1]);
  CHECK(copy(other.next()) != std::vector<std::int64_t>(epochs[0].begin(), epochs[0].begin() + 3));
}

TEST_CASE("A batch needs at least one row and no more than there are") {
  CHECK_THROWS_AS(Minibatches(3, 4), dflow::Error);
  CHECK_THROWS_AS(Minibatches(3, 0), dflow::Error);
  CHECK_THROWS_AS(Minibatches(0, 1), dflow::Error);
  CHECK(code_of([] { return Minibatches(std::numeric_limits<std::int64_t>::max(), 1).per_epoch(); }) ==
        dflow::Code::resource_exhausted);
}

TEST_CASE("Rows are copied by number") {
  const dflow::Tensor<float> table({3, 2}, {1, 2, 3, 4, 5, 6});
  const std::vector<std::int64_t> rows{2, 0, 2};
  const auto picked = dflow::train::rows_of(table, rows);
  CHECK(picked.shape() == dflow::Shape{3, 2});
  CHECK(picked(0, 0) == 5.0f);
  CHECK(picked(1, 1) == 2.0f);
  CHECK(picked(2, 1) == 6.0f);
  const dflow::Tensor<std::string> texts({2, 2}, {"a", "b", "a text that is longer than a small string", "d"});
  const auto words = dflow::train::rows_of(texts, std::vector<std::int64_t>{1, 0, 1});
  CHECK(words.shape() == dflow::Shape{3, 2});
  CHECK(words(0, 0) == texts(1, 0));
  CHECK(words(1, 1) == "b");
  CHECK(words(2, 1) == "d");
  CHECK(dflow::train::rows_of(texts, {}).shape() == dflow::Shape{0, 2});
  const std::vector<std::int64_t> outside{3};
  CHECK_THROWS_WITH(dflow::train::rows_of(table, outside), Catch::Matchers::Contains("row 3 is outside [0, 3)"));
}
