#include <dflow/ops/io/files.hpp>

#include "catch.hpp"
#include "support/errors.hpp"
#include "support/temporary_folder.hpp"

#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/dflow.hpp>
#include <dflow/kernels/state/device_files.hpp>
#include <dflow/runtime/cpu_device.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

using namespace dflow;

namespace {

/// Files in memory that steps work on.
struct FileSteps {
  FileSteps() { set_device_files(device->context(), files); }

  std::string read(const std::string& path) {
    return session.run({{name, Tensor<std::string>(path)}}, contents).scalar();
  }
  void write(const std::string& path, const std::string& content) {
    session.run({{name, Tensor<std::string>(path)}, {text, Tensor<std::string>(content)}}, written);
  }
  std::vector<std::string> match(const Tensor<std::string>& pattern) {
    const Tensor<std::string> paths = session.run({{patterns, pattern}}, found);
    CHECK(paths.rank() == 1);
    return {paths.begin(), paths.end()};
  }

  std::shared_ptr<MemoryFileSystem> files = std::make_shared<MemoryFileSystem>();
  std::shared_ptr<Device> device = std::make_shared<CpuDevice>(
      CpuDeviceOptions{.pool = std::make_shared<WorkStealingPool>(1, ThreadPoolOptions{.name = "files"})});
  Graph graph;
  Output<std::string> name = placeholder<std::string>(graph, Shape{}), text = placeholder<std::string>(graph, Shape{});
  Output<std::string> patterns = placeholder<std::string>(graph, PartialShape::unknown());
  Output<std::string> contents = read_file(name), found = matching_files(patterns);
  Operation written = write_file(name, text);
  Session session{graph, SessionOptions{.devices = {device}}};
};

}  // namespace

TEST_CASE("A file that a step writes is what a step reads") {
  FileSteps steps;
  const std::string binary("\0\xff\r\n", 4);
  steps.write("/new/directory/file", binary);
  CHECK(steps.read("/new/directory/file") == binary);
  CHECK(steps.files->read_file("/new/directory/file") == binary);
  steps.write("/new/directory/file", "");
  CHECK(steps.read("/new/directory/file").empty());
}

TEST_CASE("What cannot be read or written is named") {
  FileSteps steps;
  steps.files->create_directories("/d");
  CHECK_THAT(error_of([&] { steps.read("/none"); }, Code::not_found), Catch::Contains("/none"));
  CHECK_THAT(error_of([&] { steps.read("/d"); }, Code::failed_precondition), Catch::Contains("/d"));
  CHECK_THAT(error_of([&] { steps.write("/d", "x"); }, Code::failed_precondition), Catch::Contains("/d"));
  steps.files->fail_change(1, Status::resource_exhausted("the disk is full"));
  CHECK(code_of([&] { steps.write("/e", "x"); }) == Code::resource_exhausted);
}

TEST_CASE("A step does not wait for who writes into a pipe, and reads files without a size") {
  const dflow::testing::TemporaryFolder folder;
  const std::string pipe = folder.file("pipe");
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  Graph graph;
  const auto path = placeholder<std::string>(graph, Shape{});
  const auto content = read_file(path);
  FifoQueue<std::string> names(graph, {.capacity = 4, .shapes = {{}}});
  WholeFileReader reader(graph);
  const auto put = names.enqueue(path);
  const auto value = std::get<1>(reader.read(names));
  Session session(graph);
  CHECK(code_of([&] {
          return session.run({{path, Tensor<std::string>(pipe)}}, content);
        }) == Code::failed_precondition);
  CHECK(session.run({{path, Tensor<std::string>("/proc/self/status")}}, content).scalar().find("Pid:") !=
        std::string::npos);
  for (const std::string& work : {pipe, std::string("/proc/self/status")}) {
    session.run({{path, Tensor<std::string>(work)}}, put);
    const Status status = status_of([&] { return session.run(value); });
    CHECK(status.code() == (work == pipe ? Code::failed_precondition : Code::ok));
  }
}

