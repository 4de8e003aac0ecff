#include <dflow/base/files/atomic_file.hpp>
#include <dflow/base/files/file_systems.hpp>
#include <dflow/base/files/matching_files.hpp>
#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/base/status.hpp>

#include "catch.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

using namespace dflow;

namespace {

using Names = std::vector<std::string>;
using Schemes = FileSystems::Schemes;

/// The machine's files, and two file systems in memory.
struct ThreeSystems {
  std::shared_ptr<MemoryFileSystem> mem = std::make_shared<MemoryFileSystem>();
  std::shared_ptr<MemoryFileSystem> xyz = std::make_shared<MemoryFileSystem>();
  FileSystems files{Schemes{{"mem", mem}, {"xyz", xyz}}};
  testing::TemporaryFolder folder;
};

template <class Call>
void check_files_error(const Call& call, Code code, const std::string& text) {
  Status status;
  try {
    call();
  } catch (const Error& error) {
    status = error.status();
  }
  CHECK(status.code() == code);
  CHECK_THAT(std::string(status.message()), Catch::Contains(text));
}

}  // namespace

TEST_CASE("a scheme is what stands in front of ://", "[file_systems]") {
  CHECK(path_scheme("mem://a/b") == "mem");
  CHECK(path_scheme("x+y-z.1://") == "x+y-z.1");
  for (const std::string scheme : {"A", "Z", "a", "z", "a0", "a9", "aA", "zZ"})
    CHECK(path_scheme(scheme + "://") == scheme);
  for (const char other : std::string_view("@[`{/:")) CHECK(path_scheme(std::string{'a', other} + "://b").empty());
  for (const char* path : {"", "a", "/a", "mem:/a", "://a", "1x://a", "a/b://c", "./a://b", "a b://c", "a\n://c"}) {
    CAPTURE(path);
    CHECK(path_scheme(path).empty());
  }
}

TEST_CASE("paths with a scheme are taken apart and put together", "[file_systems]") {
  CHECK(parent_directory("mem://a/b") == "mem://a");
  CHECK(parent_directory("mem://a") == "mem://");
  CHECK(parent_directory("mem:///a") == "mem:///");
  CHECK(parent_directory("mem:///a/b") == "mem:///a");
  CHECK(parent_directory("mem://") == "mem://");
  CHECK(parent_directory("a/b") == "a");
  CHECK(parent_directory("/a") == "/");
  CHECK(join_path("mem://", "a") == "mem://a");
  CHECK(join_path("mem://a", "b") == "mem://a/b");
  CHECK(join_path("a", "mem://b") == "mem://b");
  CHECK(join_path("mem://a", "/b") == "/b");
}

TEST_CASE("the scheme of a path chooses its file system", "[file_systems]") {
  ThreeSystems on;
  on.files.write_file_atomically("mem://a", "in mem");
  on.files.write_file_atomically("xyz://a", "in xyz");
  on.files.write_file_atomically(on.folder.path() + "/a", "here");
  CHECK(on.mem->read_file("a") == "in mem");
  CHECK(on.xyz->read_file("/a") == "in xyz");
  CHECK(on.files.read_file("file://" + on.folder.path() + "/a") == "here");
  CHECK(on.files.read_file("mem://a") == "in mem");
  CHECK(on.files.find("xyz") == on.xyz);
  CHECK(on.files.find("abc") == nullptr);
}

TEST_CASE("every call goes to the file system of its path", "[file_systems]") {
  const std::string scheme = GENERATE("mem://", "xyz://", "file://");
  CAPTURE(scheme);
  ThreeSystems on;
  FileSystem& files = on.files;
  const std::string top = scheme == "file://" ? scheme + on.folder.path() : scheme + "top";
  files.create_directories(top + "/d/e");
  CHECK(files.is_directory(top + "/d/e"));
  files.create_file(top + "/d/a")->append("abc");
  check_files_error([&] { return files.create_file(top + "/d/a"); }, Code::already_exists, scheme + ": ");
  files.open_for_appending(top + "/d/a")->append("def");
  CHECK(files.file_size(top + "/d/a") == 6);
  CHECK(files.open_for_reading(top + "/d/a")->size() == 6);
  files.sync_directory(top + "/d");
  CHECK(files.list_directory(top + "/d") == Names{"a", "e"});
  files.rename(top + "/d/a", top + "/b");
  CHECK_FALSE(files.exists(top + "/d/a"));
  CHECK(files.read_file(top + "/b") == "abcdef");
  files.remove(top + "/b");
  check_files_error([&] { return files.read_file(top + "/b"); }, Code::not_found, scheme + ": cannot open '");
  CHECK(files.absolute_path(top) == top);
}

TEST_CASE("the error of a path without a scheme is the machine's own", "[file_systems]") {
  ThreeSystems on;
  const std::string path = on.folder.path() + "/missing";
  const std::string error = error_of([&] { return on.files.read_file(path); }, Code::not_found);
  CHECK(error == error_of([&] { return PosixFileSystem().read_file(path); }, Code::not_found));
}

TEST_CASE("the top directory of a scheme is a directory", "[file_systems]") {
  ThreeSystems on;
  AtomicFile file(on.files, "mem://a");
  file.append("abc");
  file.finish();
  CHECK(on.files.list_directory("mem://") == Names{"a"});
  CHECK(on.files.is_directory("mem://"));
}

