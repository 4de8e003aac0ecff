#include <dflow/data/replay_limit.hpp>

#include "catch.hpp"
#include "data/elements.hpp"
#include "support/errors.hpp"

#include <dflow/base/files/byte_writer.hpp>
#include <dflow/base/files/crc32c.hpp>
#include <dflow/data/from.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <ranges>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace df = dflow;

namespace {

constexpr std::uint64_t far_away = std::uint64_t{1} << 60;
constexpr std::uint64_t limit_of_tests = 20'000;

/// 0, 1, 2 and so on. The dataset does not know how many there are.
df::data::Dataset<int> endless_generator() {
  return df::data::from_generator([] { return [i = 0]() mutable { return std::optional(i++); }; });
}
df::data::Dataset<int> endless_range() { return df::data::from_range(std::views::iota(0)); }

/// A state with a right checksum and any content.
template <class E, class Write>
std::string sealed(const df::data::Dataset<E>& of, Write write) {
  std::string state = "dflow iterator 2\n";
  df::ByteWriter out(state);
  out.string(of.recipe()->describe());
  out.varint(0);  // epoch
  out.varint(3);  // position
  write(out);
  out.u32(df::mask_crc32c(df::crc32c(state)));
  return state;
}

template <class E, class Write>
df::Status restoring(const df::data::Dataset<E>& data, Write write) {
  auto at = data.iterate();
  at.limit_restoring(limit_of_tests);
  const df::Status status = status_of([&] { return at.restore(sealed(data, write)), 0; });
  CHECK(at.position() == 0);
  CHECK(at.next().has_value());  // it stays as it was
  return status;
}

}  // namespace

TEST_CASE("a limit counts what is read between its begin and its end") {
  df::data::ReplayLimit limit;
  limit.count(100);
  CHECK_FALSE(limit.is_on());
  limit.begin(3);
  limit.count(2);
  limit.count();
  CHECK(code_of([&] { return limit.count(), 0; }) == df::Code::invalid_argument);
  CHECK(code_of([&] { return limit.end(), 0; }) == df::Code::invalid_argument);
  limit.count();
  limit.begin(5);
  std::thread([&] { limit.count(5); }).join();
  limit.end();
}

TEST_CASE("a limit that is passed in a thread that nobody asks is an error at its end") {
  df::data::ReplayLimit limit;
  limit.begin(1);
  std::thread([&] { CHECK(code_of([&] { return limit.count(2), 0; }) == df::Code::invalid_argument); }).join();
  CHECK(contains(error_of([&] { return limit.end(), 0; }), "more than 1 elements would have to be read again"));
}

TEST_CASE("a limit is lent to what several passes use, as long as one of them is restored") {
  df::data::ReplayLimit shared, one, other;
  one.begin(2);
  {
    const df::data::LentReplayLimit lent(shared, one);
    shared.count(2);
    CHECK_FALSE(lent.is_exceeded());
    CHECK(code_of([&] { return shared.count(), 0; }) == df::Code::invalid_argument);
    CHECK(lent.is_exceeded());
  }
  const df::data::LentReplayLimit lent(shared, other);
  shared.count(1000);
  CHECK_FALSE(lent.is_exceeded());
}