TEST_CASE("Files are found by one pattern or several, sorted") {
  FileSteps steps;
  for (const char* path : {"/b1", "/a2", "/a1", "/sub/a1"}) steps.write(path, "");
  using Paths = std::vector<std::string>;
  CHECK(steps.match(std::string("/a*")) == Paths{"/a1", "/a2"});
  CHECK(steps.match(std::string("/*/a?")) == Paths{"/sub/a1"});
  CHECK(steps.match(std::string("/none*")).empty());
  CHECK(steps.match(Tensor<std::string>({2}, {"/b*", "/?1"})) == Paths{"/a1", "/b1", "/b1"});
  CHECK(steps.match(Tensor<std::string>(Shape({0}))).empty());
  CHECK(code_of([&] { steps.match(Tensor<std::string>(Shape({1, 1}))); }) == Code::invalid_argument);
}

TEST_CASE("Names of files are scalars, and patterns at most a vector") {
  Graph graph;
  const auto names = constant(graph, Tensor<std::string>({1}, {"/a"}));
  CHECK(code_of([&] { static_cast<void>(read_file(names)); }) == Code::invalid_argument);
  CHECK(code_of([&] { static_cast<void>(write_file(names, constant(graph, std::string("x")))); }) ==
        Code::invalid_argument);
  CHECK(code_of([&] {
          static_cast<void>(matching_files(constant(graph, Tensor<std::string>({1, 1}, {"/a"}))));
        }) == Code::invalid_argument);
  CHECK(matching_files(names).shape() == PartialShape({dynamic}));
  CHECK(read_file(constant(graph, std::string("/a"))).shape() == PartialShape(Shape{}));
}

namespace {

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

}  // namespace

TEST_CASE("a constant of a file has its first elements, and is read once") {
  FileSteps steps;
  steps.files->write_file_atomically("weights", bytes_of(std::vector<float>{1, 2, 3, 4, 5, 6, 7}));
  const Output<float> weights = immutable_const<float>(steps.graph, {2, 3}, "weights");
  const Output<float> doubled = weights * 2.0f;
  CHECK(weights.shape() == PartialShape({2, 3}));
  CHECK(steps.session.run(weights).to_string() == Tensor<float>({2, 3}, {1, 2, 3, 4, 5, 6}).to_string());
  Tensor<float> mine = steps.session.run(weights);
  mine.data()[0] = 9;
  CHECK(steps.session.run(doubled).to_string() == Tensor<float>({2, 3}, {2, 4, 6, 8, 10, 12}).to_string());
  steps.files->remove("weights");
  CHECK(steps.session.run(weights).to_string() == Tensor<float>({2, 3}, {1, 2, 3, 4, 5, 6}).to_string());

  steps.files->write_file_atomically("small", bytes_of(std::vector<std::int16_t>{-3, 7}));
  CHECK(steps.session.run(immutable_const<std::int16_t>(steps.graph, {2}, "small")).to_string() ==
        Tensor<std::int16_t>({2}, {-3, 7}).to_string());
  CHECK(steps.session.run(immutable_const<std::int16_t>(steps.graph, {}, "small")).scalar() == -3);
  CHECK(steps.session.run(immutable_const<double>(steps.graph, {0, 5}, "small")).shape() == Shape{0, 5});
}

TEST_CASE("a constant of a file that is missing, too short, or of no bools is an error that names the file") {
  FileSteps steps;
  steps.files->write_file_atomically("short", "1234567");
  steps.files->write_file_atomically("bools", std::string("\0\1\2", 3));
  const auto status_of_run = [&](const auto& edge) { return status_of([&] { return steps.session.run(edge); }); };
  const Status missing = status_of_run(immutable_const<float>(steps.graph, {1}, "missing"));
  CHECK(missing.code() == Code::not_found);
  CHECK(contains(missing.to_string(), "missing"));
  const Status too_short = status_of_run(immutable_const<float>(steps.graph, {2}, "short"));
  CHECK(too_short.code() == Code::data_loss);
  CHECK(contains(too_short.to_string(), "'short' has 7 bytes, too few for float[2]"));
  const Status huge = status_of_run(immutable_const<double>(steps.graph, {1 << 30, 1 << 30}, "short"));
  CHECK(huge.code() == Code::data_loss);
  const Status no_bool = status_of_run(immutable_const<bool>(steps.graph, {3}, "bools"));
  CHECK(no_bool.code() == Code::data_loss);
  CHECK(contains(no_bool.to_string(), "'bools' has 2 at byte 2, which is no truth value"));
  CHECK(steps.session.run(immutable_const<bool>(steps.graph, {2}, "bools")).to_string() ==
        Tensor<bool>({2}, {false, true}).to_string());
}
