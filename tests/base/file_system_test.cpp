#include <dflow/base/files/file_system.hpp>
#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/base/status.hpp>

#include "catch.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

#include <sys/stat.h>
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using namespace dflow;

namespace {
/// A file system and an empty directory in it.
template <class FileSystemType>
struct Place {
  FileSystemType files;
  testing::TemporaryFolder folder;
  std::string root;

  Place() {
    if constexpr (std::is_same_v<FileSystemType, PosixFileSystem>) {
      root = folder.path();
    } else {
      root = "/root";
      files.create_directories(root);
    }
  }
  std::string at(std::string_view name) const { return join_path(root, name); }
};

}  // namespace

TEMPLATE_TEST_CASE("what is written is read", "[file_system]", PosixFileSystem, MemoryFileSystem) {
  Place<TestType> place;
  FileSystem& files = place.files;
  const std::string path = place.at("a.txt");
  CHECK_FALSE(files.exists(path));
  files.write_file_atomically(path, "hello");
  CHECK(files.exists(path));
  CHECK_FALSE(files.is_directory(path));
  CHECK(files.file_size(path) == 5);
  CHECK(files.read_file(path) == "hello");
  files.write_file_atomically(path, "");
  CHECK(files.read_file(path).empty());
  CHECK(files.list_directory(place.root) == std::vector<std::string>{"a.txt"});
}

TEMPLATE_TEST_CASE("a read is bounded", "[file_system]", PosixFileSystem, MemoryFileSystem) {
  Place<TestType> place;
  place.files.write_file_atomically(place.at("a"), "hello");
  CHECK(place.files.read_file(place.at("a"), 5) == "hello");
  CHECK(code_of([&] { place.files.read_file(place.at("a"), 4); }) == Code::resource_exhausted);
}

TEMPLATE_TEST_CASE("any part of a file is read", "[file_system]", PosixFileSystem, MemoryFileSystem) {
  Place<TestType> place;
  place.files.write_file_atomically(place.at("a"), "0123456789");
  const auto file = place.files.open_for_reading(place.at("a"));
  CHECK(file->size() == 10);
  std::vector<std::byte> part(4);
  CHECK(file->read_at(3, part) == 4);
  CHECK(part[0] == std::byte{'3'});
  CHECK(file->read_at(8, part) == 2);
  CHECK(file->read_at(100, part) == 0);
  CHECK(file->read_at(~std::uint64_t{0}, part) == 0);
  CHECK_NOTHROW(file->read_exactly_at(6, part));
  CHECK(code_of([&] { file->read_exactly_at(7, part); }) == Code::data_loss);
}

TEMPLATE_TEST_CASE("appending keeps what is there", "[file_system]", PosixFileSystem, MemoryFileSystem) {
  Place<TestType> place;
  {
    const auto file = place.files.open_for_appending(place.at("log"));
    file->append("one");
    file->append("two");
    file->sync();
  }
  place.files.open_for_appending(place.at("log"))->append("three");
  CHECK(place.files.read_file(place.at("log")) == "onetwothree");
}

