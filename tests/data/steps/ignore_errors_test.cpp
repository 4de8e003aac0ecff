#include <dflow/data/steps/ignore_errors.hpp>

#include "catch.hpp"
#include "data/elements.hpp"
#include "support/errors.hpp"

#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/data/data.hpp>
#include <dflow/io/records/record_file.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <ranges>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace df = dflow;
using df::data::Dataset;

namespace {

using Ints = std::vector<int>;

/// i, but for each third one an error.
int no_third(int i) { return i % 3 == 2 ? throw std::invalid_argument("third: " + std::to_string(i)) : i; }

Dataset<int> good(int n) { return range(n).map(no_third).ignore_errors(); }

struct NamedPipeline {
  std::string name;
  Dataset<int> data;
  Ints expected;
};

/// Each place where an error can come from, and each step that it may pass on its way.
std::vector<NamedPipeline> failing_pipelines() {
  const auto bad = range(9).map(no_third);
  const auto row = [](int i) { return df::Tensor<int>::full({1 + i % 2}, i); };
  const auto sum = [](const df::Tensor<int>& batch) {
    int total = 0;
    for (const int i : batch) total += i;
    return total;
  };
  const auto length = [](int i) { return no_third(i) + 1; };
  const auto first = [](const auto& all) { return all.front(); };
  const auto generated =
      df::data::from_generator([] { return [i = 0]() mutable -> std::optional<int> { return no_third(i++); }; });
  const auto view = std::views::iota(0, 9) | std::views::transform(no_third);
  const Ints left{0, 1, 3, 4, 6, 7};
  return {
      {"map", bad, left},
      {"parallel map", range(9).map(no_third, {.threads = 2}), left},
      {"maps",
       bad.map([](int i) { return i + 1; }).map([](int i) { return i + 1; }, {.threads = 2}),
       {2, 3, 5, 6, 8, 9}},
      {"filter", range(9).filter([](int i) { return no_third(i) % 2 == 0; }), {0, 4, 6}},
      {"filter of a map", bad.filter([](int i) { return i % 2 == 0; }), {0, 4, 6}},
      {"range", df::data::from_range(view), left},
      {"generator", generated, {0, 1}},
      {"take", bad.take(5), {0, 1, 3, 4}},
      {"skip", bad.skip(3), {3, 4, 6, 7}},
      {"repeat", bad.repeat(2), {0, 1, 3, 4, 6, 7, 0, 1, 3, 4, 6, 7}},
      {"repeat of nothing", bad.skip(2).take(1).repeat(), {}},
      {"zip", df::data::zip(bad, range(9)).map([](int a, int b) { return a + b; }), {0, 2, 6, 8, 12, 14}},
      {"enumerate",
       bad.enumerate().map([](std::int64_t i, int e) { return static_cast<int>(i) - e; }),
       {0, 0, 0, 0, 0, 0}},
      {"concatenate", range(2).concatenate(bad.take(3)), {0, 1, 0, 1}},
      {"shuffle", bad.shuffle(1), left},
      {"batch", bad.batch(2).map(sum), {1, 13}},  // of 0 and 1, and of 6 and 7
      {"batch of shapes", range(4).map([&](int i) { return row(i / 3); }).batch(2).map(sum), {0}},
      {"padded batch", bad.map(row).padded_batch(2).map(sum), {2, 20}},
      {"buckets", range(9).bucket_by_length(length, {.boundaries = {4}, .sizes = {2, 2}}).map(sum), {1, 7, 13}},
      {"window", bad.window(2, {.shift = 1}).map(first), {0, 3, 6}},
      {"prefetch", bad.prefetch(3), left},
      {"cache", bad.cache(), left},
      {"flat_map", range(6).flat_map([](int i) { return range(no_third(i) % 3 + 1); }), {0, 0, 1, 0, 0, 1}},
      {"flat_map inside", range(2).flat_map([](int) { return range(4).map(no_third); }), {0, 1, 3, 0, 1, 3}},
      {"interleave",
       bad.interleave([](int i) { return range(i, i + 2); }, {.cycle = 2}),
       {0, 1, 1, 2, 3, 4, 4, 5, 6, 7, 7, 8}},
      {"ignore_errors", bad.ignore_errors(), left},
      {"ignore_errors between", bad.ignore_errors().map([](int i) { return no_third(i + 1); }), {1, 4, 7}},
  };
}

}  // namespace

