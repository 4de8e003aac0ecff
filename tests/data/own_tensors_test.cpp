#include <dflow/data/own_tensors.hpp>

#include "catch.hpp"

#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/data/data.hpp>

#include <array>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace df = dflow;
using df::data::Dataset;
using Floats = df::Tensor<float>;

namespace {

/// A class of a user, who says which tensors it holds.
struct Sample {
  Floats image;
  std::string name;
  std::vector<Floats> masks;
};
auto tensors_of(Sample& sample) { return std::tie(sample.image, sample.masks); }

/// A class that says nothing.
struct Silent {
  Floats image;
};

void overwrite(Floats& x) {
  for (float& value : x) value = -1;
}

/// Whether an element that holds the tensor somewhere has another one after it was made the owner.
template <class E, class Get>
bool is_copied(E element, const Floats& shared, Get get) {
  REQUIRE(get(element).raw_data() == shared.raw_data());
  df::data::detail::unshare_element(element);
  CHECK(df::bitwise_equal(get(element), shared));
  return get(element).raw_data() != shared.raw_data();
}

}  // namespace

TEST_CASE("an element is made the owner of the tensors in pairs, tuples, containers and classes that name them") {
  const Floats x({2}, {1, 2});
  const auto copied = [&](auto element, auto get) { return is_copied(std::move(element), x, get); };
  CHECK(copied(x, [](const auto& e) -> auto& { return e; }));
  CHECK(copied(x.any(), [](const auto& e) -> auto& { return e; }));
  CHECK(copied(std::pair{1, x}, [](const auto& e) -> auto& { return e.second; }));
  CHECK(copied(std::tuple{1, std::pair{x, "a"}}, [](const auto& e) -> auto& { return std::get<1>(e).first; }));
  CHECK(copied(std::array{x, x}, [](const auto& e) -> auto& { return e[1]; }));
  CHECK(copied(std::vector{x, x}, [](const auto& e) -> auto& { return e[1]; }));
  CHECK(copied(std::list{std::vector{x}}, [](const auto& e) -> auto& { return e.front().front(); }));
  CHECK(copied(std::map<std::string, Floats>{{"x", x}}, [](const auto& e) -> auto& { return e.at("x"); }));
  CHECK(copied(std::optional{x}, [](const auto& e) -> auto& { return *e; }));
  CHECK(copied(Sample{x, "a", {}}, [](const auto& e) -> auto& { return e.image; }));
  CHECK(copied(Sample{{}, "a", {x}}, [](const auto& e) -> auto& { return e.masks.front(); }));
  CHECK_FALSE(copied(Silent{x}, [](const auto& e) -> auto& { return e.image; }));
  std::optional<Floats> none;
  df::data::detail::unshare_element(none);
  static_assert(!df::data::detail::holds_tensors<std::tuple<int, std::string, std::vector<float>>>);
}

TEST_CASE("a tensor that nothing else holds stays, and so does one without elements") {
  Floats alone({2}, {1, 2});
  const void* const place = alone.raw_data();
  df::data::detail::unshare_element(alone);
  CHECK(alone.raw_data() == place);
  Floats empty({0, 2}), none;
  const Floats same = empty;
  df::data::detail::unshare_element(empty);
  df::data::detail::unshare_element(none);
  CHECK(empty.shape() == df::Shape{0, 2});
  CHECK_FALSE(none.is_initialized());
  // Memory of the caller is copied, also if only one handle refers to it.
  std::vector<float> lent{1, 2};
  Floats borrowed = df::borrow(lent, {2});
  df::data::detail::unshare_element(borrowed);
  CHECK(borrowed.raw_data() != lent.data());
  df::Tensor<std::string> texts({2}, {"a", "b"});
  const df::Tensor<std::string> others = texts;
  df::data::detail::unshare_element(texts);
  texts(0) = "c";
  CHECK(others(0) == "a");
}

