#include <dflow/base/files/matching_files.hpp>

#include "catch.hpp"
#include "support/errors.hpp"
#include "support/held_files.hpp"
#include "support/temporary_folder.hpp"

#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/base/status.hpp>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

using namespace dflow;

namespace {

using Paths = std::vector<std::string>;

void put_matched_files(FileSystem& files, const std::string& root) {
  files.create_directories(root + "/m/sub");
  for (const char* name : {"m/a1.txt", "m/a2.txt", "m/b1.txt", "m/.hid.txt", "m/sub/a1.txt", "m/[x].txt"}) {
    files.write_file_atomically(root + "/" + name, std::string_view("x"));
  }
}

}  // namespace

TEST_CASE("A pattern's star stands for any characters, its question mark for one, a set for one of it") {
  CHECK(matches("", ""));
  CHECK(matches("abc", "abc"));
  CHECK_FALSE(matches("abc", "abcd"));
  CHECK_FALSE(matches("abc", "ab"));
  CHECK(matches("", "*"));
  CHECK(matches("abc", "**"));
  CHECK(matches("abcbc", "a*bc"));
  CHECK(matches("a-b-c", "*-*-*"));
  CHECK_FALSE(matches("a-b", "*-*-*"));
  CHECK(matches("abc", "a?c"));
  CHECK_FALSE(matches("", "?"));
  CHECK(matches("b", "[abc]"));
  CHECK(matches("b", "[a-c]"));
  CHECK_FALSE(matches("d", "[a-c]"));
  CHECK(matches("d", "[^a-c]"));
  CHECK(matches("d", "[!a-c]"));
  CHECK_FALSE(matches("a", "[^a-c]"));
  CHECK(matches("]", "[]]"));
  CHECK(matches("-", "[a-]"));
  CHECK(matches("-", "[a\\-c]"));
  CHECK_FALSE(matches("b", "[a\\-c]"));
  CHECK(matches("\xff", "[\x80-\xff]"));
  CHECK(matches("*", "\\*"));
  CHECK_FALSE(matches("a", "\\*"));
  CHECK(matches("\\", "\\"));
  for (const char* bad : {"[", "[a", "[a-", "[^", "[]", "[\\"}) CHECK_FALSE(matches("a", bad));
}

TEST_CASE("A pattern of many stars takes no more than the product of the lengths") {
  std::string pattern;
  for (int i = 0; i < 200; ++i) pattern += "*a";
  CHECK_FALSE(matches(std::string(20000, 'a') + "b", pattern));
  CHECK(matches(std::string(20000, 'a'), pattern));
}

// The paths that TensorFlow 2.21's MatchingFiles gives for the same files.
TEST_CASE("Files are found by patterns in each part of their paths, of the machine and in memory") {
  PosixFileSystem machine;
  MemoryFileSystem memory;
  const testing::TemporaryFolder folder;
  for (FileSystem* files : {static_cast<FileSystem*>(&machine), static_cast<FileSystem*>(&memory)}) {
    const std::string root = files == &machine ? folder.path() : "/root";
    put_matched_files(*files, root);
    const auto found = [&](const std::string& pattern) {
      Paths paths = matching_files(*files, root + "/" + pattern);
      for (std::string& path : paths) path.erase(0, root.size() + 1);
      return paths;
    };
    CHECK(found("m/*.txt") == Paths{"m/.hid.txt", "m/[x].txt", "m/a1.txt", "m/a2.txt", "m/b1.txt"});
    CHECK(found("m/a?.txt") == Paths{"m/a1.txt", "m/a2.txt"});
    CHECK(found("m/[ab]1.txt") == Paths{"m/a1.txt", "m/b1.txt"});
    CHECK(found("m/[^a]1.txt") == Paths{"m/b1.txt"});
    CHECK(found("m/[!a]1.txt") == Paths{"m/b1.txt"});
    CHECK(found("m/[a-b]1.txt") == Paths{"m/a1.txt", "m/b1.txt"});
    CHECK(found("*/a1.txt") == Paths{"m/a1.txt"});
    CHECK(found("m/*/a1.txt") == Paths{"m/sub/a1.txt"});
    CHECK(found("m/a1.txt") == Paths{"m/a1.txt"});
    CHECK(found("m/\\[x].txt") == Paths{"m/[x].txt"});
    CHECK(found("m/s*") == Paths{"m/sub"});
    CHECK(found("m*") == Paths{"m"});
    for (const char* none : {"m/none", "nodir/*", "m/[", "m/a1.txt/*", "*/none"}) CHECK(found(none).empty());
    CHECK(matching_files(*files, "").empty());
  }
}

// TensorFlow 2.21 gives the same: no file for ".." behind a wildcard; before one, each file that the path leads to.
TEST_CASE("A pattern that leads up again behind a wildcard lists no directory twice, and fits nothing") {
  class CountedFiles final : public testing::ChangedFiles {
   public:
    std::vector<std::string> list_directory(const std::string& path) override {
      ++num_listed;
      return machine.list_directory(path);
    }
    bool exists(const std::string& path) override { return machine.exists(path); }
    PosixFileSystem machine;
    int num_listed = 0;
  };
  const testing::TemporaryFolder folder;
  const std::string& root = folder.path();
  for (int i = 0; i < 30; ++i) std::filesystem::create_directories(root + "/d" + std::to_string(i));
  CountedFiles files;
  CHECK(matching_files(files, root + "/*/../*").empty());
  CHECK(matching_files(files, root + "/*/../*/../*/../*/../*/../*").empty());
  CHECK(matching_files(files, root + "/d?/..").empty());
  CHECK(files.num_listed == 3);
  CHECK(matching_files(files, root + "/d1/../d2?").size() == 10);
}

TEST_CASE("A link in a circle among the files of a pattern is passed over") {
  const testing::TemporaryFolder folder;
  PosixFileSystem files;
  files.write_file_atomically(folder.file("a.csv"), std::string_view("1"));
  std::filesystem::create_symlink("loop.csv", folder.file("loop.csv"));
  CHECK(matching_files(files, folder.file("*.csv")) == Paths{folder.file("a.csv")});
}
