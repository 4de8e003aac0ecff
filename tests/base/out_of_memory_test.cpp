// Every allocation of the floor's operations fails in turn.
#include <dflow/base/clock.hpp>
#include <dflow/base/files/byte_writer.hpp>
#include <dflow/base/files/file_system.hpp>
#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/base/files/read_ahead_source.hpp>
#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/base/threads/elastic_pool.hpp>
#include <dflow/base/threads/thread_pool.hpp>
#include <dflow/io/records/record_file.hpp>

#include "catch.hpp"
#include "support/failing_new.hpp"
#include "support/temporary_folder.hpp"

#include <array>
#include <atomic>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

using namespace dflow;
using failing_new::fail_each;

TEST_CASE("a status keeps its code when there is no memory for its context", "[out_of_memory]") {
  const std::string long_text(100, 'x');
  const Status status = Status::not_found(long_text);
  CHECK(fail_each([&] {
          const Status with_more =
              status.with_node(long_text, long_text).with_device(long_text).with_task(long_text).with_prefix(long_text);
          if (with_more.code() != Code::not_found) throw std::logic_error("the code is lost");
        }) >= 5);
  CHECK(fail_each([&] { static_cast<void>(Error(status)); }) > 0);
  CHECK(Status::out_of_memory() == Status::resource_exhausted("out of memory"));
  CHECK(Status::out_of_memory().with_node("Op", "node").node() == "node");
}

TEST_CASE("an exception becomes a status when there is no memory for one", "[out_of_memory]") {
  const std::string long_text(100, 'x');
  const auto check = [](const auto& thrown, Code code) {
    return fail_each([&] {
      try {
        throw thrown;
      } catch (...) {
        const Status status = status_of_current_exception();
        if (status.code() != code && status != Status::out_of_memory()) throw std::logic_error("another code");
      }
    });
  };
  CHECK(check(std::bad_alloc(), Code::resource_exhausted) == 0);
  CHECK(check(std::runtime_error(long_text), Code::internal) > 0);
  CHECK(check(Error(Status::not_found(long_text)), Code::not_found) == 0);
  CHECK(check(5, Code::unknown) > 0);
}

TEST_CASE("pools start, run and end, or are refused, when memory runs out", "[out_of_memory]") {
  CHECK(fail_each([] {
          PoolEvent ran;
          std::atomic<int> items{0};
          WorkStealingPool pool(3, {.name = "a name that is longer than a string keeps inside", .min_split_ns = 0});
          pool.parallel_for(100, 1.0,
                            [&](std::int64_t begin, std::int64_t end) { items += static_cast<int>(end - begin); });
          pool.schedule([&] { ran.set(); });
          pool.wait(ran);
          if (items != 100) throw std::logic_error("items");
        }) > 3);
  CHECK(fail_each([] {
          PoolEvent first, second;
          ElasticPool pool({.max_threads = 2});
          pool.schedule([&] { first.set(); });
          pool.wait(first);
          pool.schedule([&] { second.set(); });
          pool.wait(second);
        }) > 2);
  CHECK(fail_each([] {
          InlinePool pool;
          auto count = std::make_shared<int>(0);
          pool.schedule([&pool, count] {
            for (int i = 0; i < 3; ++i) {
              try {
                pool.schedule([count] { ++*count; });
              } catch (const std::bad_alloc&) {
                --*count;
              }
            }
          });
        }) > 0);
}

TEST_CASE("an elastic pool without memory for a further thread lets the task wait", "[out_of_memory]") {
  ElasticPool pool({.max_threads = 2});
  PoolEvent gate, blocked, ran;
  pool.schedule([&] {
    blocked.set();
    gate.wait_blocking();
  });
  pool.wait(blocked);
  failing_new::fails_in = 1;
  pool.schedule([&] { ran.set(); });
  failing_new::fails_in = 0;
  CHECK(pool.num_threads_now() == 1);
  gate.set();
  pool.wait(ran);
}