namespace {

struct NamedFloats {
  std::string name;
  Dataset<Floats> data;
};

/// Each source and each step, over tensors of the caller.
std::vector<NamedFloats> datasets(const Floats& x, df::FileSystem& files) {
  const auto rows = df::data::from_tensors(x);
  std::vector<Floats> elements;
  for (int i = 0; i < x.dim(0); ++i) elements.push_back(x.slice(i, i + 1));
  const auto generated = df::data::from_generator([elements] {
    return [elements, i = std::size_t{0}]() mutable -> std::optional<Floats> {
      return i < elements.size() ? std::optional(elements[i++]) : std::nullopt;
    };
  });
  const auto first = [](const auto& element) { return std::get<0>(element); };
  const auto second = [](const auto& element) { return std::get<1>(element); };
  const auto same = [](const Floats& row) { return row; };
  const auto front = [](const std::vector<Floats>& window) { return window.front(); };
  const auto back = [](const std::vector<Floats>& window) { return window.back(); };
  const auto inner = [](const Floats& matrix) { return df::data::from_tensors(matrix); };
  const auto length = [](const Floats& row) { return row.dim(0); };
  const df::data::BucketOptions buckets{.boundaries = {2}, .sizes = {2, 2}};
  const auto matrices = rows.batch(2);
  return {
      {"rows", rows},
      {"pairs of rows", df::data::from_tensors(x, x).map(first)},
      {"vector", df::data::from_vector(elements)},
      {"range", df::data::from_range(elements)},
      {"list", df::data::from_range(std::list<Floats>(elements.begin(), elements.end()))},
      {"generator", generated},
      {"csv", df::data::from_csv(files, "table.csv")},
      {"csv columns", df::data::from_csv<float, float>(files, "table.csv", {0, 1}, {}).map(second)},
      {"map", rows.map(same)},
      {"parallel map", rows.map(same, {.threads = 2})},
      {"filter", rows.filter([](const Floats& row) { return row(0) > 0; })},
      {"take", rows.take(4)},
      {"skip", rows.skip(2)},
      {"repeat", rows.repeat(2)},
      {"concatenate", rows.concatenate(rows)},
      {"zip", df::data::zip(rows, rows).map(second)},
      {"enumerate", rows.enumerate().map(second)},
      {"shuffle", rows.shuffle(4, {.seed = 2})},
      {"batch", matrices},
      {"padded batch", rows.padded_batch(2)},
      {"buckets", rows.bucket_by_length(length, buckets)},
      {"windows", rows.window(3, {.shift = 1}).map(front)},
      {"ends of windows", rows.window(3, {.shift = 1}).map(back)},
      {"prefetch", rows.prefetch(2)},
      {"cache", rows.cache()},
      {"cache of batches", matrices.cache()},
      {"flat_map", matrices.flat_map(inner)},
      {"ignore_errors", rows.ignore_errors()},
      {"interleave", matrices.interleave(inner, {.cycle = 2})},
      {"all", generated.cache().shuffle(3, {.seed = 1}).repeat(2).prefetch(2).padded_batch(2).cache().prefetch(1)},
  };
}

Floats table() { return Floats({6, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}); }

/// The elements as texts, written after they were read if `writes`.
std::vector<std::string> read(const Dataset<Floats>& data, bool writes) {
  std::vector<std::string> texts;
  for (auto& element : data) {
    texts.push_back(element.to_string());
    if (writes) overwrite(element);
  }
  return texts;
}

struct Tables {
  Tables() { files.write_file_atomically("table.csv", std::string_view("0,1\n2,3\n4,5\n6,7\n8,9\n10,11\n")); }

  df::MemoryFileSystem files;
  Floats mine = table(), kept = table();
};

}  // namespace

TEST_CASE("the body of a loop that writes into its elements changes no source, no cache and no later element") {
  Tables tables;
  const auto kept = datasets(tables.kept, tables.files);
  std::size_t i = 0;
  for (const auto& [name, data] : datasets(tables.mine, tables.files)) {
    INFO(name);
    const std::vector<std::string> expected = read(kept[i++].data, false);
    REQUIRE(expected.size() >= 3);
    CHECK(read(data, true) == expected);
    CHECK(read(data, true) == expected);
    CHECK(read(data, false) == expected);
    CHECK(df::bitwise_equal(tables.mine, tables.kept));
  }
}

