#include <dflow/base/files/atomic_file.hpp>

#include "catch.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

#include <dflow/base/files/memory_file_system.hpp>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

using namespace std::string_view_literals;

namespace {

mode_t mode_of(const std::string& path) {
  struct stat info {};
  REQUIRE(::lstat(path.c_str(), &info) == 0);
  return info.st_mode & 07777;
}

/// Writes by both ways, whole and piece by piece.
void replace_file(dflow::FileSystem& files, const std::string& path, bool whole, std::string_view content) {
  if (whole) return files.write_file_atomically(path, content);
  dflow::AtomicFile file(files, path);
  file.append(content);
  file.finish();
}

/// A file system that makes no file.
class FilesThatAreTaken final : public dflow::FileSystem {
 public:
  std::unique_ptr<dflow::WritableFile> create_file(const std::string&) override { return ++num_made, nullptr; }
  std::string read_file(const std::string&, std::uint64_t) override { return {}; }
  std::unique_ptr<dflow::RandomAccessFile> open_for_reading(const std::string&) override { return nullptr; }
  std::unique_ptr<dflow::WritableFile> open_for_appending(const std::string&) override { return nullptr; }
  void write_file_atomically(const std::string&, std::span<const std::byte>) override {}
  bool exists(const std::string&) override { return false; }
  bool is_directory(const std::string&) override { return false; }
  std::uint64_t file_size(const std::string&) override { return 0; }
  std::vector<std::string> list_directory(const std::string&) override { return {}; }
  void create_directories(const std::string&) override {}
  void remove(const std::string&) override {}
  void rename(const std::string&, const std::string&) override {}
  void sync_directory(const std::string&) override {}

  int num_made = 0;
};

}  // namespace

TEST_CASE("a writer ends whose temporary files are all taken by others") {
  FilesThatAreTaken files;
  CHECK(code_of([&] { return dflow::AtomicFile(files, "a/b"), 0; }) == dflow::Code::unavailable);
  CHECK(files.num_made == 32);
}

TEST_CASE("a file written in pieces is there when it is finished, and not before") {
  dflow::MemoryFileSystem files;
  files.create_directories("/a");
  files.write_file_atomically("/a/b", "old"sv);
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

TEST_CASE("a user's file system has a temporary file for each writer, without more than create_file") {
  dflow::MemoryFileSystem files;
  dflow::AtomicFile first(files, "/a/b"), second(files, "/a/b"), third(files, "/a/b");
  CHECK(files.list_directory("/a") == std::vector<std::string>{"b.dflow-0.tmp", "b.dflow-1.tmp", "b.dflow-2.tmp"});
  second.append("second"sv);
  first.append("first"sv);
  second.finish();
  first.finish();
  CHECK(files.read_file("/a/b") == "first");
  CHECK(files.list_directory("/a") == std::vector<std::string>{"b", "b.dflow-2.tmp"});
  // Writers that are gone leave names behind here; there is always another one.
  for (int i = 0; i < 40; ++i) files.create_file("/a/c.dflow-" + std::to_string(i) + ".tmp");
  for (int i = 0; i < 3; ++i) replace_file(files, "/a/c", false, "new");
  CHECK(files.read_file("/a/c") == "new");
}

TEST_CASE("a file that is replaced keeps its permissions, and a link its target") {
  dflow::PosixFileSystem files;
  for (const bool whole : {true, false}) {
    const dflow::testing::TemporaryFolder folder;
    const std::string path = folder.file("file"), link = folder.file("link"), fresh = folder.file("fresh");
    std::ofstream(path) << "old";
    std::filesystem::create_symlink("file", link);
    for (const mode_t mode : {0600u, 0440u, 0664u, 0777u}) {
      REQUIRE(::chmod(path.c_str(), mode) == 0);
      replace_file(files, link, whole, "new");
      CHECK(mode_of(path) == mode);
      CHECK(std::filesystem::is_symlink(link));
      CHECK(files.read_file(path) == "new");
    }
    const mode_t mask = ::umask(027);
    replace_file(files, fresh, whole, "x");
    ::umask(mask);
    CHECK(mode_of(fresh) == 0640);
    CHECK(files.list_directory(folder.path()).size() == 3);
    REQUIRE(::mkfifo(folder.file("pipe").c_str(), 0600) == 0);
    CHECK(code_of([&] { replace_file(files, folder.file("pipe"), whole, "x"); }) == dflow::Code::failed_precondition);
  }
}

TEST_CASE("what is planted under the name of a temporary file leads no bytes elsewhere") {
  dflow::PosixFileSystem files;
  for (const bool whole : {true, false}) {
    const dflow::testing::TemporaryFolder folder;
    std::ofstream(folder.file("precious")) << "kept";
    std::filesystem::create_symlink("precious", folder.file("file.dflow-0.tmp"));
    std::filesystem::create_directories(folder.file("file.dflow-1.tmp"));
    replace_file(files, folder.file("file"), whole, "new");
    CHECK(files.read_file(folder.file("file")) == "new");
    CHECK(files.read_file(folder.file("precious")) == "kept");
    std::ofstream(folder.file("file.tmp")) << "another program's";
    replace_file(files, folder.file("file"), whole, "newer");
    CHECK(files.read_file(folder.file("file.tmp")) == "another program's");
  }
}

TEST_CASE("threads and processes that write one path do not fail, and a reader sees whole files") {
  const dflow::testing::TemporaryFolder folder;
  const std::string path = folder.file("file");
  const auto write = [&](char filling) {
    dflow::PosixFileSystem files;
    try {
      for (int i = 0; i < 60; ++i) replace_file(files, path, i % 3 == 0, std::string(20000, filling));
    } catch (...) {
      return false;
    }
    return true;
  };
  const pid_t other = ::fork();
  if (other == 0) ::_exit(write('c') ? 0 : 1);
  bool is_good[2] = {};
  std::thread first([&] { is_good[0] = write('a'); }), second([&] { is_good[1] = write('b'); });
  dflow::PosixFileSystem files;
  for (int i = 0; i < 200; ++i) {
    if (!files.exists(path)) continue;
    const std::string content = files.read_file(path);
    CHECK(content == std::string(20000, content.empty() ? '?' : content[0]));
  }
  first.join();
  second.join();
  int status = -1;
  REQUIRE(::waitpid(other, &status, 0) == other);
  CHECK(status == 0);
  CHECK((is_good[0] && is_good[1]));
  CHECK(files.list_directory(folder.path()) == std::vector<std::string>{"file"});
}

TEST_CASE("writers that are killed leave no more files than there were writers at a time") {
  const dflow::testing::TemporaryFolder folder;
  const std::string path = folder.file("file");
  for (int round = 0; round < 20; ++round) {
    int told[2];
    REQUIRE(::pipe(told) == 0);
    const pid_t writer = ::fork();
    if (writer == 0) {
      dflow::PosixFileSystem files;
      dflow::AtomicFile file(files, path);
      file.append("half"sv);
      if (::write(told[1], "x", 1) != 1) ::_exit(1);
      for (;;) ::pause();
    }
    char begun = 0;
    REQUIRE(::read(told[0], &begun, 1) == 1);
    ::close(told[0]);
    ::close(told[1]);
    ::kill(writer, SIGKILL);
    REQUIRE(::waitpid(writer, nullptr, 0) == writer);
  }
  dflow::PosixFileSystem files;
  CHECK(files.list_directory(folder.path()).size() == 1);
  files.write_file_atomically(path, "new"sv);
  CHECK(files.list_directory(folder.path()) == std::vector<std::string>{"file"});
}