TEST_CASE("a timer is either set or not when memory runs out", "[out_of_memory]") {
  VirtualClock clock;
  int fired = 0;
  int expected = 0;
  CHECK(fail_each([&] {
          clock.schedule_after(std::chrono::seconds(1), [&] { ++fired; });
          ++expected;
          clock.advance(std::chrono::seconds(2));
        }) > 0);
  clock.advance(std::chrono::seconds(5));
  CHECK(fired == expected);
  CHECK(fail_each([] {
          RealClock real;
          real.cancel(real.schedule_after(std::chrono::hours(1), [] {}));
        }) > 2);
}

TEST_CASE("a file system stays whole when memory runs out", "[out_of_memory]") {
  const std::string name = "a name that is longer than a string keeps inside";
  const testing::TemporaryFolder folder;
  const std::string& pattern = folder.path();
  PosixFileSystem posix;
  MemoryFileSystem memory;
  memory.create_directories(pattern);
  for (FileSystem* files : {static_cast<FileSystem*>(&posix), static_cast<FileSystem*>(&memory)}) {
    const std::string directory = join_path(pattern, "directory of a name that is long");
    const std::string moved = join_path(pattern, "another directory of a name that is long");
    const std::string path = join_path(directory, name);
    const auto clean_up = [&] {
      for (const std::string& place : {directory, moved}) {
        if (!files->exists(place)) continue;
        for (const std::string& file : files->list_directory(place)) {
          if (files->read_file(join_path(place, file)).size() > 100) throw std::logic_error("content");
          files->remove(join_path(place, file));
        }
        files->remove(place);
      }
    };
    CHECK(fail_each([&] {
            struct CleanUp {
              const decltype(clean_up)& call;
              ~CleanUp() {
                const int fails_in = std::exchange(failing_new::fails_in, 0);
                call();
                failing_new::fails_in = fails_in;
              }
            } at_end{clean_up};
            files->create_directories(directory);
            files->write_file_atomically(path, std::string(100, 'x'));
            files->rename(path, path + "2");
            files->open_for_appending(path)->append("more");
            files->rename(directory, moved);
            files->list_directory(moved);
            files->open_for_reading(join_path(moved, name))->size();
          }) > 10);
  }
}

TEST_CASE("bytes are written whole or not at all when memory runs out", "[out_of_memory]") {
  CHECK(fail_each([] {
          std::string bytes;
          ByteWriter writer(bytes);
          for (int i = 0; i < 100; ++i) writer.u64(7);
          static_cast<void>(str_cat(bytes, " and ", 5, " more than fits inside"));
        }) > 2);
}

TEST_CASE("a record that there is no memory for is read when there is some", "[out_of_memory]") {
  MemoryFileSystem files;
  const std::vector<std::string> records{"one", std::string(500, 'a'), std::string(100'000, 'b'), "end"};
  {
    RecordWriter writer(files, "/file");
    for (const std::string& record : records) writer.write(record);
    writer.close();
  }
  // The largest lies in no buffer.
  RecordReader reader(files, "/file", {.buffer_bytes = 4'096});
  std::string_view view;
  for (const std::string& expected : records) {
    const std::uint64_t began = reader.tell();
    int num_refused = 0;
    for (int n = 1;; ++n) {
      reader.seek(began);
      std::string record;
      failing_new::fails_in = n;
      try {
        reader.next(record);
      } catch (const std::bad_alloc&) {
        ++num_refused;
        CHECK(record.empty());
        CHECK(reader.tell() == began);
      }
      const bool has_failed = failing_new::fails_in == 0;
      failing_new::fails_in = 0;
      if (!has_failed) {
        CHECK(record == expected);
        break;
      }
    }
    if (expected.size() > 15) CHECK(num_refused > 0);
    reader.seek(began);
    CHECK((reader.next_view(view) && view == expected));
  }
}

TEST_CASE("a file that is read ahead when there is no memory is closed", "[out_of_memory]") {
  MemoryFileSystem files;
  files.write_file_atomically("/file", std::string(1'000, 'x'));
  CHECK(fail_each([&] {
          ReadAheadSource source(files.open_for_reading("/file"), 64);
          std::array<std::byte, 300> bytes;
          if (source.read(bytes) != bytes.size()) throw std::logic_error("it ends early");
          source.seek(900);
          if (source.read(bytes) != 100) throw std::logic_error("it does not end");
        }) > 0);
}
