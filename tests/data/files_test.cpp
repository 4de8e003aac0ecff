#include <dflow/data/files.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/data/from.hpp>
#include <dflow/io/compression/compressed_file.hpp>
#include <dflow/io/records/record_file.hpp>

#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace df = dflow;
using namespace std::string_view_literals;

TEST_CASE("images and labels come from IDX files, rows from CSV") {
  df::MemoryFileSystem files;
  files.create_directories("mnist");
  files.write_file_atomically("mnist/train-images-idx3-ubyte", "\0\0\x08\3\0\0\0\2\0\0\0\1\0\0\0\2\0\xff\0\0"sv);
  files.write_file_atomically("mnist/train-labels-idx1-ubyte", "\0\0\x08\1\0\0\0\2\7\3"sv);
  files.write_file_atomically("table.csv", "a, b\n1, 2\n3, 4\n"sv);
  int count = 0;
  for (auto& [image, label] : df::data::from_idx(files, "mnist")) {
    CHECK(image.shape() == df::Shape{1, 2, 1});
    CHECK(label.scalar() == (count++ == 0 ? 7 : 3));
  }
  CHECK(count == 2);
  for (auto& rows : df::data::from_csv(files, "table.csv", {.has_header = true}).batch(2)) {
    CHECK(rows.to_string() == "float[2,2] [[1, 2], [3, 4]]");
  }
  CHECK(code_of([&] { return df::data::from_idx(files, "nowhere"); }) == df::Code::not_found);
  CHECK(code_of([&] { return df::data::from_csv("/nowhere/table.csv"); }) == df::Code::not_found);
}

namespace {

/// Two files of 3 and 2 records and an empty one between them.
std::vector<std::string> write_record_files(df::FileSystem& files, const df::RecordWriterOptions& options = {}) {
  const std::vector<std::string> paths{"data/a.tfrecord", "data/b.tfrecord", "data/c.tfrecord"};
  const std::vector<std::vector<std::string>> records{{"one", "", "three"}, {}, {std::string(1000, 'x'), "five"}};
  files.create_directories("data");
  for (std::size_t i = 0; i < paths.size(); ++i) {
    df::RecordWriter writer(files, paths[i], options);
    for (const std::string& record : records[i]) writer.write(record);
    writer.close();
  }
  return paths;
}

template <class E>
std::vector<E> rest_of_records(df::data::Iterator<E>& iterator) {
  std::vector<E> rest;
  while (auto next = iterator.next()) rest.push_back(*next);
  return rest;
}

}  // namespace

TEST_CASE("records come from files, and an iterator that is restored goes on at any of them") {
  for (const auto compression : {df::RecordCompression::none, df::RecordCompression::gzip}) {
    df::MemoryFileSystem files;
    const std::vector<std::string> paths = write_record_files(files, {.compression = compression});
    const auto records = df::data::from_records(files, paths, {.compression = compression});
    std::vector<std::string> all;
    for (const std::string& record : records) all.push_back(record);
    CHECK(all == std::vector<std::string>{"one", "", "three", std::string(1000, 'x'), "five"});
    for (std::size_t i = 0; i <= all.size(); ++i) {
      auto iterator = records.iterate();
      for (std::size_t k = 0; k < i; ++k) iterator.next();
      const std::string state = iterator.state();
      auto restored = records.iterate();
      restored.restore(state);
      CHECK(restored.state() == state);
      CHECK(rest_of_records(restored) ==
            std::vector<std::string>(all.begin() + static_cast<std::ptrdiff_t>(i), all.end()));
    }
    // The next epoch has them again, and steps after them keep their place too.
    const auto lengths = records.map([](const std::string& record) { return static_cast<float>(record.size()); });
    const auto batches = lengths.shuffle(3, {.seed = 1}).batch(2).prefetch(2);
    auto iterator = batches.iterate();
    iterator.next();
    auto restored = batches.iterate();
    restored.restore(iterator.state());
    CHECK(rest_of_records(restored).size() == 2);
    CHECK(records.repeat(2).skip(5).take(1).iterate().next() == "one");
  }
}

TEST_CASE("records of files that are missing, damaged, or others than before are errors that say so") {
  df::MemoryFileSystem files;
  const std::vector<std::string> paths = write_record_files(files);
  CHECK(code_of([&] { return df::data::from_records(files, {}); }) == df::Code::invalid_argument);
  const auto missing = df::data::from_records(files, {paths[0], "data/none"});
  auto to_missing = missing.iterate();
  for (int i = 0; i < 3; ++i) to_missing.next();
  CHECK(contains(error_of([&] { return to_missing.next(); }, df::Code::not_found), "data/none"));

  auto iterator = df::data::from_records(files, paths).iterate();
  for (int i = 0; i < 4; ++i) iterator.next();
  const std::string state = iterator.state();
  auto elsewhere = df::data::from_records(files, {"a", "b"}).iterate();
  CHECK(code_of([&] {
          elsewhere.restore(state);
          return 0;
        }) == df::Code::invalid_argument);
  files.write_file_atomically(paths[2], "short"sv);
  auto shorter = df::data::from_records(files, paths).iterate();
  CHECK(code_of([&] {
          shorter.restore(state);
          return 0;
        }) == df::Code::data_loss);
  auto damaged = df::data::from_records(files, {paths[2]}).iterate();
  CHECK(contains(error_of([&] { return damaged.next(); }, df::Code::data_loss), paths[2]));
  auto limited = df::data::from_records(files, paths, {.max_record_bytes = 3}).iterate();
  limited.next();
  limited.next();
  CHECK(code_of([&] { return limited.next(); }) == df::Code::resource_exhausted);
  CHECK(code_of([] { return df::data::from_records({"/nowhere/x.tfrecord"}).iterate().next(); }) ==
        df::Code::not_found);
}

