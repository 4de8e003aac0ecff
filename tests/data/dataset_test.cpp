#include <dflow/data/dataset.hpp>

#include "catch.hpp"
#include "data/elements.hpp"
#include "support/errors.hpp"

#include <dflow/data/from.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <numeric>
#include <ranges>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace df = dflow;
using df::data::Dataset;

namespace {

using Ints = std::vector<int>;

}  // namespace

TEST_CASE("a dataset is gone through by a range-based for, any number of times") {
  const df::Tensor<float> x({3, 2}, {1, 2, 3, 4, 5, 6});
  const df::Tensor<std::int32_t> y(df::Shape{3}, {7, 8, 9});
  const auto data = df::data::from_tensors(x, y);
  CHECK(data.size() == 3);
  for (int round = 0; round < 2; ++round) {
    int i = 0;
    for (auto& [row, label] : data) {
      CHECK(row.shape() == df::Shape{2});
      CHECK(row(1) == 2.0f * static_cast<float>(i) + 2.0f);
      CHECK(label.scalar() == 7 + i++);
    }
    CHECK(i == 3);
  }
}

TEST_CASE("map, filter, take, skip, concatenate and enumerate do to elements what they say") {
  const auto odd = [](int i) { return i % 2 == 1; };
  const auto square = [](int i) { return i * i; };
  CHECK(all(range(6).map(square)) == Ints{0, 1, 4, 9, 16, 25});
  CHECK(all(range(6).filter(odd)) == Ints{1, 3, 5});
  CHECK(all(range(6).take(2)) == Ints{0, 1});
  CHECK(all(range(6).take(0)).empty());
  CHECK(all(range(6).take(9)) == Ints{0, 1, 2, 3, 4, 5});
  CHECK(all(range(6).skip(4)) == Ints{4, 5});
  CHECK(all(range(6).skip(9)).empty());
  CHECK(all(range(2).concatenate(range(3))) == Ints{0, 1, 0, 1, 2});
  CHECK(all(range(6).filter(odd).enumerate()) == std::vector<std::pair<std::int64_t, int>>{{0, 1}, {1, 3}, {2, 5}});
}

TEST_CASE("functions are called with the members of a tuple, or with the tuple") {
  const auto pairs = df::data::zip(range(3), range(9).skip(5));
  CHECK(all(pairs) == std::vector<std::tuple<int, int>>{{0, 5}, {1, 6}, {2, 7}});
  CHECK(all(pairs.map([](int a, int b) { return a * b; })) == Ints{0, 6, 14});
  CHECK(all(pairs.map([](const std::tuple<int, int>& both) { return std::get<1>(both); })) == Ints{5, 6, 7});
  CHECK(all(pairs.filter([](int a, int) { return a != 1; })).size() == 2);
  CHECK(all(range(2).enumerate().map([](std::int64_t i, int e) { return static_cast<int>(i) + e; })) == Ints{0, 2});
}

TEST_CASE("elements may be of any type that moves") {
  const auto data = range(3).map([](int i) { return std::make_unique<int>(i); });
  int sum = 0;
  for (auto& pointer : data.shuffle(2).prefetch(2)) sum += *pointer;
  CHECK(sum == 3);
}

TEST_CASE("repeat goes through the epochs, and ends where one is empty") {
  CHECK(all(range(2).repeat(3)) == Ints{0, 1, 0, 1, 0, 1});
  CHECK(all(range(2).repeat(0)).empty());
  CHECK(all(range(2).repeat().take(5)) == Ints{0, 1, 0, 1, 0});
  CHECK(all(range(0).repeat()).empty());
  CHECK(all(range(3).filter([](int) { return false; }).repeat()).empty());
  CHECK(all(range(3).repeat().skip(4).take(3)) == Ints{1, 2, 0});
  CHECK(all(range(2).repeat(2).repeat(2)).size() == 8);
}

