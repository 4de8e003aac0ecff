#include <dflow/data/iterator.hpp>

#include "catch.hpp"
#include "data/elements.hpp"
#include "support/errors.hpp"

#include <dflow/data/from.hpp>

#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <ranges>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace df = dflow;
using df::data::Dataset;

namespace {

/// Any dataset as one of texts, so that all of them can be treated alike; elements that are batches by value.
template <class E>
Dataset<std::string> texts(const Dataset<E>& data) {
  return data.map([](const E& element) {
    if constexpr (std::is_base_of_v<df::AnyTensor, E>) {
      return element.to_string();
    } else if constexpr (std::is_same_v<E, int>) {
      return std::to_string(element);
    } else if constexpr (std::is_same_v<E, std::vector<int>>) {
      std::string text;
      for (const int i : element) text += std::to_string(i) + " ";
      return text;
    } else {
      return std::to_string(std::get<0>(element)) + ":" + std::to_string(std::get<1>(element));
    }
  });
}

struct Named {
  std::string name;
  Dataset<std::string> data;
};

/// Each step alone, and steps that hold elements back behind and before each other.
std::vector<Named> pipelines() {
  const auto twice = [](int i) { return 2 * i; };
  const auto odd = [](int i) { return i % 2 == 1; };
  const auto inner = [](int i) { return range(i % 5).shuffle(3, {.seed = 9}); };
  const auto row = [](int i) { return df::Tensor<int>::full({i % 7}, i); };
  const auto length = [](const df::Tensor<int>& x) { return x.dim(0); };
  const auto generated = df::data::from_generator(
      [] { return [i = 0]() mutable -> std::optional<int> { return i < 40 ? std::optional(i++) : std::nullopt; }; });
  const auto no_third = [](int i) { return i % 3 == 2 ? throw std::domain_error("third") : i; };
  const df::data::BucketOptions buckets{.boundaries = {2, 4}, .sizes = {3, 4, 5}};
  return {
      {"range", texts(range(20))},
      {"list", texts(df::data::from_range(std::list<int>{1, 2, 3, 4}))},
      {"generator", texts(generated)},
      {"map", texts(range(20).map(twice))},
      {"parallel map", texts(range(200).map(twice, {.threads = 2, .ahead = 7}))},
      {"filter", texts(range(20).filter(odd))},
      {"take", texts(range(20).take(7))},
      {"skip", texts(range(20).skip(7))},
      {"repeat", texts(range(5).repeat(3))},
      {"shuffled repeat", texts(range(7).shuffle(4, {.seed = 3}).repeat(3))},
      {"nested repeat", texts(range(4).shuffle(3).repeat(2).shuffle(5).repeat(2))},
      {"zip", texts(df::data::zip(range(20).shuffle(5), range(9).repeat(2)))},
      {"enumerate", texts(range(20).shuffle(5).enumerate())},
      {"concatenate", texts(range(5).shuffle(2).concatenate(range(6).shuffle(3)))},
      {"shuffle", texts(range(300).shuffle(10, {.seed = 1}))},
      {"full shuffle", texts(range(50).shuffle(50, {.seed = 1}))},
      {"shuffle of a generator", texts(generated.shuffle(6, {.seed = 4}))},
      {"batch", texts(range(23).batch(4))},
      {"padded", texts(range(23).map(row).padded_batch(4))},
      {"buckets", texts(range(60).map(row).bucket_by_length(length, buckets))},
      {"window", texts(range(12).window(3, {.shift = 2, .drop_remainder = false}))},
      {"wide window", texts(range(200).window(2, {.shift = 5}))},
      {"prefetch", texts(range(100).prefetch(5))},
      {"cache", texts(range(20).shuffle(4).cache())},
      {"flat_map", texts(range(20).flat_map(inner))},
      {"errors", texts(range(40).map(no_third).shuffle(5).ignore_errors())},
      {"errors ahead", texts(range(200).map(no_third, {.threads = 2, .ahead = 7}).prefetch(3).ignore_errors())},
      {"interleave", texts(range(20).shuffle(4).interleave(inner, {.cycle = 3, .block = 2}))},
      {"all", texts(generated.repeat(2)
                        .map(twice, {.threads = 2})
                        .shuffle(11, {.seed = 2})
                        .filter([](int i) { return i % 3 != 0; })
                        .prefetch(3)
                        .interleave(inner, {.cycle = 4})
                        .shuffle(5, {.seed = 7})
                        .batch(3)
                        .prefetch(2))},
  };
}

std::vector<std::string> rest(df::data::Iterator<std::string>& at) {
  std::vector<std::string> elements;
  while (auto element = at.next()) elements.push_back(*std::move(element));
  return elements;
}

std::vector<std::string> from(const std::vector<std::string>& all, std::size_t begin) {
  return {all.begin() + static_cast<std::ptrdiff_t>(begin), all.end()};
}

}  // namespace