TEST_CASE("elements that cannot be made are left out, wherever the error comes from and whatever it passes") {
  for (const auto& [name, data, expected] : failing_pipelines()) {
    INFO(name);
    CHECK(all(data.ignore_errors()) == expected);
    CHECK(all(data.ignore_errors().prefetch(2)) == expected);
  }
}

TEST_CASE("an iterator that leaves errors out goes on where it was saved") {
  for (const auto& [name, data, expected] : failing_pipelines()) {
    INFO(name);
    const auto left = data.ignore_errors();
    const Ints whole = all(left);
    auto at = left.iterate();
    for (std::size_t given = 0; given <= whole.size(); ++given) {
      auto restored = left.iterate();
      restored.restore(at.state());
      CHECK(restored.position() == given);
      CHECK(all(std::move(restored)) == Ints(whole.begin() + static_cast<std::ptrdiff_t>(given), whole.end()));
      at.next();
    }
  }
}

TEST_CASE("without the step an error is thrown, and a step behind it throws its own errors") {
  CHECK_THROWS_WITH(all(range(9).map(no_third)), "in step map, element 2: third: 2");
  CHECK_THROWS_WITH(all(good(9).map([](int i) { return no_third(i + 1); })), "in step map, element 1: third: 2");
  CHECK_THROWS_WITH(all(good(4).concatenate(range(3).map(no_third))), "in step map, element 2: third: 2");
}

TEST_CASE("each error is told with its number, and one more than the limit is thrown") {
  struct Told {
    std::vector<df::Status> errors;
    std::vector<std::uint64_t> counts;
  };
  const auto told = std::make_shared<Told>();
  const auto data = [told](std::uint64_t limit) {
    return range(9).map(no_third).ignore_errors(
        {.limit = limit, .on_error = [told](const df::Status& error, std::uint64_t count) {
           told->errors.push_back(error);
           told->counts.push_back(count);
         }});
  };
  CHECK(all(data(3)).size() == 6);
  REQUIRE(told->errors.size() == 3);
  CHECK(told->errors[1].code() == df::Code::internal);  // as of every std::exception
  CHECK(mentions(told->errors[1], "third: 5"));
  CHECK(told->counts == std::vector<std::uint64_t>{1, 2, 3});
  auto at = data(2).iterate();
  for (int i = 0; i < 6; ++i) CHECK(at.next().has_value());
  const std::string error = error_of([&] { return at.next(); }, df::Code::internal);
  CHECK(contains(error, "2 errors have been ignored, and one more came: "));
  CHECK(contains(error, "third: 8"));
  // Each epoch has its own limit, and a state says how many errors there have been.
  CHECK(all(data(3).repeat(2)).size() == 12);
  auto saved = data(2).iterate();
  for (int i = 0; i < 5; ++i) saved.next();
  auto restored = data(1).iterate();
  restored.restore(saved.state());
  CHECK(restored.next() == 7);
  CHECK(contains(error_of([&] { return restored.next(); }, df::Code::internal), "1 errors have been ignored"));
  auto next = data(2).iterate();
  next.restore(saved.state());
  next.next_epoch();
  CHECK(next.next() == 0);
}

TEST_CASE("what is called for an error may end the reading") {
  const auto data = range(9).map(no_third).ignore_errors({.on_error = [](const df::Status&, std::uint64_t count) {
    if (count == 2) throw std::runtime_error("enough");
  }});
  auto at = data.iterate();
  for (int i = 0; i < 4; ++i) at.next();
  CHECK_THROWS_WITH(at.next(), "enough");
  CHECK_THROWS_WITH(at.next(), "enough");
}

