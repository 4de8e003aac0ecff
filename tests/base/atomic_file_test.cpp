#include <dflow/base/files/atomic_file.hpp>

#include "catch.hpp"

#include <dflow/base/files/memory_file_system.hpp>

#include <string>
#include <string_view>
#include <vector>

using namespace std::string_view_literals;

TEST_CASE("a file written in pieces is there when it is finished, and not before") {
  dflow::MemoryFileSystem files;
  files.create_directories("/a");
  files.write_file_atomically("/a/b", "old"sv);
  files.write_file_atomically("/a/b.tmp", "left behind"sv);
  dflow::AtomicFile file(files, "/a/b");
  file.append("new "sv);
  file.append(""sv);
  file.append("content"sv);
  CHECK(file.size() == 11);
  CHECK(files.read_file("/a/b") == "old");
  file.finish();
  CHECK(files.read_file("/a/b") == "new content");
  CHECK(files.list_directory("/a") == std::vector<std::string>{"b"});
}

TEST_CASE("a file that is not finished leaves nothing behind") {
  dflow::MemoryFileSystem files;
  { dflow::AtomicFile(files, "/new/file").append("part"sv); }
  CHECK_FALSE(files.exists("/new/file"));
  CHECK(files.list_directory("/new").empty());
}