TEST_CASE("a function that writes into its element changes no source, no cache and no later element") {
  Tables tables;
  const auto in_place = [](Floats& x) {
    for (float& value : x) value = 2 * value + 1;
    return x;
  };
  const auto by_value = [](Floats x) {
    for (float& value : x) value = 2 * value + 1;
    return x;
  };
  const auto by_hand = [](const Floats& x) {
    Floats y = x.copy();
    for (float& value : y) value = 2 * value + 1;
    return y;
  };
  const auto kept = datasets(tables.kept, tables.files);
  std::size_t i = 0;
  for (const auto& [name, data] : datasets(tables.mine, tables.files)) {
    INFO(name);
    const std::vector<std::string> expected = read(kept[i++].data.map(by_hand), false);
    for (const auto& changed : {data.map(in_place), data.map(by_value), data.map(in_place, {.threads = 2})}) {
      CHECK(read(changed, false) == expected);
      CHECK(read(changed.repeat(2).take(expected.size()), true) == expected);
      const auto cached = changed.cache();
      CHECK(read(cached, true) == expected);
      CHECK(read(cached, true) == expected);
    }
    CHECK(df::bitwise_equal(tables.mine, tables.kept));
  }
}

TEST_CASE("an iterator that is restored gives what the saved one gives, whatever was written into the elements") {
  Tables tables;
  const auto kept = datasets(tables.kept, tables.files);
  std::size_t i = 0;
  for (const auto& [name, data] : datasets(tables.mine, tables.files)) {
    INFO(name);
    const std::vector<std::string> expected = read(kept[i++].data, false);
    auto at = data.iterate();
    for (std::size_t given = 0; given <= expected.size(); ++given) {
      auto restored = data.iterate();
      restored.restore(at.state());
      std::vector<std::string> rest;
      while (auto element = restored.next()) {
        rest.push_back(element->to_string());
        overwrite(*element);
      }
      CHECK(rest == std::vector<std::string>(expected.begin() + static_cast<std::ptrdiff_t>(given), expected.end()));
      if (auto element = at.next()) overwrite(*element);
    }
  }
}

TEST_CASE("functions of other steps that write into their element do not reach it") {
  Tables tables;
  const auto rows = df::data::from_tensors(tables.mine);
  const auto expected = read(df::data::from_tensors(tables.kept), false);
  const auto keeps = [](Floats row) {
    overwrite(row);
    return true;
  };
  CHECK(read(rows.filter(keeps), false) == expected);
  const auto numbered = rows.enumerate().filter([&](std::int64_t, Floats row) { return keeps(row); });
  CHECK(read(numbered.map([](std::int64_t, const Floats& row) { return row; }), false) == expected);
  const auto length = [](Floats row) {
    overwrite(row);
    return 1;
  };
  const auto whole = rows.bucket_by_length(length, {.boundaries = {2}, .sizes = {6, 6}});
  CHECK(read(whole.flat_map([](const Floats& matrix) { return df::data::from_tensors(matrix); }), false) == expected);
  const auto expand = [](Floats& row) {
    const auto inner = df::data::from_vector(std::vector{row.copy()});
    overwrite(row);
    return inner;
  };
  CHECK(read(rows.flat_map(expand), false) == expected);
  CHECK(read(rows.flat_map(expand), false) == expected);
  CHECK(df::bitwise_equal(tables.mine, tables.kept));
}

TEST_CASE("windows that have elements in common share none that a loop writes") {
  Tables tables;
  const auto windows = df::data::from_tensors(tables.mine).window(3, {.shift = 1});
  int begin = 0;
  for (auto& window : windows) {
    for (std::size_t i = 0; i < window.size(); ++i) {
      CHECK(window[i](0) == static_cast<float>(2 * (begin + static_cast<int>(i))));
      overwrite(window[i]);
    }
    ++begin;
  }
  CHECK(begin == 6);
  CHECK(df::bitwise_equal(tables.mine, tables.kept));
}

TEST_CASE("elements of a class that names its tensors are values too") {
  const Floats x({2}, {1, 2});
  const auto data = df::data::from_vector(std::vector{Sample{x, "a", {x}}}).cache();
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (auto& sample : data.map([](Sample& of) {
           for (float& value : of.image) value += 1;
           return of;
         })) {
      CHECK(sample.image.to_string() == "float[2] [2, 3]");
      CHECK(sample.masks.front().to_string() == "float[2] [1, 2]");
      overwrite(sample.masks.front());
    }
  }
  CHECK(x.to_string() == "float[2] [1, 2]");
}

TEST_CASE("handles of one tensor in one element are values") {
  const auto data = df::data::from_generator([] {
    return [i = 0]() mutable -> std::optional<std::pair<Floats, Floats>> {
      if (i++ > 0) return std::nullopt;
      const Floats x({1}, {1});
      return std::pair{x, x};
    };
  });
  for (auto& [a, b] : data) {
    overwrite(a);
    CHECK(b(0) == 1);
  }
}