TEST_CASE("a state that sends an iterator far into endless data is an error, whatever step it is of") {
  const auto never = [](int i) { return i < 0; };
  const auto length = [](int i) { return i; };
  const auto endless_of = [](int i) { return df::data::from_vector(std::vector{i}).repeat(); };
  const auto buckets = df::data::BucketOptions{.boundaries = {3}, .sizes = {4, 4}};
  const auto position = [](df::ByteWriter& out) { out.varint(far_away); };
  const auto read_again = [](df::ByteWriter& out) {  // of an input that stands at its beginning
    out.varint(0);
    out.varint(far_away);
    out.varint(0);
  };
  const std::vector<df::Status> ends{
      restoring(endless_generator(), position),
      restoring(endless_generator().cache(), position),
      restoring(endless_range().cache(), position),
      restoring(endless_generator().prefetch(2).cache(), position),
      restoring(endless_range().bucket_by_length(length, buckets),
                [&](df::ByteWriter& out) {
                  out.boolean(false);
                  out.count(0);
                  out.count(0);
                  read_again(out);
                }),
      restoring(endless_range().prefetch(2).map(length, {.threads = 2}).bucket_by_length(length, buckets),
                [&](df::ByteWriter& out) {
                  out.boolean(false);
                  out.count(0);
                  out.count(0);
                  out.varint(0);
                  out.varint(far_away);
                  for (int i = 0; i < 4; ++i) out.varint(0);
                }),
      restoring(endless_range().interleave(endless_of), [&](df::ByteWriter& out) {
        out.boolean(false);
        for (int i = 0; i < 3; ++i) out.varint(0);
        read_again(out);
      })};
  for (const df::Status& status : ends) {
    CHECK(status.code() == df::Code::invalid_argument);
    CHECK(mentions(status, "more than 20000 elements would have to be read again; limit_restoring allows for more"));
  }
  // If a filter lets nothing more through, one element is enough to pass the limit.
  const auto filtered = endless_generator().filter([](int i) { return i < 3; }).cache();
  auto at = filtered.iterate();
  at.limit_restoring(limit_of_tests);
  CHECK(code_of([&] { return at.restore(sealed(filtered, [](auto& out) { out.varint(4); })), 0; }) ==
        df::Code::invalid_argument);
  const auto none = endless_range().filter(never).prefetch(2);
  auto ahead = none.iterate();
  ahead.limit_restoring(limit_of_tests);
  CHECK(code_of([&] {
          return ahead.restore(sealed(none,
                                      [](auto& out) {
                                        out.varint(1);
                                        out.varint(0);
                                        out.varint(0);
                                      })),
                 0;
        }) == df::Code::invalid_argument);
}

TEST_CASE("a position that is passed over by its number costs nothing, however far it is") {
  const df::data::Dataset<std::int64_t> counted(df::data::counting_source());
  auto at = counted.skip(1).prefetch(2).iterate();
  at.limit_restoring(2);
  at.restore(sealed(counted.skip(1).prefetch(2), [](df::ByteWriter& out) {
    out.varint(1 << 20);  // read ahead
    out.boolean(true);
    out.varint(far_away);
  }));
  CHECK(at.next() == static_cast<std::int64_t>(far_away + (1 << 20)));
}

TEST_CASE("a limit that is raised lets a state through that needs it") {
  auto at = endless_generator().iterate();
  for (int i = 0; i < 1000; ++i) at.next();
  const std::string state = at.state();
  auto other = endless_generator().iterate();
  other.limit_restoring(999);
  CHECK(code_of([&] { return other.restore(state), 0; }) == df::Code::invalid_argument);
  CHECK(other.next() == 0);
  other.limit_restoring(1000);
  other.restore(state);
  CHECK(other.next() == 1000);
  for (int i = 0; i < 2000; ++i) other.next();  // what is read later counts no more
  CHECK(code_of([&] { return other.restore(other.state()), 0; }) == df::Code::invalid_argument);  // it keeps its limit
}

TEST_CASE("a cache that one iterator could not read to where its state says serves others all the same") {
  for (const auto& data : {endless_generator().cache(), endless_generator().prefetch(8).cache()}) {
    auto at = data.iterate();
    at.limit_restoring(limit_of_tests);
    CHECK(code_of([&] { return at.restore(sealed(data, [](auto& out) { out.varint(far_away); })), 0; }) ==
          df::Code::invalid_argument);
    auto other = data.iterate();
    for (int i = 0; i < 1000; ++i) REQUIRE(other.next() == i);
  }
}

TEST_CASE("a thread that reads ahead past one iterator's limit leaves no error in the cache for others") {
  // The test does not know what the elements up to the state's place count for.
  for (std::uint64_t most = 1; most <= 200; ++most) {
    CAPTURE(most);
    const auto slowly = [](int i) {
      if (i == 1) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // for the thread
      return i;
    };
    const auto data = endless_generator().prefetch(8).map(slowly).cache();
    auto at = data.iterate();
    at.limit_restoring(most);
    const df::Code code = code_of([&] { return at.restore(sealed(data, [](auto& out) { out.varint(2); })), 0; });
    CHECK((code == df::Code::ok || code == df::Code::invalid_argument));
    auto other = data.iterate();
    for (int i = 0; i < 20; ++i) REQUIRE(other.next() == i);
  }
}

