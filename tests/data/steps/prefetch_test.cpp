#include <dflow/data/steps/prefetch.hpp>

#include "catch.hpp"
#include "data/elements.hpp"
#include "support/errors.hpp"

#include <dflow/data/from.hpp>

#include <atomic>
#include <future>
#include <memory>
#include <ranges>
#include <stdexcept>
#include <thread>
#include <vector>

namespace df = dflow;

TEST_CASE("a prefetch reads ahead in another thread, so far and no further") {
  const auto read = std::make_shared<std::atomic<int>>(0);
  const auto reader = std::make_shared<std::atomic<std::size_t>>(0);
  const auto fourth = std::make_shared<std::promise<void>>();
  const auto data = range(100)
                        .map([=](int i) {
                          reader->store(std::hash<std::thread::id>()(std::this_thread::get_id()));
                          if (read->fetch_add(1) == 3) fourth->set_value();
                          return i;
                        })
                        .prefetch(3);
  auto at = data.iterate();
  CHECK(read->load() == 0);  // nothing before the first element is asked for
  CHECK(at.next() == 0);
  fourth->get_future().wait();  // one was given, three are ahead
  CHECK(read->load() == 4);
  CHECK(reader->load() != std::hash<std::thread::id>()(std::this_thread::get_id()));
  for (int i = 1; i < 100; ++i) CHECK(at.next() == i);
  CHECK(at.next() == std::nullopt);
  CHECK(at.next() == std::nullopt);
}

TEST_CASE("what the input throws comes where its element would have come") {
  auto at = range(9).map([](int i) { return i == 3 ? throw std::domain_error("three") : i; }).prefetch(8).iterate();
  for (int i = 0; i < 3; ++i) CHECK(at.next() == i);
  CHECK_THROWS_WITH(at.next(), "in step map, element 3: three");
  CHECK_THROWS_WITH(at.next(), "in step map, element 3: three");
}

TEST_CASE("an iterator that goes while its thread runs, waits or has ended leaves nothing behind") {
  const auto data = range(30).shuffle(7).map([](int i) { return std::vector<int>(100, i); }).prefetch(2);
  for (int round = 0; round < 100; ++round) {
    auto at = data.iterate();
    for (int i = 0; i < round % 33; ++i) at.next();
  }
  for (auto& element : data) {
    if (element.front() == 5) break;
  }
}

TEST_CASE("prefetches stand one behind the other, and inside of what is interleaved") {
  const auto data =
      range(6).prefetch(2).interleave([](int i) { return range(i).prefetch(2); }, {.cycle = 3}).prefetch(4);
  int count = 0;
  for ([[maybe_unused]] const int element :
       data.batch(2).prefetch(1).map([](const df::Tensor<int>& x) { return static_cast<int>(x.dim(0)); })) {
    count += element;
  }
  CHECK(count == 15);
}

TEST_CASE("a prefetch of nothing, or of too much, is an error") {
  CHECK(code_of([] { return range(1).prefetch(0); }) == df::Code::invalid_argument);
  CHECK(code_of([] { return range(1).prefetch(std::uint64_t{1} << 40); }) == df::Code::invalid_argument);
}