TEMPLATE_TEST_CASE("a file is created where there is none, by one of those who try at the same time", "[file_system]",
                   PosixFileSystem, MemoryFileSystem) {
  Place<TestType> place;
  place.files.create_file(place.at("new"))->append("mine");
  CHECK(place.files.read_file(place.at("new")) == "mine");
  place.files.create_directories(place.at("directory"));
  for (const char* taken : {"new", "directory"}) {
    const std::string path = place.at(taken);
    const std::string why = error_of([&] { return place.files.create_file(path) != nullptr; }, Code::already_exists);
    CHECK(contains(why, path));
  }
  CHECK(code_of([&] { return place.files.create_file(place.at("no/such")); }) == Code::not_found);
  CHECK(place.files.read_file(place.at("new")) == "mine");

  std::atomic<int> num_made{0}, num_taken{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int file = 0; file < 50; ++file) {
        try {
          place.files.create_file(place.at("file" + std::to_string(file)))->append("x");
          ++num_made;
        } catch (const Error& error) {
          num_taken += error.code() == Code::already_exists;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(num_made == 50);
  CHECK(num_taken == 150);
  for (int file = 0; file < 50; ++file) CHECK(place.files.file_size(place.at("file" + std::to_string(file))) == 1);
}

TEST_CASE("a link that leads nowhere is in the way of a file that is created", "[file_system]") {
  Place<PosixFileSystem> place;
  std::filesystem::create_symlink("nowhere", place.at("link"));
  CHECK(code_of([&] { return place.files.create_file(place.at("link")); }) == Code::already_exists);
  CHECK_FALSE(place.files.exists(place.at("nowhere")));
}

TEMPLATE_TEST_CASE("an open file outlives its name", "[file_system]", PosixFileSystem, MemoryFileSystem) {
  Place<TestType> place;
  place.files.write_file_atomically(place.at("a"), "old");
  const auto file = place.files.open_for_reading(place.at("a"));
  place.files.write_file_atomically(place.at("a"), "new!");
  place.files.remove(place.at("a"));
  std::vector<std::byte> content(3);
  file->read_exactly_at(0, content);
  CHECK(content[0] == std::byte{'o'});
}

TEMPLATE_TEST_CASE("directories are made, listed, moved and removed", "[file_system]", PosixFileSystem,
                   MemoryFileSystem) {
  Place<TestType> place;
  FileSystem& files = place.files;
  files.create_directories(place.at("x/y/z"));
  files.create_directories(place.at("x/y/z"));
  CHECK(files.is_directory(place.at("x/y")));
  files.write_file_atomically(place.at("x/y/b"), "1");
  files.write_file_atomically(place.at("x/y/a"), "2");
  CHECK(files.list_directory(place.at("x/y")) == std::vector<std::string>{"a", "b", "z"});
  CHECK(code_of([&] { files.remove(place.at("x/y")); }) == Code::failed_precondition);
  for (const char* inside : {"x/v", "x/y/v"}) {
    CHECK(code_of([&] { files.rename(place.at("x"), place.at(inside)); }) == Code::invalid_argument);
  }
  CHECK(files.is_directory(place.at("x/y/z")));
  files.rename(place.at("x"), place.at("w"));
  CHECK_FALSE(files.exists(place.at("x")));
  CHECK(files.read_file(place.at("w/y/a")) == "2");
  CHECK(files.is_directory(place.at("w/y/z")));
  files.rename(place.at("w/y/a"), place.at("w/y/b"));
  CHECK(files.read_file(place.at("w/y/b")) == "2");
  files.remove(place.at("w/y/b"));
  files.remove(place.at("w/y/z"));
  files.remove(place.at("w/y"));
  CHECK(files.list_directory(place.at("w")).empty());
}

TEMPLATE_TEST_CASE("errors have a code and name the path", "[file_system]", PosixFileSystem, MemoryFileSystem) {
  Place<TestType> place;
  FileSystem& files = place.files;
  const std::string missing = place.at("missing");
  CHECK(code_of([&] { files.read_file(missing); }) == Code::not_found);
  CHECK(code_of([&] { files.open_for_reading(missing); }) == Code::not_found);
  CHECK(code_of([&] { files.file_size(missing); }) == Code::not_found);
  CHECK(code_of([&] { files.list_directory(missing); }) == Code::not_found);
  CHECK(code_of([&] { files.remove(missing); }) == Code::not_found);
  CHECK(code_of([&] { files.rename(missing, place.at("b")); }) == Code::not_found);
  CHECK(code_of([&] { files.write_file_atomically(place.at("no/such"), "x"); }) == Code::not_found);
  CHECK(code_of([&] { files.open_for_appending(place.at("no/such")); }) == Code::not_found);
  CHECK(code_of([&] { files.read_file(place.root); }) == Code::failed_precondition);
  CHECK(code_of([&] { files.file_size(place.root); }) == Code::failed_precondition);
  CHECK(code_of([&] { files.write_file_atomically(place.root, "x"); }) == Code::failed_precondition);
  files.write_file_atomically(place.at("f"), "x");
  CHECK(code_of([&] { files.list_directory(place.at("f")); }) == Code::failed_precondition);
  CHECK(code_of([&] { files.create_directories(place.at("f")); }) == Code::already_exists);
  CHECK(code_of([&] { files.create_directories(place.at("f/g")); }) == Code::failed_precondition);
  CHECK_THROWS_WITH(files.read_file(missing),
                    Catch::Matchers::Contains(missing) && Catch::Matchers::Contains("No such file or directory"));
}

TEST_CASE("a write that fails leaves the old file and nothing beside it", "[file_system]") {
  Place<PosixFileSystem> place;
  place.files.create_directories(place.at("d"));
  place.files.write_file_atomically(place.at("d/keep"), "x");
  CHECK(code_of([&] { place.files.write_file_atomically(place.at("d"), "y"); }) == Code::failed_precondition);
  CHECK(place.files.list_directory(place.root) == std::vector<std::string>{"d"});
}

TEST_CASE("what is not a regular file is not replaced", "[file_system]") {
  Place<PosixFileSystem> place;
  REQUIRE(::mkfifo(place.at("pipe").c_str(), 0600) == 0);
  std::filesystem::create_symlink("pipe", place.at("link"));
  for (const std::string& path : {place.at("pipe"), place.at("link"), std::string("/dev/null")}) {
    CHECK(code_of([&] { place.files.write_file_atomically(path, "x"); }) == Code::failed_precondition);
  }
  CHECK(std::filesystem::is_fifo(place.at("pipe")));
  CHECK(std::filesystem::is_symlink(place.at("link")));
  CHECK(std::filesystem::is_character_file("/dev/null"));
  CHECK(place.files.list_directory(place.root) == std::vector<std::string>{"link", "pipe"});
}

TEST_CASE("what others have put in a file's place is not waited for", "[file_system]") {
  Place<PosixFileSystem> place;
  REQUIRE(::mkfifo(place.at("pipe").c_str(), 0600) == 0);
  std::filesystem::create_symlink("pipe", place.at("link"));
  for (const std::string& path : {place.at("pipe"), place.at("link"), std::string("/dev/zero"), place.root}) {
    CHECK(code_of([&] { place.files.open_for_reading(path); }) == Code::failed_precondition);
    CHECK(code_of([&] { dflow::read_regular_file(place.files, path); }) == Code::failed_precondition);
  }
  place.files.write_file_atomically(place.at("f"), "12345");
  std::filesystem::create_symlink("f", place.at("to f"));
  CHECK(dflow::read_regular_file(place.files, place.at("to f"), 5) == "12345");
  CHECK(code_of([&] { dflow::read_regular_file(place.files, place.at("f"), 4); }) == Code::resource_exhausted);
  CHECK(code_of([&] { dflow::read_regular_file(place.files, place.at("g")); }) == Code::not_found);
  // A file without a size.
  CHECK(dflow::read_regular_file(place.files, "/proc/self/status").find("Pid:") != std::string::npos);
  CHECK(code_of([&] { dflow::read_regular_file(place.files, "/proc/self/status", 5); }) == Code::resource_exhausted);
}

TEMPLATE_TEST_CASE("a path with a zero byte is refused as such", "[file_system]", PosixFileSystem, MemoryFileSystem) {
  Place<TestType> place;
  FileSystem& files = place.files;
  files.write_file_atomically(place.at("f"), "x");
  const std::string path = place.at("f") + std::string("\0g", 2), other = place.at("h");
  const auto says_so = [&](const auto& run) {
    const std::string message = error_of(run, Code::invalid_argument);
    return message.find("f\\x00g'") != std::string::npos && message.find("zero byte") != std::string::npos;
  };
  CHECK(says_so([&] { return files.read_file(path); }));
  CHECK(says_so([&] { return files.open_for_reading(path); }));
  CHECK(says_so([&] { return files.open_for_appending(path); }));
  CHECK(says_so([&] { return files.create_file(path); }));
  CHECK(says_so([&] { return files.write_file_atomically(path, "y"), 0; }));
  CHECK(says_so([&] { return files.exists(path); }));
  CHECK(says_so([&] { return files.is_directory(path); }));
  CHECK(says_so([&] { return files.file_size(path); }));
  CHECK(says_so([&] { return files.list_directory(path); }));
  CHECK(says_so([&] { return files.create_directories(path), 0; }));
  CHECK(says_so([&] { return files.sync_directory(path), 0; }));
  CHECK(says_so([&] { return files.rename(path, other), 0; }));
  CHECK(says_so([&] { return files.rename(place.at("f"), path), 0; }));
  CHECK(says_so([&] { return files.remove(path), 0; }));
  CHECK(files.list_directory(place.root) == std::vector<std::string>{"f"});
}

TEST_CASE("an error about a path shows a part of it that is safe to print", "[file_system]") {
  Place<PosixFileSystem> place;
  const auto message = [&](const std::string& path) {
    return std::string(status_of([&] { return place.files.file_size(path); }).message());
  };
  CHECK(contains(message(place.at("a\x1b[31m\nb")), "a\\x1b[31m\\x0ab': "));
  CHECK(message(std::string(100'000, 'a')).size() < 5'000);
  CHECK(contains(message("/\xc3\xa9"), "'/\xc3\xa9'"));
}

TEST_CASE("a symbolic link stays, and what it leads to is replaced", "[file_system]") {
  Place<PosixFileSystem> place;
  place.files.create_directories(place.at("d"));
  place.files.write_file_atomically(place.at("d/file"), "old");
  std::filesystem::create_symlink("d/file", place.at("relative"));
  std::filesystem::create_symlink(place.at("relative"), place.at("d/absolute"));
  place.files.write_file_atomically(place.at("relative"), "one");
  CHECK(place.files.read_file(place.at("d/file")) == "one");
  place.files.write_file_atomically(place.at("d/absolute"), "two");
  CHECK(place.files.read_file(place.at("d/file")) == "two");
  CHECK(std::filesystem::is_symlink(place.at("relative")));
  CHECK(std::filesystem::is_symlink(place.at("d/absolute")));
  std::filesystem::create_symlink("d/new", place.at("dangling"));
  place.files.write_file_atomically(place.at("dangling"), "three");
  CHECK(place.files.read_file(place.at("d/new")) == "three");
  std::filesystem::create_symlink("self", place.at("self"));
  CHECK(code_of([&] { place.files.write_file_atomically(place.at("self"), "x"); }) == Code::invalid_argument);
}

TEST_CASE("threads that write the same path by the same string do not meet", "[file_system]") {
  Place<PosixFileSystem> place;
  const std::string path = place.at("a");
  std::vector<std::thread> writers;
  std::atomic<int> failed{0};
  for (char c = 'a'; c < 'e'; ++c) {
    writers.emplace_back([&, c] {
      for (int i = 0; i < 25; ++i) {
        try {
          place.files.write_file_atomically(path, std::string(50'000, c));
        } catch (const Error&) {
          ++failed;
        }
      }
    });
  }
  int torn = 0;
  for (int i = 0; i < 50; ++i) {
    if (!place.files.exists(path)) continue;
    const std::string content = place.files.read_file(path);
    torn += content.size() != 50'000 || content != std::string(50'000, content[0]);
  }
  for (std::thread& writer : writers) writer.join();
  CHECK(failed == 0);
  CHECK(torn == 0);
  CHECK(place.files.list_directory(place.root) == std::vector<std::string>{"a"});
}

TEST_CASE("files without a size are read to their end", "[file_system]") {
  PosixFileSystem files;
  if (!files.exists("/proc/self/status")) return;
  CHECK(files.read_file("/proc/self/status").size() > 100);
  CHECK(code_of([&] { files.read_file("/dev/zero", 100000); }) == Code::resource_exhausted);
}

TEMPLATE_TEST_CASE("a reader sees whole contents while a writer replaces them", "[file_system]", PosixFileSystem,
                   MemoryFileSystem) {
  Place<TestType> place;
  const std::string path = place.at("a");
  place.files.write_file_atomically(path, std::string(4096, 'a'));
  std::thread writer([&] {
    for (int i = 0; i < 30; ++i)
      place.files.write_file_atomically(path, std::string(4096, static_cast<char>('a' + i % 26)));
  });
  int torn = 0;
  for (int i = 0; i < 200; ++i) {
    const std::string content = place.files.read_file(path);
    torn += content != std::string(4096, content.at(0));
  }
  writer.join();
  CHECK(torn == 0);
}

TEST_CASE("a file of which the system cannot say whether it is there is not taken for a missing one", "[file_system]") {
  PosixFileSystem files;
  const testing::TemporaryFolder folder;
  std::filesystem::create_symlink("loop", folder.file("loop"));
  const std::string too_long = folder.file(std::string(300, 'n'));
  for (const std::string& path : {folder.file("loop"), folder.file("loop/file"), too_long}) {
    CHECK(code_of([&] { return files.exists(path); }) != Code::ok);
    CHECK(code_of([&] { return files.is_directory(path); }) != Code::ok);
  }
  std::ofstream(folder.file("file")) << "x";
  for (const std::string& path : {folder.file("none"), folder.file("none/file"), folder.file("file/file")}) {
    CHECK_FALSE(files.exists(path));
    CHECK_FALSE(files.is_directory(path));
  }
}

TEST_CASE("paths are joined", "[file_system]") {
  CHECK(join_path("a/b", "c") == "a/b/c");
  CHECK(join_path("a/", "c") == "a/c");
  CHECK(join_path("a", "/c") == "/c");
  CHECK(join_path("", "c") == "c");
}

TEST_CASE("a loss of power takes what was not synced, names and contents apart") {
  for (const CrashOutcome outcome :
       {CrashOutcome{}, CrashOutcome{true, false}, CrashOutcome{false, true}, CrashOutcome{true, true}}) {
    MemoryFileSystem files;
    const auto kept = files.open_for_appending("kept");
    kept->append("synced");
    kept->sync();
    files.sync_directory(".");
    kept->append(" and not");
    files.open_for_appending("new")->sync();
    files.crash(outcome);
    CHECK(files.read_file("kept") == (outcome.keeps_contents ? "synced and not" : "synced"));
    CHECK(files.exists("new") == outcome.keeps_names);
    kept->append(" after");
    CHECK_FALSE(contains(files.read_file("kept"), "after"));
  }
}

TEST_CASE("a removed name comes back after a loss of power until its directory is synced") {
  MemoryFileSystem files;
  files.write_file_atomically("a", "1");
  files.remove("a");
  files.crash();
  CHECK(files.read_file("a") == "1");
  files.rename("a", "b");
  files.sync_directory("/");
  files.crash();
  CHECK(files.list_directory("/") == std::vector<std::string>{"b"});
}

TEST_CASE("the change that is to fail fails, and later ones if asked") {
  MemoryFileSystem files;
  const auto file = files.open_for_appending("a");
  CHECK(files.changes() == 1);
  files.fail_change(2, Status::resource_exhausted("full"));
  file->append("1234");
  CHECK(code_of([&] { return file->append("5678"), 0; }) == Code::resource_exhausted);
  CHECK(files.read_file("a") == "123456");
  file->append("9");
  files.fail_change(1, Status::unavailable("broken"), true);
  CHECK(code_of([&] { return file->sync(), 0; }) == Code::unavailable);
  CHECK(code_of([&] { return files.remove("a"), 0; }) == Code::unavailable);
  CHECK(code_of([&] { return files.sync_directory("/"), 0; }) == Code::unavailable);
  files.fail_change(0, {});
  files.remove("a");
  CHECK(files.changes() == 8);
}

TEST_CASE("a machine's directory is synced, and what is none is an error") {
  PosixFileSystem files;
  files.sync_directory(std::filesystem::temp_directory_path().string());
  CHECK(code_of([&] { return files.sync_directory("/nowhere/at/all"), 0; }) == Code::not_found);
}

TEST_CASE("an absolute path is the same from every working directory") {
  dflow::PosixFileSystem files;
  CHECK(files.absolute_path("/a/../b") == "/a/../b");
  const std::string here = files.absolute_path("name");
  CHECK(here.starts_with('/'));
  CHECK(here.ends_with("/name"));
  CHECK(files.absolute_path(here) == here);
}

TEST_CASE("a working directory that is gone has no path, and one with a long path has it") {
  dflow::PosixFileSystem files;
  const std::filesystem::path before = std::filesystem::current_path();
  const testing::TemporaryFolder folder;
  const std::string deep = folder.file("d") + "/" + std::string(200, 'a') + "/" + std::string(200, 'b');
  std::filesystem::create_directories(deep);
  std::filesystem::current_path(deep);
  const std::string there = files.absolute_path("name");
  std::filesystem::remove_all(folder.file("d"));
  const Status gone = status_of([&] { return files.absolute_path("name"); });
  std::filesystem::current_path(before);
  CHECK(there == deep + "/name");
  CHECK(gone.code() == Code::not_found);
  CHECK(mentions(gone, "find the working directory for 'name'"));
}
