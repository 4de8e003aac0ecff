#include <dflow/ops/io/reader.hpp>

#include "catch.hpp"
#include "support/errors.hpp"
#include "support/held_files.hpp"

#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/core/resource.hpp>
#include <dflow/dflow.hpp>
#include <dflow/io/records/record_file.hpp>
#include <dflow/kernels/state/device_files.hpp>
#include <dflow/runtime/cpu_device.hpp>
#include <dflow/state/readers/reader_state.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <random>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

using namespace dflow;
using dflow::testing::HeldReads;

namespace {

using Texts = std::vector<std::string>;

std::shared_ptr<Device> reading_device(const std::shared_ptr<FileSystem>& files, int num_threads = 1) {
  auto device = std::make_shared<CpuDevice>(
      CpuDeviceOptions{.pool = std::make_shared<WorkStealingPool>(num_threads, ThreadPoolOptions{.name = "reading"})});
  set_device_files(device->context(), files);
  return device;
}

/// The lines of files that a queue names, on a device with a pool of one thread.
struct Lines {
  explicit Lines(const std::shared_ptr<FileSystem>& of, int num_threads = 1)
      : device(reading_device(of, num_threads)), session(graph, SessionOptions{.devices = {device}}) {}

  void enqueue(const std::string& path) { session.run({{text, Tensor<std::string>(path)}}, put); }
  std::string read(const RunOptions& options = {}) { return session.run(options, {}, value).scalar(); }
  std::int64_t produced() { return session.run(num_records).scalar(); }
  ReaderState& state() { return *device->context().resources->container()->lookup<ReaderState>("lines"); }

  std::shared_ptr<Device> device;
  Graph graph;
  FifoQueue<std::string> queue{graph, {.shapes = {{}}}};
  TextLineReader reader{graph, {.name = "lines"}};
  Output<std::string> text = placeholder<std::string>(graph, Shape{});
  Operation put = queue.enqueue(text), close = queue.close(), reset = reader.reset();
  Output<std::string> value = std::get<1>(reader.read(queue)), values = std::get<1>(reader.read_up_to(queue, 5));
  Output<std::string> serialized = reader.serialize_state();
  Output<std::int64_t> num_records = reader.num_records_produced();
  Session session;
};

std::string numbered_lines(int file, int count) {
  std::string content;
  for (int i = 0; i < count; ++i) content += str_cat("line ", i, " of file ", file, "\n");
  return content;
}

/// Files in memory that ask for a stop at the second read.
class StoppingReads final : public dflow::testing::ChangedFiles {
 public:
  std::unique_ptr<RandomAccessFile> open_for_reading(const std::string& path) override {
    return std::make_unique<File>(*this, files.open_for_reading(path));
  }

  std::stop_source stop;
  std::atomic<int> num_reads{0};

 private:
  class File final : public RandomAccessFile {
   public:
    File(StoppingReads& all, std::unique_ptr<RandomAccessFile> file) : all_(all), file_(std::move(file)) {}
    std::uint64_t size() const override { return file_->size(); }
    std::size_t read_at(std::uint64_t offset, std::span<std::byte> into) const override {
      if (++all_.num_reads == 2) all_.stop.request_stop();
      return file_->read_at(offset, into);
    }

   private:
    StoppingReads& all_;
    const std::unique_ptr<RandomAccessFile> file_;
  };
};

/// The end of a step: a line, or the error's code.
struct Ended {
  Status status;
  std::string line;
};

std::future<Ended> start_reading(Lines& lines, const RunOptions& options = {}) {
  auto ended = std::make_shared<std::promise<Ended>>();
  std::future<Ended> future = ended->get_future();
  lines.session.run_async(options, {}, lines.value, [ended](const Status& status, const Tensor<std::string>& line) {
    ended->set_value({status, status.ok() ? line.scalar() : ""});
  });
  return future;
}

}  // namespace