TEST_CASE("endless repeats in endless repeats have an order of their own in each epoch") {
  const auto data = range(8).shuffle(8, {.seed = 1}).repeat().take(8).repeat().take(16);
  std::set<Ints> orders;
  for (const std::uint64_t epoch : {0u, 1u, 2u}) {
    auto at = data.iterate(epoch);
    for (int round = 0; round < 2; ++round) {
      Ints order;
      for (int i = 0; i < 8; ++i) order.push_back(at.next().value());
      orders.insert(order);
    }
  }
  CHECK(orders.size() == 6);
}

TEST_CASE("the number of elements is known where no function decides it") {
  const auto any = [](int) { return true; };
  CHECK(range(7).map([](int i) { return i; }).shuffle(3).prefetch(1).size() == 7);
  CHECK(range(7).batch(3).size() == 3);
  CHECK(range(7).batch(3, {.drop_remainder = true}).size() == 2);
  CHECK(range(7).take(3).repeat(2).size() == 6);
  CHECK(range(7).skip(3).concatenate(range(1)).size() == 5);
  CHECK(df::data::zip(range(7), range(4)).size() == 4);
  CHECK(range(7).enumerate().cache().size() == 7);
  CHECK(range(7).window(3, {.shift = 1, .drop_remainder = true}).size() == 5);
  CHECK(range(7).window(3, {.shift = 2}).size() == 4);
  CHECK(range(7).repeat().take(9).size() == 9);
  CHECK(range(7).repeat().size() == std::nullopt);
  CHECK(range(7).filter(any).size() == std::nullopt);
  CHECK(range(0).repeat().size() == 0);
}

TEST_CASE("shuffle gives each element once, none from further ahead than its buffer, in an order of seed and epoch") {
  const auto data = range(100).shuffle(10, {.seed = 3});
  const Ints first = all(data);
  CHECK(first == all(data));
  CHECK(first != all(range(100).shuffle(10, {.seed = 4})));
  CHECK(first != all(data.iterate(1)));
  CHECK(std::set<int>(first.begin(), first.end()).size() == 100);
  for (int i = 0; i < 100; ++i) CHECK(first[static_cast<std::size_t>(i)] < i + 10);
  // A saved iterator goes on with this order in a later version.
  CHECK(all(range(8).shuffle(8, {.seed = 1}).iterate(2)) == Ints{4, 5, 2, 1, 0, 6, 7, 3});
  // Epochs of `repeat` are the epochs of an iterator that goes on.
  Ints both = first;
  const Ints second = all(data.iterate(1));
  both.insert(both.end(), second.begin(), second.end());
  CHECK(all(data.repeat(2)) == both);
  df::data::Iterator<int> at = data.iterate();
  CHECK(at.next() == first[0]);
  at.next_epoch();
  CHECK(at.next() == second[0]);
  CHECK(at.epoch() == 1);
  CHECK(at.position() == 1);
  const auto once = range(100).shuffle(10, {.seed = 3, .reshuffle = false});
  CHECK(all(once) == first);
  CHECK(all(once.iterate(1)) == first);
  CHECK(all(range(5).shuffle(1)) == Ints{0, 1, 2, 3, 4});
  CHECK(code_of([] { return range(5).shuffle(0); }) == df::Code::invalid_argument);
}

TEST_CASE("a buffer as large as the data gives all orders equally often") {
  // 6 orders of 3 elements, 6000 epochs: each about 1000 times, with a standard deviation of 29.
  std::vector<int> counts(27);
  auto at = range(3).shuffle(3, {.seed = 1}).iterate();
  for (int epoch = 0; epoch < 6000; ++epoch, at.next_epoch()) {
    int order = 0;
    while (const auto i = at.next()) order = order * 3 + *i;
    ++counts[static_cast<std::size_t>(order)];
  }
  for (const int count : counts) CHECK((count == 0 || std::abs(count - 1000) < 150));
  CHECK(std::count(counts.begin(), counts.end(), 0) == 21);
}