TEST_CASE("draws, rounds and epochs that would overflow are DataLoss") {
  const std::uint64_t last = df::data::endless - 1;
  CHECK(restoring(endless_range().shuffle(2), [&](df::ByteWriter& out) {
          out.varint(last);
          out.boolean(false);
          out.count(0);
          for (int i = 0; i < 3; ++i) out.varint(0);
        }).code() == df::Code::data_loss);
  CHECK(restoring(range(3).repeat(), [&](df::ByteWriter& out) {
          out.boolean(false);
          out.boolean(false);
          out.varint(last);
          out.boolean(false);
        }).code() == df::Code::data_loss);
  std::string state = "dflow iterator 2\n";
  df::ByteWriter out(state);
  out.string(range(3).recipe()->describe());
  for (const std::uint64_t number : {last, std::uint64_t{0}, std::uint64_t{0}}) out.varint(number);
  out.u32(df::mask_crc32c(df::crc32c(state)));
  auto at = range(3).iterate();
  CHECK(code_of([&] { return at.restore(state), 0; }) == df::Code::data_loss);
}

TEST_CASE("positions that would overflow are DataLoss") {
  const auto shuffled = endless_range().shuffle(2);
  CHECK(restoring(shuffled, [](df::ByteWriter& out) {
          out.varint(0);
          out.boolean(false);
          out.count(0);
          out.varint(df::data::endless - 3);
          out.varint(3);
          out.varint(0);
        }).code() == df::Code::data_loss);
}

// The test does not know where a state keeps its numbers: it writes over all places, and puts the checksum right.
TEST_CASE("any state with a right checksum is restored or refused after little work") {
  const auto row = [](int i) { return df::Tensor<int>::full({i % 7}, i); };
  const auto length = [](const df::Tensor<int>& x) { return x.dim(0); };
  const auto inner = [](int i) { return endless_range().take(static_cast<std::uint64_t>(i % 5)).shuffle(3); };
  const auto text = [](const df::Tensor<int>& x) { return x.to_string(); };
  const auto print = [](int i) { return std::to_string(i); };
  const df::data::BucketOptions buckets{.boundaries = {2, 4}, .sizes = {3, 4, 5}};
  const auto pool = std::make_shared<df::InlinePool>();
  const std::vector<df::data::Dataset<std::string>> pipelines{
      endless_generator().repeat().take(50).repeat().map(print),
      endless_generator().map(row).bucket_by_length(length, buckets).map(text),
      endless_generator().interleave(inner, {.cycle = 1000}).shuffle(4).map(print, {.pool = pool}),
      endless_range().map(row).padded_batch(3).prefetch(2).map(text),
      df::data::zip(endless_range().cache(), endless_generator()).map([&](int a, int b) { return print(a + b); }),
      range(3)
          .concatenate(endless_range().skip(5))
          .window(3, {.shift = 1, .drop_remainder = true})
          .map([&](const std::vector<int>& w) { return print(w.back()); })};
  std::mt19937 random(7);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random()) % n; };
  for (const auto& data : pipelines) {
    INFO(data.recipe()->describe());
    auto saved = data.iterate();
    for (int i = 0; i < 30; ++i) saved.next();
    const std::string state = saved.state();
    const std::size_t begin = state.find(data.recipe()->describe()) + data.recipe()->describe().size();
    for (int round = 0; round < 400; ++round) {
      INFO("round " << round);
      std::string hostile = state.substr(0, state.size() - 4);
      for (std::size_t i = 0; i <= below(3); ++i) {
        const std::size_t at = begin + below(hostile.size() - begin);
        std::string number;
        // Not the last position: the iterator would count on beyond it, and its state would be refused.
        const std::size_t bit = below(63);
        df::ByteWriter(number).varint(std::uint64_t{1} << (bit == 62 ? 63 : bit));
        if (below(2) != 0) number.assign(1, static_cast<char>(below(128)));
        const std::size_t replaced = below(2) + 1;
        hostile.replace(at, replaced, number);
      }
      df::ByteWriter(hostile).u32(df::mask_crc32c(df::crc32c(hostile)));
      auto at = data.iterate();
      at.limit_restoring(limit_of_tests);
      const df::Code code = code_of([&] { return at.restore(hostile), 0; });
      REQUIRE((code == df::Code::ok || code == df::Code::data_loss || code == df::Code::invalid_argument));
      for (int i = 0; i < 10 && at.next(); ++i) {
      }
      if (code != df::Code::ok) continue;
      const std::string again = at.state();
      auto other = data.iterate();
      other.restore(again);
      REQUIRE(other.next() == at.next());
    }
  }
}