TEST_CASE("an iterator that is restored goes on as the one that was saved, wherever that stood") {
  for (const auto& [name, data] : pipelines()) {
    INFO(name);
    for (const std::uint64_t epoch : {0u, 1u}) {
      auto whole = data.iterate(epoch);
      const std::vector<std::string> all = rest(whole);
      REQUIRE(all.size() >= 4);
      auto at = data.iterate(epoch);
      for (std::size_t given = 0; given <= all.size(); ++given) {
        INFO("after " << given);
        const std::string state = at.state();
        auto restored = data.iterate();
        restored.restore(state);
        CHECK(restored.epoch() == epoch);
        CHECK(restored.position() == given);
        // A restored iterator can be saved again, also before it has given anything.
        auto again = data.iterate(7);
        again.restore(restored.state());
        REQUIRE(rest(restored) == from(all, given));
        REQUIRE(rest(again) == from(all, given));
        at.next();
      }
      const std::string end = at.state();
      at.next_epoch();
      auto restored = data.iterate();
      restored.restore(end);
      restored.next_epoch();
      REQUIRE(rest(restored) == rest(at));
    }
  }
}

TEST_CASE("an iterator that is restored twice on its way does not differ from one that never was") {
  for (const auto& [name, data] : pipelines()) {
    INFO(name);
    auto whole = data.iterate();
    const std::vector<std::string> all = rest(whole);
    std::vector<std::string> given;
    auto at = data.iterate();
    while (auto element = at.next()) {
      given.push_back(*std::move(element));
      if (given.size() % 3 == 0) at.restore(std::string(at.state()));
    }
    CHECK(given == all);
  }
}

TEST_CASE("numbers of threads and of elements ahead may be others where a state is restored") {
  const auto made = [](int threads, std::uint64_t ahead) {
    const auto data = range(100).map([](int i) { return 3 * i; }, {.threads = threads}).shuffle(9).prefetch(ahead);
    return data;
  };
  auto at = made(1, 1).iterate();
  for (int i = 0; i < 40; ++i) at.next();
  auto other = made(3, 50).iterate();
  other.restore(at.state());
  for (int i = 40; i <= 100; ++i) CHECK(other.next() == at.next());
}

TEST_CASE("a state that is cut short or damaged is DataLoss, and the iterator stays as it was") {
  for (const auto& [name, data] : pipelines()) {
    INFO(name);
    auto at = data.iterate();
    for (int i = 0; i < 3; ++i) at.next();
    const std::string state = at.state();
    auto other = data.iterate();
    const auto first = data.iterate().next();
    for (std::size_t size = 0; size < state.size(); ++size) {
      REQUIRE(code_of([&] { return other.restore(state.substr(0, size)), 0; }) == df::Code::data_loss);
    }
    for (std::size_t bit = 0; bit < state.size() * 8; bit += 3) {
      std::string flipped = state;
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
      REQUIRE(code_of([&] { return other.restore(flipped), 0; }) == df::Code::data_loss);
    }
    CHECK(code_of([&] { return other.restore(state + "x"), 0; }) == df::Code::data_loss);
    CHECK(other.next() == first);
  }
}

TEST_CASE("a state is of one dataset") {
  auto at = range(10).shuffle(3, {.seed = 1}).iterate();
  auto other = range(10).shuffle(3, {.seed = 2}).iterate();
  const std::string error = error_of([&] { return other.restore(at.state()), 0; });
  CHECK(contains(error, "'range(10) | shuffle(3, seed 1)', not of 'range(10) | shuffle(3, seed 2)'"));
  // The same steps, but fewer elements than there were.
  auto shorter = df::data::from_range(std::list<int>{1, 2}).iterate();
  auto longer = df::data::from_range(std::list<int>{1, 2, 3, 4}).iterate();
  for (int i = 0; i < 3; ++i) longer.next();
  CHECK(code_of([&] { return shorter.restore(longer.state()), 0; }) == df::Code::data_loss);
}

namespace {

/// Says when it goes.
struct Leaving {
  Leaving(std::shared_ptr<std::vector<std::string>> log, std::string name)
      : left(std::move(log)), called(std::move(name)) {}
  Leaving(const Leaving&) = delete;
  Leaving& operator=(const Leaving&) = delete;
  ~Leaving() { left->push_back(called); }

  std::shared_ptr<std::vector<std::string>> left;
  std::string called;
};

}  // namespace

TEST_CASE("an iterator that takes another's place first ends its pass, and then lets go of its dataset") {
  const auto left = std::make_shared<std::vector<std::string>>();
  const auto iterate = [&](const std::string& name) {
    const auto held = std::make_shared<Leaving>(left, "dataset " + name);
    return df::data::from_generator([left, name] {
             return [in_pass = std::make_shared<Leaving>(left, "pass " + name), i = 0]() mutable {
               return std::optional(i++);
             };
           })
        .map([held](int i) { return i; })
        .iterate();
  };
  auto at = iterate("a");
  CHECK(at.next() == 0);
  left->clear();
  at = iterate("b");
  CHECK(*left == std::vector<std::string>{"pass a", "dataset a"});
  CHECK(at.next() == 0);
}

TEST_CASE("an iterator that was moved from says so, whatever it is asked for") {
  auto from = range(3).shuffle(2).iterate();
  const std::string state = from.state();
  auto at = std::move(from);
  CHECK(code_of([&] { return from.next(); }) == df::Code::failed_precondition);
  CHECK(code_of([&] { return from.next_epoch(), 0; }) == df::Code::failed_precondition);
  CHECK(code_of([&] { return from.size(); }) == df::Code::failed_precondition);
  CHECK(code_of([&] { return from.state(); }) == df::Code::failed_precondition);
  CHECK(code_of([&] { return from.restore(state), 0; }) == df::Code::failed_precondition);
  from = range(2).iterate();
  CHECK(all(std::move(from)) == std::vector<int>{0, 1});
  CHECK(all(std::move(at)).size() == 3);
}