TEST_CASE("three iterators of one dataset are independent") {
  const auto data = range(50).shuffle(20, {.seed = 2}).map([](int i) { return i + 1; }, {.threads = 2}).prefetch(3);
  const Ints expected = all(data);
  std::vector<df::data::Iterator<int>> iterators;
  for (int i = 0; i < 3; ++i) iterators.push_back(data.iterate());
  std::vector<Ints> given(3);
  for (int step = 0; step < 150; ++step) {
    const auto which = static_cast<std::size_t>(step * 7 % 3);
    if (const auto element = iterators[which].next()) given[which].push_back(*element);
  }
  for (const Ints& each : given) CHECK(each == expected);
}

TEST_CASE("a cache reads what stands before it once, for all iterators, and after an error again") {
  const auto calls = std::make_shared<int>(0);
  const auto data = range(4).map([calls](int i) { return ++*calls, i; }).cache();
  auto first = data.iterate(), second = data.iterate();
  CHECK(first.next() == 0);
  CHECK(all(std::move(second)) == Ints{0, 1, 2, 3});
  CHECK(all(std::move(first)) == Ints{1, 2, 3});
  CHECK(all(data.iterate(5)) == Ints{0, 1, 2, 3});
  CHECK(*calls == 4);

  const auto fails = std::make_shared<bool>(true);
  const auto failing = range(4)
                           .map([fails](int i) {
                             if (i == 2 && *fails) throw std::runtime_error("two");
                             return i;
                           })
                           .cache();
  auto at = failing.iterate();
  CHECK(at.next() == 0);
  CHECK(at.next() == 1);
  CHECK_THROWS_WITH(at.next(), "in step map, element 2: two");
  *fails = false;
  CHECK(all(failing) == Ints{0, 1, 2, 3});
}

TEST_CASE("a cache gives what it has while another pass waits for its next element") {
  const auto goes_on = std::make_shared<std::promise<void>>();
  const auto waits = std::make_shared<std::promise<void>>();
  const auto data = range(3)
                        .map([goes_on, waits](int i) {
                          if (i == 2) {
                            waits->set_value();
                            goes_on->get_future().wait();
                          }
                          return i;
                        })
                        .cache();
  Ints of_slow, of_third;
  std::thread slow([&] { of_slow = all(data); });
  waits->get_future().wait();
  auto fast = data.iterate();
  CHECK(fast.next() == 0);
  CHECK(fast.next() == 1);
  std::thread third([&] { of_third = all(data); });
  goes_on->set_value();
  CHECK(fast.next() == 2);
  CHECK_FALSE(fast.next().has_value());
  slow.join();
  third.join();
  CHECK(of_slow == Ints{0, 1, 2});
  CHECK(of_third == Ints{0, 1, 2});
}

TEST_CASE("a pass over a cache, in a thread that waits for the cache's next element, does not wait for itself") {
  // As a worker of a pool does that runs another task while it waits for an element.
  const auto meanwhile = std::make_shared<std::function<void()>>();
  const auto data = range(4)
                        .map([meanwhile](int i) {
                          if (i == 2 && *meanwhile) std::exchange(*meanwhile, nullptr)();
                          return 10 * i;
                        })
                        .cache();
  Ints from_begin, from_middle, passed_over;
  auto middle = data.iterate(), skipped = data.skip(3).iterate();
  CHECK(middle.next() == 0);
  *meanwhile = [&] {
    from_begin = all(data);
    CHECK(middle.next() == 10);
    auto restored = data.iterate();
    restored.restore(middle.state());
    CHECK(restored.next() == 20);
    from_middle = all(std::move(middle));
    passed_over = all(std::move(skipped));
  };
  CHECK(all(data) == Ints{0, 10, 20, 30});
  CHECK(from_begin == Ints{0, 10, 20, 30});
  CHECK(from_middle == Ints{20, 30});
  CHECK(passed_over == Ints{30});
  CHECK(all(data) == Ints{0, 10, 20, 30});
}

TEST_CASE("tasks of a pool read a cache whose elements tasks of the same pool make") {
  const auto pool = std::make_shared<df::WorkStealingPool>(2);
  for (int round = 0; round < 30; ++round) {
    const auto inner = range(20)
                           .map(
                               [](int i) {
                                 std::this_thread::sleep_for(std::chrono::microseconds(300));
                                 return i;
                               },
                               {.pool = pool, .ahead = 2})
                           .cache();
    const auto sums = range(16).map(
        [inner](int i) {
          for (const int element : inner) i += element;
          return i;
        },
        {.pool = pool, .ahead = 16});
    Ints expected(16);
    std::iota(expected.begin(), expected.end(), 190);
    CHECK(all(sums) == expected);
  }
}