TEST_CASE("lines come from text files, and an iterator that is restored goes on at any of them") {
  df::MemoryFileSystem files;
  files.write_file_atomically("a.txt", "one\n\nthree\r\n"sv);
  files.write_file_atomically("empty.txt", ""sv);
  files.write_file_atomically("b.txt", "four\nfive"sv);
  const std::vector<std::string> paths{"a.txt", "empty.txt", "b.txt", "a.txt"};
  const auto lines = df::data::from_text_lines(files, paths);
  const auto below = df::data::from_text_lines(files, paths, {.skip_header_lines = 1});
  for (const auto& [data, all] :
       {std::pair{lines, std::vector<std::string>{"one", "", "three", "four", "five", "one", "", "three"}},
        std::pair{below, std::vector<std::string>{"", "three", "five", "", "three"}}}) {
    for (std::size_t i = 0; i <= all.size(); ++i) {
      auto iterator = data.iterate();
      for (std::size_t k = 0; k < i; ++k) iterator.next();
      auto restored = data.iterate();
      restored.restore(iterator.state());
      CHECK(restored.state() == iterator.state());
      const std::vector<std::string> rest(all.begin() + static_cast<std::ptrdiff_t>(i), all.end());
      CHECK(rest_of_records(restored) == rest);
    }
  }
  CHECK(lines.skip(3).iterate().next() == "four");
  CHECK(contains(error_of([&] { return below.iterate().restore(lines.iterate().state()), 0; }), ", from line 2)'"));
}

TEST_CASE("lines of compressed files are unpacked as they are read") {
  df::MemoryFileSystem files;
  const auto write = [&] {
    df::DeflatingFile file(files.open_for_appending("a.txt.gz"), df::CompressionFormat::gzip);
    file.append(std::string_view("one\ntwo\n" + std::string(300'000, 'x') + "\nlast"));
    file.finish();
    return 0;
  };
  if (code_of(write) == df::Code::unimplemented) return;
  const auto lines = df::data::from_text_lines(files, {"a.txt.gz"});
  auto iterator = lines.iterate();
  CHECK(iterator.next() == "one");
  CHECK(iterator.next() == "two");
  auto restored = lines.iterate();
  restored.restore(iterator.state());
  CHECK(restored.next()->size() == 300'000);
  CHECK(restored.next() == "last");
  CHECK_FALSE(restored.next().has_value());
  // Damage is named, and with the step for that the other files are still read.
  std::string bytes = files.read_file("a.txt.gz");
  bytes.resize(bytes.size() / 2);
  files.write_file_atomically("cut.txt.gz", std::string_view(bytes));
  files.write_file_atomically("b.txt", "good\n"sv);
  const auto damaged = df::data::from_text_lines(files, {"cut.txt.gz", "none.txt", "b.txt"});
  auto all = damaged.iterate();
  CHECK(contains(error_of([&] { return rest_of_records(all); }, df::Code::data_loss),
                 "'cut.txt.gz': the gzip stream is damaged"));
  auto left = damaged.ignore_errors().iterate();
  CHECK(rest_of_records(left).back() == "good");
}

TEST_CASE("text files that are missing, or shorter than before, are errors that say so") {
  df::MemoryFileSystem files;
  CHECK(code_of([&] { return df::data::from_text_lines(files, {}); }) == df::Code::invalid_argument);
  CHECK(contains(
      error_of([] { return df::data::from_text_lines({"/nowhere/x.txt"}).iterate().next(); }, df::Code::not_found),
      "/nowhere/x.txt"));
  files.write_file_atomically("a.txt", "one\ntwo\nthree\n"sv);
  const auto lines = df::data::from_text_lines(files, {"a.txt"});
  auto iterator = lines.iterate();
  for (int i = 0; i < 2; ++i) iterator.next();
  files.write_file_atomically("a.txt", "one\n"sv);
  CHECK(code_of([&] { return lines.iterate().restore(iterator.state()), 0; }) == df::Code::data_loss);
}

TEST_CASE("columns of a CSV file are a dataset, also those of text") {
  df::MemoryFileSystem files;
  files.write_file_atomically("houses.csv", "city, rooms, price\nRome, 3, 210.5\n\"Bern, old\", 4, 300\n"sv);
  const auto houses = df::data::from_csv<std::string, float>(files, "houses.csv", {"city", "price"});
  CHECK(houses.size() == 2);
  std::string text;
  for (auto& [city, price] : houses.batch(2)) text += city.to_string() + price.to_string();
  CHECK(text == R"(string[2] ["Rome", "Bern, old"]float[2] [210.5, 300])");
  text.clear();
  for (auto& city : df::data::from_csv<std::string>(files, "houses.csv", {0})) text += city.scalar() + ";";
  CHECK(text == "Rome;Bern, old;");
  CHECK(code_of([] { return df::data::from_csv<float>("/nowhere/table.csv", {0}); }) == df::Code::not_found);
}

TEST_CASE("the state of a reader of compressed files is of no other reader") {
  df::MemoryFileSystem files;
  const std::vector<std::string> paths = write_record_files(files);
  const auto state = [&](df::RecordCompression compression) {
    return df::data::from_records(files, paths, {.compression = compression}).iterate().state();
  };
  auto plain = df::data::from_records(files, paths).iterate();
  for (const auto compression : {df::RecordCompression::gzip, df::RecordCompression::zlib}) {
    const std::string error = error_of([&] { return plain.restore(state(compression)), 0; });
    CHECK(contains(error, compression == df::RecordCompression::gzip ? ", GZIP)', not of" : ", ZLIB)', not of"));
  }
  plain.restore(state(df::RecordCompression::none));
}
