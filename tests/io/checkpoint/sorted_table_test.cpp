#include <dflow/io/checkpoint/parts/sorted_table.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/base/files/memory_file_system.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace std::string_view_literals;
using dflow::Code;

namespace {

using TableEntries = std::vector<std::pair<std::string, std::string>>;

std::string table_of(const TableEntries& entries, std::size_t block_bytes = 4096) {
  std::string bytes;
  dflow::SortedTableWriter table(bytes, block_bytes);
  for (const auto& [key, value] : entries) table.add(key, value);
  table.finish();
  return bytes;
}

TableEntries entries_of_table(std::string_view bytes) {
  dflow::MemoryFileSystem files;
  files.write_file_atomically("/t", bytes);
  const dflow::SortedTableReader table(files, "/t");
  TableEntries entries;
  table.for_each([&](std::string_view key, std::string_view value) { entries.emplace_back(key, value); });
  for (const auto& [key, value] : entries) CHECK(table.find(key) == value);
  return entries;
}

TableEntries many_entries() {
  TableEntries entries{{"", "first"}};
  for (int i = 1000; i < 2000; ++i) {
    entries.emplace_back(dflow::str_cat("layer/", i), std::string(static_cast<std::size_t>(i % 50), 'v'));
  }
  return entries;
}

}  // namespace

TEST_CASE("what is put into a sorted table is found in it, whatever the size of its blocks") {
  for (const std::size_t block_bytes : {std::size_t{1}, std::size_t{100}, std::size_t{1} << 18}) {
    CHECK(entries_of_table(table_of(many_entries(), block_bytes)) == many_entries());
  }
  CHECK(entries_of_table(table_of({})).empty());
  CHECK(entries_of_table(table_of({{"", ""}})) == TableEntries{{"", ""}});
}

TEST_CASE("a key that is not in a sorted table is not found") {
  dflow::MemoryFileSystem files;
  files.write_file_atomically("/t", std::string_view(table_of(many_entries(), 100)));
  const dflow::SortedTableReader table(files, "/t");
  for (const std::string_view key : {"a"sv, "layer/"sv, "layer/10000"sv, "layer/2000"sv, "z"sv}) {
    CHECK_FALSE(table.find(key).has_value());
  }
  CHECK(dflow::SortedTableReader::is_table(files, "/t"));
  files.write_file_atomically("/u", std::string_view(std::string(100, 'x')));
  CHECK_FALSE(dflow::SortedTableReader::is_table(files, "/u"));
  files.write_file_atomically("/u", "x"sv);
  CHECK_FALSE(dflow::SortedTableReader::is_table(files, "/u"));
}

TEST_CASE("the keys of a sorted table are put into it in order") {
  std::string bytes;
  dflow::SortedTableWriter table(bytes);
  table.add("b", "");
  CHECK(code_of([&] { table.add("b", ""); }) == Code::invalid_argument);
  CHECK(code_of([&] { table.add("a", ""); }) == Code::invalid_argument);
}

TEST_CASE("a sorted table cut short anywhere is DataLoss that names the file") {
  const std::string bytes = table_of({{"", "x"}, {"abc", "y"}, {"abd", "z"}});
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    CHECK(
        contains(error_of([&] { return entries_of_table(std::string_view(bytes).substr(0, length)); }, Code::data_loss),
                 "'/t'"));
  }
}

TEST_CASE("a flipped bit of a sorted table is found, or does not matter") {
  const TableEntries entries{{"", "x"}, {"abc", "y"}, {"abd", "z"}};
  for (const std::size_t block_bytes : {1u, 4096u}) {
    const std::string bytes = table_of(entries, block_bytes);
    for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      std::string damaged = bytes;
      damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
      TableEntries read;
      const Code code = code_of([&] { read = entries_of_table(damaged); });
      CHECK((code == Code::data_loss || (code == Code::ok && read == entries)));
    }
  }
}
