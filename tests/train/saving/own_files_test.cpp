#include <dflow/base/files/file_systems.hpp>
#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/base/status.hpp>
#include <dflow/base/threads/thread_pool.hpp>
#include <dflow/data/data.hpp>
#include <dflow/data/files.hpp>
#include <dflow/graph/graph_def.hpp>
#include <dflow/graph/graph_def_archive.hpp>
#include <dflow/io/checkpoint/saved_tensors.hpp>
#include <dflow/io/checkpoint/tensorflow/tensor_bundle.hpp>
#include <dflow/io/npy.hpp>
#include <dflow/io/npz.hpp>
#include <dflow/io/records/record_file.hpp>
#include <dflow/io/safetensors.hpp>
#include <dflow/net/client/remote_master.hpp>
#include <dflow/net/server.hpp>
#include <dflow/ops/data_flow/queue.hpp>
#include <dflow/ops/io/files.hpp>
#include <dflow/ops/io/reader.hpp>
#include <dflow/ops/state/variable.hpp>
#include <dflow/runtime/cpu_device.hpp>
#include <dflow/session/session.hpp>
#include <dflow/session/target.hpp>
#include <dflow/trace/events/event_file.hpp>
#include <dflow/train/replicas/supervisor.hpp>
#include <dflow/train/saving/saver.hpp>
#include <dflow/train/saving/weights.hpp>

#include "catch.hpp"
#include "support/errors.hpp"
#include "support/held_files.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace df = dflow;

namespace {

/// Files in memory that count every call, also of open files, and let one of them fail.
class FailingFiles final : public df::testing::ChangedFiles {
 public:
  /// The `number`-th call from now on fails, counted from 1; 0: none.
  void fail(int number) {
    calls_ = 0;
    failing_ = number;
  }
  bool has_failed() const noexcept { return failing_ != 0 && calls_ >= failing_; }
  int calls() const noexcept { return calls_; }

  using FileSystem::write_file_atomically;
  std::string read_file(const std::string& path, std::uint64_t max_bytes) override {
    return next(), files.read_file(path, max_bytes);
  }
  std::unique_ptr<df::RandomAccessFile> open_for_reading(const std::string& path) override {
    return next(), std::make_unique<Reader>(*this, files.open_for_reading(path));
  }
  std::unique_ptr<df::WritableFile> open_for_appending(const std::string& path) override {
    return next(), std::make_unique<Writer>(*this, files.open_for_appending(path));
  }
  void write_file_atomically(const std::string& path, std::span<const std::byte> content) override {
    next(), files.write_file_atomically(path, content);
  }
  bool exists(const std::string& path) override { return next(), files.exists(path); }
  bool is_directory(const std::string& path) override { return next(), files.is_directory(path); }
  std::uint64_t file_size(const std::string& path) override { return next(), files.file_size(path); }
  std::vector<std::string> list_directory(const std::string& path) override {
    return next(), files.list_directory(path);
  }
  void create_directories(const std::string& path) override { next(), files.create_directories(path); }
  void remove(const std::string& path) override { next(), files.remove(path); }
  void rename(const std::string& from, const std::string& to) override { next(), files.rename(from, to); }
  void sync_directory(const std::string& path) override { next(), files.sync_directory(path); }
  std::unique_ptr<df::WritableFile> create_file(const std::string& path) override {
    return next(), std::make_unique<Writer>(*this, files.create_file(path));
  }

 private:
  class Reader final : public df::RandomAccessFile {
   public:
    Reader(FailingFiles& owner, std::unique_ptr<df::RandomAccessFile> file) : owner_(owner), file_(std::move(file)) {}
    std::uint64_t size() const override { return file_->size(); }
    std::size_t read_at(std::uint64_t offset, std::span<std::byte> into) const override {
      return owner_.next(), file_->read_at(offset, into);
    }

   private:
    FailingFiles& owner_;
    std::unique_ptr<df::RandomAccessFile> file_;
  };
  class Writer final : public df::WritableFile {
   public:
    Writer(FailingFiles& owner, std::unique_ptr<df::WritableFile> file) : owner_(owner), file_(std::move(file)) {}
    using WritableFile::append;
    void append(std::span<const std::byte> bytes) override { owner_.next(), file_->append(bytes); }
    void sync() override { owner_.next(), file_->sync(); }

   private:
    FailingFiles& owner_;
    std::unique_ptr<df::WritableFile> file_;
  };