TEST_CASE("a cache whose input fails again while it is read again has no element twice") {
  const auto failures = std::make_shared<std::vector<int>>(Ints{1, 3});  // the last one comes first
  const auto data = range(5)
                        .filter([failures](int i) {
                          if (failures->empty() || failures->back() != i) return true;
                          failures->pop_back();
                          throw std::runtime_error("not now");
                        })
                        .cache();
  CHECK_THROWS_WITH(all(data), "in step filter, element 3: not now");
  CHECK_THROWS_WITH(all(data), "in step filter, element 1: not now");  // on the way to 3
  CHECK(all(data) == Ints{0, 1, 2, 3, 4});
}

TEST_CASE("windows share elements, and say what becomes of the last ones") {
  using Windows = std::vector<Ints>;
  CHECK(all(range(5).window(3, {.shift = 1, .drop_remainder = true})) == Windows{{0, 1, 2}, {1, 2, 3}, {2, 3, 4}});
  CHECK(all(range(5).window(2, {.drop_remainder = true})) == Windows{{0, 1}, {2, 3}});
  CHECK(all(range(5).window(2)) == Windows{{0, 1}, {2, 3}, {4}});  // as tf.data.Dataset.window
  CHECK(all(range(7).window(2, {.shift = 3})) == Windows{{0, 1}, {3, 4}, {6}});
  CHECK(all(range(3).window(2, {.shift = 1})) == Windows{{0, 1}, {1, 2}, {2}});
  CHECK(code_of([] { return range(5).window(0); }) == df::Code::invalid_argument);
  CHECK(code_of([] { return range(5).window(1, {.shift = 0}); }) == df::Code::invalid_argument);
}

TEST_CASE("a number of elements below 1 is refused, with the number that the caller wrote") {
  const std::string ends = " must be at least 1, not -1";
  const auto refused = [&](auto make) {
    try {
      make();
    } catch (const df::Error& error) {
      CHECK(error.code() == df::Code::invalid_argument);
      return std::string(error.status().message()).ends_with(ends);
    }
    return false;
  };
  const auto none = static_cast<std::uint64_t>(-1);
  const auto length = [](int) { return 1; };
  CHECK(refused([&] { range(5).batch(none); }));
  CHECK(refused([&] { range(5).padded_batch(none); }));
  CHECK(refused([&] { range(5).bucket_by_length(length, {.boundaries = {3}, .sizes = {2, none}}); }));
  CHECK(refused([&] { range(5).window(none); }));
  CHECK(refused([&] { range(5).window(2, {.shift = none}); }));
  CHECK(refused([&] { range(5).shuffle(none); }));
  CHECK(refused([&] { range(5).prefetch(none); }));
  CHECK(refused([&] { range(5).interleave([](int) { return range(2); }, {.cycle = none}); }));
  CHECK(refused([&] { range(5).interleave([](int) { return range(2); }, {.block = none}); }));
  CHECK(code_of([] { return range(5).shuffle(0); }) == df::Code::invalid_argument);
}

TEST_CASE("what a function throws comes at its element, and again until another epoch begins") {
  const auto data = range(5).map([](int i) { return i == 2 ? throw std::domain_error("no two") : i; });
  auto at = data.iterate();
  CHECK(at.next() == 0);
  CHECK(at.next() == 1);
  CHECK_THROWS_AS(at.next(), std::domain_error);
  CHECK_THROWS_AS(at.next(), std::domain_error);
  CHECK(code_of([&] { return at.state(); }) == df::Code::failed_precondition);
  at.next_epoch();
  CHECK(at.next() == 0);
  // Elements that are passed over are not made.
  CHECK(all(data.skip(3)) == Ints{3, 4});
}