TEST_CASE("a cache keeps an error for those who ignore it, and throws it for others") {
  const auto calls = std::make_shared<int>(0);
  const auto cached = range(4)
                          .map([calls](int i) {
                            ++*calls;
                            return no_third(i);
                          })
                          .cache();
  const auto ignoring = cached.ignore_errors();
  CHECK(all(ignoring) == Ints{0, 1, 3});
  CHECK(all(ignoring) == Ints{0, 1, 3});
  CHECK(*calls == 4);
  auto at = cached.iterate();
  CHECK(at.next() == 0);
  CHECK(at.next() == 1);
  CHECK_THROWS_WITH(at.next(), "in step map, element 2: third: 2");
  // The other way round: the error is not kept, and the next reader tries again.
  const auto other = range(4).map(no_third).cache();
  CHECK_THROWS_WITH(all(other), "in step map, element 2: third: 2");
  CHECK(all(other.ignore_errors()) == Ints{0, 1, 3});
}

TEST_CASE("an element that is restored past the limit of elements is no error that is ignored") {
  const auto data = df::data::from_generator([] { return [i = 0]() mutable { return std::optional(i++); }; })
                        .map(no_third)
                        .ignore_errors();
  auto at = data.iterate();
  for (int i = 0; i < 50; ++i) at.next();
  auto restored = data.iterate();
  restored.limit_restoring(10);
  CHECK(code_of([&] { return restored.restore(at.state()), 0; }) == df::Code::invalid_argument);
  restored.limit_restoring(100);
  restored.restore(at.state());
  CHECK(restored.next() == at.next());
}

TEST_CASE("records that are damaged are left out, and the rest of a file whose lengths are") {
  df::MemoryFileSystem files;
  const auto write = [&](const std::string& path, std::size_t damaged) {
    df::RecordWriter writer(files, path);
    for (const char* record : {"one", "two", "three"}) writer.write(path + record);
    writer.close();
    std::string bytes = files.read_file(path);
    if (damaged < bytes.size()) bytes[damaged] = static_cast<char>(bytes[damaged] ^ 1);
    files.write_file_atomically(path, std::string_view(bytes));
  };
  const std::size_t first = 12 + 4 + 4;  // header, "aone" and footer
  write("a", first + 12);                // the content of the second record
  write("b", first);                     // its length
  write("c", 1000);                      // nothing
  files.write_file_atomically("d", std::string_view(files.read_file("c")).substr(0, 30));
  const auto told = std::make_shared<std::vector<std::string>>();
  const auto records = df::data::from_records(files, {"a", "b", "missing", "d", "c"});
  const auto left = records.ignore_errors(
      {.on_error = [told](const df::Status& error, std::uint64_t) { told->emplace_back(error.message()); }});
  const std::vector<std::string> expected{"aone", "athree", "bone", "cone", "cone", "ctwo", "cthree"};
  CHECK(all(left) == expected);
  REQUIRE(told->size() == 4);
  for (const auto& [at, what] : {std::pair{0, "'a' at offset 20: the checksum is wrong"},
                                 std::pair{1, "'b' at offset 20: the checksum of its length is wrong"},
                                 std::pair{2, "missing"}, std::pair{3, "'d' at offset 20: "}}) {
    CHECK(contains((*told)[static_cast<std::size_t>(at)], what));
  }
  for (std::size_t given = 0; given <= expected.size(); ++given) {
    auto at = left.iterate();
    for (std::size_t i = 0; i < given; ++i) at.next();
    auto restored = left.iterate();
    restored.restore(at.state());
    CHECK(all(std::move(restored)) ==
          std::vector<std::string>(expected.begin() + static_cast<std::ptrdiff_t>(given), expected.end()));
  }
  // Passing over damaged records is an error as well, unless errors are ignored.
  CHECK(code_of([&] { return all(records.skip(3)); }) == df::Code::data_loss);
  CHECK(all(records.skip(3).ignore_errors()).front() == "bone");
}