  void next() {
    if (++calls_ == failing_) throw df::Error(df::Status::unavailable("this call fails"));
  }

  int calls_ = 0;
  int failing_ = 0;
};

/// File systems with one of the program's own, "xyz".
struct OwnFiles {
  std::shared_ptr<df::MemoryFileSystem> xyz = std::make_shared<df::MemoryFileSystem>();
  std::shared_ptr<df::FileSystems> all = std::make_shared<df::FileSystems>(df::FileSystems::Schemes{{"xyz", xyz}});
};

struct OwnCounter {
  df::Graph graph;
  df::Variable<std::int64_t> step{graph, 0, {.name = "global_step", .trainable = false}};
  df::Operation bump = step.assign_add(1);
  df::Operation initialize = df::initialize_variables(graph);
};

/// All files of a file system, with their directories.
std::vector<std::string> all_files(df::FileSystem& files, const std::string& directory) {
  std::vector<std::string> all;
  for (const std::string& name : files.list_directory(directory)) {
    const std::string path = df::join_path(directory, name);
    if (!files.is_directory(path)) {
      all.push_back(path);
      continue;
    }
    const std::vector<std::string> more = all_files(files, path);
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

}  // namespace

TEST_CASE("ops read and write the files of their session") {
  const OwnFiles files;
  df::Graph graph;
  const auto text = df::placeholder<std::string>(graph, {});
  const auto path = df::placeholder<std::string>(graph, {});
  const auto content = df::read_file(path);
  const auto found = df::matching_files(path);
  const auto write = df::write_file(path, text);
  const df::FifoQueue<std::string> queue(graph, {.capacity = 9, .shapes = {{}}});
  const auto enqueue = queue.enqueue(path);
  const df::TextLineReader reader(graph);
  const auto [key, line] = reader.read(queue);
  df::Session session(graph, {.files = files.all});
  const df::Tensor<std::string> at("xyz://logs/a.txt");
  session.run({{path, at}, {text, df::Tensor<std::string>("one\ntwo\n")}}, write);
  CHECK(files.xyz->read_file("logs/a.txt") == "one\ntwo\n");
  CHECK(session.run({{path, at}}, content).scalar() == "one\ntwo\n");
  CHECK(session.run({{path, df::Tensor<std::string>("xyz://*/*.txt")}}, found)(0) == "xyz://logs/a.txt");
  session.run({{path, at}}, enqueue);
  CHECK(session.run(line).scalar() == "one");
  const df::Status unknown = status_of([&] { session.run({{path, df::Tensor<std::string>("abc://a")}}, content); });
  CHECK(unknown.code() == df::Code::unimplemented);
  CHECK(mentions(unknown, "known schemes: file, mem, xyz"));
}

TEST_CASE("a session without files refuses an unknown scheme") {
  df::Graph graph;
  const auto write = df::write_file(df::constant(graph, std::string("xyz://a")), df::constant(graph, std::string("b")));
  df::Session session(graph);
  const df::Status status = status_of([&] { session.run(write); });
  CHECK(status.code() == df::Code::unimplemented);
  CHECK(mentions(status, "known schemes: file"));
}

TEST_CASE("files are not for a session whose devices belong to others") {
  const OwnFiles files;
  const df::Graph graph;
  const auto devices = df::cpu_devices(1);
  CHECK(code_of([&] {
          df::Session(graph, {.devices = devices, .files = files.all});
          return 0;
        }) == df::Code::invalid_argument);
}

TEST_CASE("devices of one's own have files of one's own") {
  const OwnFiles files;
  df::Graph graph;
  const auto write = df::write_file(df::constant(graph, std::string("xyz://a")), df::constant(graph, std::string("b")));
  df::Session session(graph, {.devices = df::cpu_devices(1, {.files = files.all})});
  session.run(write);
  CHECK(files.xyz->read_file("a") == "b");
}

TEST_CASE("a saver keeps checkpoints in the files that it shares with its session") {
  const OwnFiles files;
  const std::string folder = GENERATE("xyz://models", "xyz://", "mem://models");
  CAPTURE(folder);
  const std::string prefix = df::join_path(folder, "m");
  OwnCounter model;
  df::train::Saver saver(model.graph, {.max_to_keep = 2, .files = files.all});
  {
    df::Session session(model.graph, {.files = files.all});
    session.run(model.initialize);
    for (int i = 1; i <= 4; ++i) {
      session.run(model.bump);
      CHECK(saver.save(session, prefix, i) == prefix + "-" + std::to_string(i));
    }
  }
  CHECK(files.all->list_directory(folder).size() == 5);  // two of two files, and the state
  CHECK(df::train::latest_checkpoint(*files.all, folder) == prefix + "-4");
  CHECK(saver.latest(folder) == prefix + "-4");
  df::Session fresh(model.graph, {.files = files.all});
  saver.restore(fresh, prefix + "-3");
  CHECK(fresh.run(model.step).scalar() == 3);
}

TEST_CASE("a supervisor saves to the files of its sessions") {
  const OwnFiles files;
  for (int start = 0; start < 2; ++start) {
    OwnCounter model;
    df::train::Supervisor supervisor(model.graph, {.session = {.files = files.all},
                                                   .checkpoint_dir = "xyz://d",
                                                   .global_step = model.step,
                                                   .save_every_steps = 1});
    std::int64_t step = 0;
    supervisor.run([&](df::Session& session) {
      session.run(model.bump);
      step = session.run(model.step).scalar();
    });
    CHECK(step == start + 1);
  }
  CHECK(df::train::latest_checkpoint(*files.all, "xyz://d") == "xyz://d/model-2");
}

TEST_CASE("a supervisor saves to the files of its cluster's tasks") {
  const OwnFiles files;
  df::net::Server server(df::net::ClusterSpec::local(), {.files = files.all});
  CHECK(server.target()->files() == files.all);
  OwnCounter model;
  df::train::Supervisor supervisor(model.graph, {.session = {.target = server.target()},
                                                 .checkpoint_dir = "xyz://d",
                                                 .global_step = model.step,
                                                 .save_every_steps = 1});
  supervisor.run([&](df::Session& session) { session.run(model.bump); });
  CHECK(df::train::latest_checkpoint(*files.all, "xyz://d") == "xyz://d/model-1");
}

TEST_CASE("a target that is no task of the cluster has the files that it was given, for savers") {
  const OwnFiles files;
  df::net::ClusterSpec spec;
  spec.add_task("ps", 0, "unix://@nobody-listens-here");
  CHECK(df::net::remote_master(spec, "/job:ps/task:0", {}, {.files = files.all})->files() == files.all);
  CHECK(df::net::connect(spec, {.files = files.all})->files() == files.all);
  CHECK(df::net::remote_master(spec, "/job:ps/task:0")->files() == nullptr);
}

TEST_CASE("a server gives its files to devices of the caller's") {
  const OwnFiles files;
  const df::net::ClusterSpec spec = df::net::ClusterSpec::local();
  df::net::ServerOptions options;
  options.devices = df::cpu_devices(1, {.name = spec.task_name() + "/device:CPU:0", .incarnation = 7});
  options.incarnation = 7;
  options.files = files.all;
  df::net::Server server(spec, options);
  df::Graph graph;
  const auto write = df::write_file(df::constant(graph, std::string("xyz://a")), df::constant(graph, std::string("b")));
  df::Session session(graph, {.target = server.target()});
  session.run(write);
  CHECK(files.xyz->read_file("a") == "b");
}

TEST_CASE("datasets and event writers keep their files alive") {
  std::optional<df::data::Dataset<std::string>> records, lines;
  std::unique_ptr<df::EventWriter> events;
  const std::weak_ptr<df::FileSystem> seen = [&] {
    const OwnFiles files;
    df::RecordWriter writer(*files.all, "xyz://r");
    writer.write("one");
    writer.close();
    files.all->write_file_atomically("xyz://t", "two\n");
    records = df::data::from_records(files.all, {"xyz://r"});
    lines = df::data::from_text_lines(files.all, {"xyz://t"});
    events = std::make_unique<df::EventWriter>(files.all, "xyz://logs");
    return std::weak_ptr<df::FileSystem>(files.all);
  }();
  CHECK(records->iterate().next() == "one");
  CHECK(lines->iterate().next() == "two");
  events->add_scalar("loss", 1, 1);
  events->flush();
  CHECK(df::event_files(*seen.lock(), "xyz://logs") == std::vector<std::string>{events->path()});
  records.reset();
  lines.reset();
  CHECK_FALSE(seen.expired());
  events.reset();
  CHECK(seen.expired());
  CHECK(code_of([] { return df::data::from_records(std::shared_ptr<df::FileSystem>(), {"a"}); }) ==
        df::Code::invalid_argument);
  CHECK(code_of([] { return df::EventWriter(std::shared_ptr<df::FileSystem>(), "a").path(); }) ==
        df::Code::invalid_argument);
}

TEST_CASE("weights come from files of one's own") {
  const OwnFiles files;
  const df::Tensor<float> weights({2}, {1, 2});
  const std::string path = GENERATE("xyz://w.npz", "xyz://w.safetensors", "xyz://w");
  CAPTURE(path);
  const std::vector<df::NamedTensor> tensors{{"w", weights}};
  if (path.ends_with(".npz")) {
    df::write_npz(*files.all, path, tensors);
  } else if (path.ends_with(".safetensors")) {
    df::write_safetensors(*files.all, path, tensors);
  } else {
    df::write_tensor_bundle(*files.all, path, tensors);
  }
  df::Graph graph;
  df::Variable<float> w(graph, df::Tensor<float>(df::Shape{2}), {.name = "w"});
  df::Session session(graph, {.files = files.all});
  df::train::load_weights(session, *df::open_saved_tensors(*files.all, path), {{w.any_variable(), "w"}});
  CHECK(session.run(w)(1) == 2);
  df::train::Saver saver(graph, {{"w", w.any_variable()}}, {.files = files.all});
  saver.restore(session, path);
  CHECK(session.run(w)(0) == 1);
}

TEST_CASE("a file system that fails at each call in turn leaves nothing behind") {
  const df::Tensor<float> one({2}, {1, 2}), two({2}, {3, 4});
  using Write = std::function<void(df::FileSystem&, const df::Tensor<float>&)>;
  const auto named = [](const df::Tensor<float>& value) { return std::vector<df::NamedTensor>{{"w", value}}; };
  const std::vector<std::pair<std::string, Write>> writers{
      {"npy", [](auto& files, const auto& value) { df::write_npy(files, "xyz://d/m.npy", value); }},
      {"npz", [&](auto& files, const auto& value) { df::write_npz(files, "xyz://d/m.npz", named(value)); }},
      {"safetensors",
       [&](auto& files, const auto& value) { df::write_safetensors(files, "xyz://d/m.safetensors", named(value)); }},
      {"bundle", [&](auto& files, const auto& value) { df::write_tensor_bundle(files, "xyz://d/m", named(value)); }},
  };
  for (const auto& [name, write] : writers) {
    CAPTURE(name);
    bool has_failed = true;
    for (int call = 1; has_failed; ++call) {
      CAPTURE(call);
      const auto own = std::make_shared<FailingFiles>();
      df::FileSystems files(df::FileSystems::Schemes{{"xyz", own}});
      files.create_directories("xyz://d");
      write(files, one);
      const std::vector<std::string> before = all_files(own->files, "/d");
      own->fail(call);
      const df::Status status = status_of([&] {
        write(files, two);
        return 0;
      });
      has_failed = own->has_failed();
      own->fail(0);
      if (!has_failed) CHECK(status.ok());
      for (const std::string& left : all_files(own->files, "/d"))
        CHECK(std::ranges::find(before, left) != before.end());
      write(files, two);
      CHECK(all_files(own->files, "/d") == before);
    }
  }
}

TEST_CASE("a saver whose files fail at each call in turn leaves nothing behind") {
  bool has_failed = true;
  for (int call = 1; has_failed; ++call) {
    CAPTURE(call);
    const auto own = std::make_shared<FailingFiles>();
    const auto files = std::make_shared<df::FileSystems>(df::FileSystems::Schemes{{"xyz", own}});
    OwnCounter model;
    df::train::Saver saver(model.graph, {.max_to_keep = 1, .files = files});
    df::Session session(model.graph, {.num_threads = 1, .files = files});
    session.run(model.initialize);
    saver.save(session, "xyz://d/m", 1);
    own->fail(call);
    const df::Status status = status_of([&] { return saver.save(session, "xyz://d/m", 2); });
    has_failed = own->has_failed();
    own->fail(0);
    if (!has_failed) CHECK(status.ok());
    // There is always a checkpoint, and the next save removes all that the failed one may have left.
    CHECK(df::train::latest_checkpoint(*files, "xyz://d").has_value());
    session.run(model.bump);
    saver.save(session, "xyz://d/m", 3);
    CHECK(own->files.list_directory("/d").size() == 3);
    df::Session fresh(model.graph, {.files = files});
    saver.restore(fresh, "xyz://d/m-3");
    CHECK(fresh.run(model.step).scalar() == 1);
  }
}
