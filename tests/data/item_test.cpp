#include <dflow/data/item.hpp>

#include "catch.hpp"
#include "data/elements.hpp"
#include "support/errors.hpp"

#include <dflow/data/data.hpp>

#include <cstdint>
#include <exception>
#include <functional>
#include <new>
#include <optional>
#include <ranges>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

namespace df = dflow;

namespace {

/// A user's own exceptions.
struct OwnError : std::runtime_error {
  explicit OwnError(int row_given) : std::runtime_error("own"), row(row_given) {}
  int row;
};
struct OwnDflowError : df::Error {
  OwnDflowError() : df::Error(df::Status::aborted("own")) {}
  int detail = 7;
};

int bad_at_3(int i) { return i == 3 ? throw std::domain_error("three") : i; }
df::Tensor<int> longer_from_3(int i) { return df::Tensor<int>::full({i < 3 ? 1 : i}, i); }

struct FailingPipeline {
  std::string place;
  df::data::Dataset<int> data;
  std::uint64_t good;  ///< elements before the error
};

/// Each step that calls a function, or makes an element that it may not be able to make.
std::vector<FailingPipeline> pipelines_with_places() {
  const auto size = [](const df::Tensor<int>& batch) { return static_cast<int>(batch.num_elements()); };
  const auto length = [](int i) { return static_cast<std::int64_t>(bad_at_3(i)); };
  const auto one_row = [](const df::Tensor<int>& x) { return x.dim(0) > 100 ? 1 : 0; };
  const auto inner = [](int i) { return range(bad_at_3(i), i + 1); };
  const auto begin = [] { return [i = 0]() mutable -> std::optional<int> { return bad_at_3(i++); }; };
  const auto no_generator = []() -> std::function<std::optional<int>()> { throw std::domain_error("none"); };
  return {
      {"map, element 3", range(9).map(bad_at_3), 3},
      {"map, element 3", range(9).map(bad_at_3, {.threads = 2}), 3},
      {"map, element 2", range(9).skip(1).map(bad_at_3).prefetch(4), 2},
      {"map, element 3", range(9).map(bad_at_3).map([](int i) { return i; }, {.threads = 2}), 3},
      {"map, element 1", range(9).filter([](int i) { return i % 3 == 0; }).map(bad_at_3), 1},
      {"filter, element 3", range(9).filter([](int i) { return bad_at_3(i) == 1; }), 1},
      {"flat_map, element 3", range(9).flat_map(inner), 3},
      {"interleave, element 3", range(9).interleave(inner, {.cycle = 2}), 3},
      {"bucket_by_length, element 3", range(9).bucket_by_length(length, {.boundaries = {}, .sizes = {2}}).map(size), 1},
      {"bucket_by_length, element 2",
       range(9)
           .map(longer_from_3)
           .bucket_by_length(one_row, {.boundaries = {}, .sizes = {2}, .padding = 0.5})
           .map(size),
       1},
      {"batch, element 2", range(9).map(longer_from_3).batch(2).map(size), 1},
      {"padded_batch, element 2", range(9).map(longer_from_3).padded_batch(2, {.padding = 0.5}).map(size), 1},
      {"generator, element 3", df::data::from_generator(begin), 3},
      {"generator, element 0", df::data::from_generator(no_generator), 0},
      {"range, element 3", df::data::from_range(std::views::iota(0, 9) | std::views::transform(bad_at_3)), 3},
  };
}

template <class E>
df::data::Dataset<int> throwing(E error) {
  return range(3).map([error](int i) { return i == 1 ? throw error : i; });
}

}  // namespace

TEST_CASE("an error of a step's function names the step and the element, also after restoring") {
  for (const auto& [place, data, good] : pipelines_with_places()) {
    INFO(data.recipe()->describe());
    const std::string expected = "in step " + place + ": ";
    auto at = data.iterate();
    auto restored = data.iterate();
    for (std::uint64_t i = 0; i < good; ++i) at.next();
    restored.restore(at.state());
    for (auto* iterator : {&at, &restored}) {
      std::string error;
      try {
        iterator->next();
      } catch (const std::exception& thrown) {
        error = thrown.what();
      }
      CHECK(contains(error, expected));
      CHECK(error.find("in step") == error.rfind("in step"));
    }
    // What is told of errors that are ignored names the same place.
    std::vector<std::string> told;
    const auto log = [&told](const df::Status& error, std::uint64_t) { told.emplace_back(error.message()); };
    auto ignoring = data.ignore_errors({.on_error = log}).iterate();
    while (told.empty() && ignoring.next()) {
    }
    REQUIRE_FALSE(told.empty());
    CHECK(told[0].starts_with(expected));
    CHECK(told[0].rfind("in step") == 0);
  }
}

TEST_CASE("a step that passes over elements counts them") {
  const auto bad_at_8 = [](int i) { return i == 8 ? throw std::domain_error("eight") : i; };
  CHECK_THROWS_WITH(all(range(9).map(bad_at_8).skip(5)), "in step map, element 8: eight");
  CHECK_THROWS_WITH(all(range(9).map(bad_at_8, {.threads = 2}).skip(5)), "in step map, element 8: eight");
  const auto ragged = range(9).map([](int i) { return df::Tensor<int>::full({i < 7 ? 1 : i}, i); });
  CHECK(contains(error_of([&] { return all(ragged.batch(2).skip(2)); }), "in step batch, element 6: "));
  // Each epoch of a step counts anew.
  auto at = range(9).map(bad_at_8).iterate();
  for (int i = 0; i < 5; ++i) at.next();
  at.next_epoch();
  for (int i = 0; i < 8; ++i) at.next();
  CHECK_THROWS_WITH(at.next(), "in step map, element 8: eight");
}

TEST_CASE("an error of the library keeps its code and its context") {
  const df::Status status = df::Status::not_found("no file").with_node("Print", "hello");
  try {
    all(throwing(df::Error(status)));
    FAIL("nothing was thrown");
  } catch (const df::Error& error) {
    CHECK(error.code() == df::Code::not_found);
    CHECK(error.status().message() == "in step map, element 1: no file");
    CHECK(error.status().node() == "hello");
  }
}

TEST_CASE("an exception has the type that it was thrown with") {
  CHECK_THROWS_AS(all(throwing(std::out_of_range("far"))), std::out_of_range);
  CHECK_THROWS_WITH(all(throwing(std::out_of_range("far"))), "in step map, element 1: far");
  CHECK_THROWS_WITH(all(throwing(std::runtime_error("run"))), "in step map, element 1: run");
  CHECK_THROWS_AS(all(throwing(std::bad_alloc())), std::bad_alloc);
  CHECK_THROWS_AS(all(throwing(std::system_error(std::make_error_code(std::errc::io_error)))), std::system_error);
  CHECK_THROWS_AS(all(throwing(5)), int);
  try {
    all(throwing(OwnError(12)));
    FAIL("nothing was thrown");
  } catch (const OwnError& error) {
    CHECK(error.row == 12);
  }
  try {
    all(throwing(OwnDflowError()));
    FAIL("nothing was thrown");
  } catch (const OwnDflowError& error) {
    CHECK(error.detail == 7);
  }
  // The status of such an error has the place all the same.
  const auto strict = throwing(OwnError(12)).ignore_errors({.limit = 0});
  CHECK(contains(error_of([&] { return all(strict); }, df::Code::internal), "in step map, element 1: own"));
}
