#include <dflow/data/from.hpp>

#include "catch.hpp"
#include "data/elements.hpp"
#include "support/errors.hpp"

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <ranges>
#include <string>
#include <utility>
#include <vector>

namespace df = dflow;

TEST_CASE("elements come from vectors, views, lists and maps, which the dataset keeps") {
  std::vector<std::string> words{"a", "b", "c"};
  const auto data = df::data::from_vector(words);
  const auto range = df::data::from_range(words);
  words.clear();
  CHECK(all(data) == std::vector<std::string>{"a", "b", "c"});
  CHECK(all(range) == all(data));
  CHECK(data.size() == 3);
  const auto squares =
      df::data::from_range(std::views::iota(1, 4) | std::views::transform([](int i) { return i * i; }));
  CHECK(all(squares) == std::vector<int>{1, 4, 9});
  CHECK(squares.size() == 3);
  const auto list = df::data::from_range(std::list<int>{3, 1, 2});
  CHECK(all(list) == std::vector<int>{3, 1, 2});
  CHECK(all(list) == std::vector<int>{3, 1, 2});
  CHECK(list.size() == std::nullopt);
  CHECK(all(df::data::from_range(std::map<int, char>{{1, 'x'}})).front().second == 'x');
  CHECK(all(df::data::from_vector(std::vector<bool>{true, false})) == std::vector<bool>{true, false});
}

TEST_CASE("a generator is made anew for each pass") {
  const auto squares = df::data::from_generator([] {
    return [i = 0]() mutable -> std::optional<int> {
      ++i;
      return i <= 4 ? std::optional(i * i) : std::nullopt;
    };
  });
  CHECK(all(squares) == std::vector<int>{1, 4, 9, 16});
  CHECK(all(squares.repeat(2)).size() == 8);
  CHECK(all(squares.skip(3)) == std::vector<int>{16});
}

TEST_CASE("tensors of different numbers of rows and scalars make no rows") {
  const df::Tensor<float> x({3, 2}), scalar(1.0f);
  const df::Tensor<std::int32_t> y(df::Shape{4});
  CHECK(contains(error_of([&] { return df::data::from_tensors(x, y); }), "3 and 4 rows"));
  CHECK(code_of([&] { return df::data::from_tensors(scalar); }) == df::Code::invalid_argument);
  CHECK(code_of([&] { return df::data::from_tensors(df::Tensor<float>()); }) == df::Code::invalid_argument);
  CHECK(all(df::data::from_tensors(df::Tensor<float>({0, 2}))).empty());
}