TEST_CASE("Eight threads with steps of their own read each record once, on a pool of one thread") {
  constexpr int num_files = 8, num_lines = 60;
  const auto files = std::make_shared<MemoryFileSystem>();
  Lines lines(files);
  for (int i = 0; i < num_files; ++i) {
    files->write_file_atomically(str_cat("/", i), numbered_lines(i, num_lines));
    lines.enqueue(str_cat("/", i));
  }
  lines.session.run(lines.close);
  std::vector<std::vector<std::string>> read(8);
  std::vector<std::thread> threads;
  std::atomic<int> num_ends{0};
  for (std::size_t t = 0; t < read.size(); ++t) {
    threads.emplace_back([&, t] {
      for (;;) {
        const Status ended = status_of([&] {
          if (t % 2 == 0) return read[t].push_back(lines.read());
          const Tensor<std::string> some = lines.session.run(lines.values);
          read[t].insert(read[t].end(), some.begin(), some.end());
        });
        if (ended.ok()) continue;
        if (ended.code() == Code::out_of_range) ++num_ends;
        return;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(num_ends == 8);
  std::set<std::string> all;
  std::size_t count = 0;
  for (const auto& some : read) {
    all.insert(some.begin(), some.end());
    count += some.size();
  }
  CHECK(count == num_files * num_lines);
  CHECK(all.size() == count);
  CHECK(lines.produced() == num_files * num_lines);
}

TEST_CASE("Steps that wait for the queue hold no thread, and are served in order") {
  const auto files = std::make_shared<MemoryFileSystem>();
  files->write_file_atomically("/a", numbered_lines(0, 30));
  files->write_file_atomically("/b", numbered_lines(1, 20));
  Lines lines(files);
  std::vector<std::future<Ended>> steps;
  for (int i = 0; i < 50; ++i) steps.push_back(start_reading(lines));
  lines.enqueue("/a");  // a step of its own, on the only thread
  lines.enqueue("/b");
  Texts read, wanted;
  for (std::future<Ended>& step : steps) read.push_back(step.get().line);
  for (int i = 0; i < 50; ++i) wanted.push_back(str_cat("line ", i % 30, " of file ", i / 30));
  std::sort(read.begin(), read.end());
  std::sort(wanted.begin(), wanted.end());
  CHECK(read == wanted);
}

TEST_CASE("A queue that is closed ends all who wait for it, however many") {
  Lines lines(std::make_shared<MemoryFileSystem>());
  std::vector<std::future<Ended>> steps;
  for (int i = 0; i < 1000; ++i) steps.push_back(start_reading(lines));
  lines.session.run(lines.close);
  for (std::future<Ended>& step : steps) CHECK(step.get().status.code() == Code::out_of_range);
}

TEST_CASE("A step that waits for the queue ends by its deadline or stop, and takes nothing") {
  const auto files = std::make_shared<MemoryFileSystem>();
  files->write_file_atomically("/a", numbered_lines(0, 3));
  Lines lines(files);
  CHECK(code_of([&] { lines.read({.deadline = std::chrono::milliseconds(5)}); }) == Code::deadline_exceeded);
  std::stop_source first, second;
  std::future<Ended> waits_for_queue = start_reading(lines, {.stop = first.get_token()});
  std::future<Ended> waits_for_turn = start_reading(lines, {.stop = second.get_token()});
  std::future<Ended> last = start_reading(lines);
  second.request_stop();
  CHECK(waits_for_turn.get().status.code() == Code::cancelled);
  first.request_stop();
  CHECK(waits_for_queue.get().status.code() == Code::cancelled);
  lines.enqueue("/a");
  CHECK(last.get().line == "line 0 of file 0");
  CHECK(lines.read() == "line 1 of file 0");
  CHECK(lines.produced() == 2);
}

TEST_CASE("A step that ends while its file is read loses no record") {
  const auto files = std::make_shared<HeldReads>();
  files->files.write_file_atomically("/a", numbered_lines(0, 3));
  Lines lines(files);
  lines.enqueue("/a");
  std::stop_source stop;
  std::future<Ended> step = start_reading(lines, {.stop = stop.get_token()});
  files->is_held.wait_blocking();
  std::future<Ended> next = start_reading(lines);
  stop.request_stop();
  CHECK(lines.produced() == 0);  // a step on the only thread of the pool
  files->may_go.set();
  CHECK(step.get().status.code() == Code::cancelled);
  CHECK(next.get().line == "line 0 of file 0");
  CHECK(lines.read() == "line 1 of file 0");
  CHECK(lines.produced() == 2);
}

TEST_CASE("A step that ends while it reads many records reads no more of the file") {
  const auto files = std::make_shared<StoppingReads>();
  std::string content;
  while (content.size() < (std::size_t{1} << 21)) content += "a line\n";
  files->files.write_file_atomically("/a", content);
  Lines lines(files);
  const Output<std::string> all = std::get<1>(lines.reader.read_up_to(lines.queue, std::int64_t{1} << 40));
  lines.enqueue("/a");
  CHECK(code_of([&] { lines.session.run({.stop = files->stop.get_token()}, {}, all); }) == Code::cancelled);
  CHECK(files->num_reads <= 3);
  CHECK(lines.produced() == 0);
  CHECK(lines.read() == "a line");
}

TEST_CASE("A state that is saved while a file is read is the one before, and one that is set holds afterwards") {
  const auto files = std::make_shared<HeldReads>();
  files->files.write_file_atomically("/a", numbered_lines(0, 3));
  Lines lines(files);
  lines.enqueue("/a");
  std::future<Ended> step = start_reading(lines);
  files->is_held.wait_blocking();
  const std::string state = lines.session.run(lines.serialized).scalar();
  lines.session.run(lines.reset);
  files->may_go.set();
  CHECK(step.get().line == "line 0 of file 0");  // it was read before the reader was reset
  CHECK(lines.produced() == 0);
  const Operation restore = lines.reader.restore_state(state);
  lines.session.run(restore);
  CHECK(lines.read() == "line 0 of file 0");
  CHECK(lines.read() == "line 1 of file 0");
}

TEST_CASE("A state that is set while a step waits for the queue gives it a file") {
  const auto files = std::make_shared<MemoryFileSystem>();
  files->write_file_atomically("/a", numbered_lines(0, 3));
  Lines lines(files);
  lines.enqueue("/a");
  CHECK(lines.read() == "line 0 of file 0");
  const std::string state = lines.session.run(lines.serialized).scalar();
  lines.session.run(lines.reset);
  std::future<Ended> step = start_reading(lines);
  lines.session.run(lines.reset);  // goes on waiting
  lines.session.run(lines.reader.restore_state(state));
  CHECK(step.get().line == "line 1 of file 0");
  CHECK(lines.produced() == 2);
}

TEST_CASE("A reader that nobody will find any more ends those who wait") {
  Lines lines(std::make_shared<MemoryFileSystem>());
  std::future<Ended> first = start_reading(lines), second = start_reading(lines);
  CHECK(code_of([&] { lines.read({.deadline = std::chrono::milliseconds(5)}); }) == Code::deadline_exceeded);
  lines.state().abandon(Status::aborted("the container was reset"));
  CHECK(first.get().status.code() == Code::aborted);
  CHECK(second.get().status.code() == Code::aborted);
  CHECK(code_of([&] { lines.read(); }) == Code::aborted);
}

TEST_CASE(
    "Whatever ends early, and however often the state is saved, no record is read twice and none is passed over") {
  constexpr int num_files = 40, num_lines = 25;
  const auto files = std::make_shared<MemoryFileSystem>();
  for (int i = 0; i < num_files; ++i) {
    files->write_file_atomically(str_cat("/", i), numbered_lines(i, num_lines));
  }
  Lines lines(files, 3);
  std::vector<std::vector<std::string>> read(8);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < read.size(); ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      for (;;) {
        const RunOptions options{.deadline = t % 2 == 0 ? std::chrono::milliseconds(1000)
                                                        : std::chrono::milliseconds(random() % 2)};
        const Code ended = code_of([&] { read[t].push_back(lines.read(options)); });
        if (ended == Code::out_of_range) return;
        if (ended != Code::ok && ended != Code::deadline_exceeded) {
          read[t].push_back(str_cat("code ", static_cast<int>(ended)));
          return;
        }
        if (t == 0) static_cast<void>(lines.session.run(lines.serialized));
      }
    });
  }
  for (int i = 0; i < num_files; ++i) lines.enqueue(str_cat("/", i));
  lines.session.run(lines.close);
  for (std::thread& thread : threads) thread.join();
  std::vector<std::string> all;
  for (const auto& some : read) all.insert(all.end(), some.begin(), some.end());
  const std::set<std::string> different(all.begin(), all.end());
  CHECK(different.size() == all.size());
  // A step has read its record if its deadline passes after it was given the record.
  CHECK(all.size() <= num_files * num_lines);
  CHECK(lines.produced() == num_files * num_lines);
  for (const std::string& line : all) CHECK(line.starts_with("line "));
}