TEST_CASE("an unknown scheme is an error that lists the known schemes", "[file_systems]") {
  ThreeSystems on;
  const auto check = [&](auto&& call) {
    check_files_error(
        [&] { return call(); }, Code::unimplemented,
        "'abc://a' has the scheme 'abc', for which there is no file system here; known schemes: file, mem, xyz");
  };
  check([&] { return on.files.read_file("abc://a"); });
  check([&] { return on.files.exists("abc://a"); });
  check([&] { return on.files.open_for_appending("abc://a"); });
  check([&] { return on.files.begin_replacing("abc://a"); });
  check([&] { return on.files.absolute_path("abc://a"); });
  check([&] { return matching_files(on.files, "abc://a"); });
  on.files.write_file_atomically("mem://a", "");
  check([&] { on.files.rename("mem://a", "abc://a"); });
  check_files_error([&] { return machine_files()->read_file("mem://a"); }, Code::unimplemented, "known schemes: file");
}

TEST_CASE("a scheme can be taken away", "[file_systems]") {
  FileSystems files(Schemes{{"file", nullptr}});
  check_files_error([&] { return files.read_file("/etc/hostname"); }, Code::unimplemented,
                    "'/etc/hostname' has no scheme, for which there is no file system here; known schemes: mem");
  check_files_error([&] { return files.read_file("file:///etc/hostname"); }, Code::unimplemented, "known schemes: mem");
  check_files_error(
      [&] {
        return FileSystems(Schemes{{"file", nullptr}, {"mem", nullptr}}).exists("a");
      },
      Code::unimplemented, "known schemes: none");
}

TEST_CASE("a scheme of other characters is refused", "[file_systems]") {
  for (const char* scheme : {"", "1a", "a b", "a://", "a/b", "a:"}) {
    CAPTURE(scheme);
    check_files_error(
        [&] {
          return FileSystems(Schemes{{scheme, std::make_shared<MemoryFileSystem>()}});
        },
        Code::invalid_argument, "is no scheme");
  }
}

TEST_CASE("no file is renamed from one file system to another", "[file_systems]") {
  ThreeSystems on;
  on.files.write_file_atomically("mem://a", "abc");
  check_files_error([&] { return on.files.rename("mem://a", "xyz://a"); }, Code::unimplemented,
                    "cannot rename 'mem://a' to 'xyz://a': they are in two file systems");
  CHECK(on.files.read_file("mem://a") == "abc");
  CHECK_FALSE(on.files.exists("xyz://a"));
  // "file" and no scheme are one.
  on.files.write_file_atomically(on.folder.path() + "/a", "abc");
  on.files.rename("file://" + on.folder.path() + "/a", on.folder.path() + "/b");
  CHECK(on.files.read_file(on.folder.path() + "/b") == "abc");
}

TEST_CASE("globs find the files of a scheme", "[file_systems]") {
  ThreeSystems on;
  for (const char* path : {"mem://d/a.txt", "mem://d/b.txt", "mem://d/c.bin", "mem://a.txt", "xyz://d/z.txt"}) {
    AtomicFile(on.files, path).finish();
  }
  CHECK(matching_files(on.files, "mem://d/*.txt") == Names{"mem://d/a.txt", "mem://d/b.txt"});
  CHECK(matching_files(on.files, "mem://*.txt") == Names{"mem://a.txt"});
  CHECK(matching_files(on.files, "xyz://*/*") == Names{"xyz://d/z.txt"});
  CHECK(matching_files(on.files, "mem://e/*").empty());
}

TEST_CASE("a file that is being replaced is moved within its scheme", "[file_systems]") {
  const std::string scheme = GENERATE("mem://", "file://");
  CAPTURE(scheme);
  ThreeSystems on;
  const std::string top = scheme == "file://" ? scheme + on.folder.path() : scheme + "top";
  {
    AtomicFile given_up(on.files, top + "/a");
    given_up.append("abc");
    CHECK(on.files.list_directory(top).size() == 1);
  }
  CHECK(on.files.list_directory(top).empty());
  AtomicFile file(on.files, top + "/a");
  file.append("abc");
  file.finish();
  CHECK(on.files.list_directory(top) == Names{"a"});
}

TEST_CASE("writers of many threads leave one whole file each", "[file_systems]") {
  const std::string scheme = GENERATE("mem://", "file://");
  CAPTURE(scheme);
  ThreeSystems on;
  const std::string top = scheme == "file://" ? scheme + on.folder.path() : scheme + "top";
  on.files.create_directories(top);
  constexpr int num_threads = 4, num_files = 20;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < num_threads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < num_files; ++i) {
        AtomicFile file(on.files, top + "/f" + std::to_string(i));
        for (int part = 0; part < 10; ++part) file.append(std::string(100, static_cast<char>('a' + thread)));
        file.finish();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(on.files.list_directory(top).size() == num_files);
  for (int i = 0; i < num_files; ++i) {
    const std::string content = on.files.read_file(top + "/f" + std::to_string(i));
    CHECK(content == std::string(1000, content.front()));
  }
}

TEST_CASE("objects of file systems share memory only if they are given it", "[file_systems]") {
  FileSystems one, other, third(Schemes{{"mem", one.find("mem")}});
  one.write_file_atomically("mem://a", "abc");
  CHECK_FALSE(other.exists("mem://a"));
  CHECK(third.read_file("mem://a") == "abc");
}
