#include <dflow/kernels/cpu/file_kernel.hpp>

#include "catch.hpp"
#include "support/held_files.hpp"

#include <dflow/dflow.hpp>
#include <dflow/kernels/state/device_files.hpp>
#include <dflow/runtime/cpu_device.hpp>

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

using namespace dflow;

namespace {

/// Files in memory that note which threads read them.
class NotedReads final : public testing::ChangedFiles {
 public:
  std::unique_ptr<RandomAccessFile> open_for_reading(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    threads.insert(std::this_thread::get_id());
    return files.open_for_reading(path);
  }

  std::set<std::thread::id> threads;

 private:
  std::mutex mutex_;
};

}  // namespace

TEST_CASE("all kernels of a device that read files share its threads for files") {
  const auto files = std::make_shared<NotedReads>();
  files->write_file_atomically("a", "text");
  const auto device = std::make_shared<CpuDevice>(CpuDeviceOptions{.files = files});
  Graph graph;
  std::vector<Output<std::string>> contents;
  for (int i = 0; i < 2 * detail::FileKernel::max_threads; ++i) {
    contents.push_back(read_file(constant(graph, std::string("a"))));
  }
  Session session(graph, {.devices = {device}, .passes = PassOptions::none()});
  for (const auto& each : contents) CHECK(session.run(each).scalar() == "text");
  CHECK(files->threads.size() <= static_cast<std::size_t>(detail::FileKernel::max_threads));
  CHECK_FALSE(files->threads.contains(std::this_thread::get_id()));
}

TEST_CASE("a table is filled from its file in a thread for files") {
  const auto files = std::make_shared<NotedReads>();
  files->write_file_atomically("words", "one\ntwo\n");
  const auto device = std::make_shared<CpuDevice>(CpuDeviceOptions{.files = files});
  Graph graph;
  const HashTable<std::string, std::int64_t> table(graph);
  const Operation fill = table.initialize_from_text_file("words");
  Session session(graph, {.devices = {device}});
  session.run(fill);
  CHECK_FALSE(files->threads.empty());
  CHECK_FALSE(files->threads.contains(std::this_thread::get_id()));
}
