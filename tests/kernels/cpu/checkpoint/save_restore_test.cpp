#include <dflow/kernels/cpu/checkpoint/save_restore.hpp>

#include "catch.hpp"
#include "support/errors.hpp"
#include "support/held_files.hpp"
#include "support/temporary_folder.hpp"

#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/base/threads/pool_event.hpp>
#include <dflow/base/threads/thread_pool.hpp>
#include <dflow/io/checkpoint/own/checkpoint_reader.hpp>
#include <dflow/io/checkpoint/own/checkpoint_writer.hpp>
#include <dflow/kernels/state/device_files.hpp>
#include <dflow/ops/state/typed_variable.hpp>
#include <dflow/runtime/cpu_device.hpp>
#include <dflow/session/session.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

using namespace dflow;
using dflow::testing::HeldFiles;

namespace {

std::shared_ptr<Device> device_with(const std::shared_ptr<FileSystem>& files) {
  auto device = std::make_shared<CpuDevice>(CpuDeviceOptions{.pool = std::make_shared<InlinePool>()});
  set_device_files(device->context(), files);
  return device;
}

Output<std::string> texts(Graph& graph, const std::vector<std::string>& values) {
  return constant(graph, Tensor<std::string>({static_cast<std::int64_t>(values.size())}, values));
}

/// Names, element types and edges of the tensors to save.
struct Saved {
  std::vector<std::string> names;
  std::vector<std::string> slices;
  std::vector<AnyOutput> edges;

  void add(std::string name, const AnyOutput& edge, std::string slice = {}) {
    names.push_back(std::move(name));
    slices.push_back(std::move(slice));
    edges.push_back(edge);
  }
  Operation save(Graph& graph, const AnyOutput& prefix, std::int64_t shard = 0, std::int64_t num_shards = 1) const {
    SaveV2::Attrs attrs{.dtypes = {}, .shard = shard, .num_shards = num_shards};
    std::vector<AnyOutput> inputs{prefix, texts(graph, names), texts(graph, slices)};
    for (const AnyOutput& edge : edges) {
      attrs.dtypes.push_back(edge.dtype());
      inputs.push_back(edge);
    }
    return build<SaveV2>(inputs, attrs);
  }
};

Operation merge(Graph& graph, const AnyOutput& prefix, std::initializer_list<Operation> after, bool replace = false,
                std::string_view to = {}) {
  const auto guard = graph.control_dependencies(after);
  const AnyOutput destination = to.empty() ? prefix : AnyOutput(constant(graph, std::string(to)));
  return build<MergeV2Checkpoints>({prefix, destination}, {.replace = replace});
}

BuiltNode restore(Graph& graph, std::string_view prefix, const std::vector<std::string>& names,
                  std::vector<DType> dtypes, std::vector<PartialShape> shapes = {},
                  std::vector<std::string> slices = {}) {
  slices.resize(names.size());
  return build<RestoreV2>({constant(graph, std::string(prefix)), texts(graph, names), texts(graph, slices)},
                          {.dtypes = std::move(dtypes), .shapes = std::move(shapes)});
}

}  // namespace

TEST_CASE("tensors saved in two shards come back, of several types, whole and in part") {
  const auto files = std::make_shared<MemoryFileSystem>();
  Graph graph;
  const auto prefix = constant(graph, std::string("/models/m-1"));
  Saved first, second;
  const auto whole = constant(graph, Tensor<float>({2, 3}, {1, 2, 3, 4, 5, 6}));
  first.add("w", whole);
  first.add("words", texts(graph, {"one", "two"}));
  first.add("wide", constant(graph, Tensor<std::int64_t>({1, 2}, {1, 2})), "3 2 0,1:-");
  second.add("wide", constant(graph, Tensor<std::int64_t>({2, 2}, {3, 4, 5, 6})), "3 2 1,2:-");
  second.add("flag", constant(graph, true));
  const Operation saved =
      merge(graph, prefix, {first.save(graph, prefix, 0, 2), second.save(graph, prefix, 1, 2)}, false);
  Session session(graph, {.devices = {device_with(files)}});
  session.run(saved);

  const BuiltNode read = restore(graph, "/models/m-1", {"flag", "wide", "words", "w", "wide"},
                                 {DType::boolean, DType::int64, DType::string, DType::float32, DType::int64}, {},
                                 {"", "", "", "", "3 2 1,2:1,1"});
  const auto [flag, wide, words, w, part] =
      session.run(read.output(0), read.output(1), read.output(2), read.output(3), read.output(4));
  CHECK(flag.span<bool>()[0]);
  CHECK(bitwise_equal(wide, Tensor<std::int64_t>({3, 2}, {1, 2, 3, 4, 5, 6})));
  CHECK(bitwise_equal(words, Tensor<std::string>({2}, {"one", "two"})));
  CHECK(bitwise_equal(w, Tensor<float>({2, 3}, {1, 2, 3, 4, 5, 6})));
  CHECK(bitwise_equal(part, Tensor<std::int64_t>({2, 1}, {4, 6})));

  CHECK(code_of([&] { session.run(saved); }) == Code::already_exists);
}

TEST_CASE("what a save or a restore cannot do is named, and the session goes on") {
  const auto files = std::make_shared<MemoryFileSystem>();
  Graph graph;
  const Variable<float> w(graph, Tensor<float>({2}, {1, 2}), {.name = "w"});
  const auto prefix = constant(graph, std::string("/m"));
  Saved saved;
  saved.add("w", w);
  const Operation save = merge(graph, prefix, {saved.save(graph, prefix)});
  Session session(graph, {.devices = {device_with(files)}});
  const Status without_value = status_of([&] { return session.run(save), 0; });
  CHECK(without_value.code() == Code::failed_precondition);
  CHECK(mentions(without_value, "'w'"));
  session.run(initialize_variables(graph));

  const auto run = [&](const BuiltNode& node) { return status_of([&] { return session.run(node.output(0)), 0; }); };
  const Status no_checkpoint = run(restore(graph, "/m", {"w"}, {DType::float32}));
  CHECK(no_checkpoint.code() == Code::not_found);
  CHECK(mentions(no_checkpoint, "/m.index"));
  session.run(save);
  const Status no_tensor = run(restore(graph, "/m", {"v"}, {DType::float32}));
  CHECK(no_tensor.code() == Code::not_found);
  CHECK(mentions(no_tensor, "'v'"));
  const Status other_type = run(restore(graph, "/m", {"w"}, {DType::int32}));
  CHECK(other_type.code() == Code::invalid_argument);
  CHECK(mentions(other_type, "'w' is float[2]"));
  const Status other_shape = run(restore(graph, "/m", {"w"}, {DType::float32}, {PartialShape{3}}));
  CHECK(other_shape.code() == Code::invalid_argument);
  CHECK(mentions(other_shape, "wanted float[3]"));
  for (const std::string slice : {"2", "2 0,3", "2 -1,1", "2 2 -", "2 0,1:-", "x 0,1", "3 0,1", "2 0;1", " -"}) {
    INFO(slice);
    CHECK(run(restore(graph, "/m", {"w"}, {DType::float32}, {}, {slice})).code() == Code::invalid_argument);
  }
  CHECK(run(restore(graph, "/m", {"w"}, {DType::float32}, {PartialShape{1}}, {"2 0,2"})).code() ==
        Code::invalid_argument);
  const std::string data = files->read_file(checkpoint_data_path("/m", 0, 1));
  std::string damaged = data;
  damaged[0] = static_cast<char>(damaged[0] ^ 1);
  files->write_file_atomically(checkpoint_data_path("/m", 0, 1), damaged);
  const Status broken = run(restore(graph, "/m", {"w"}, {DType::float32}));
  CHECK(broken.code() == Code::data_loss);
  CHECK(mentions(broken, "'w'"));
  files->write_file_atomically(checkpoint_data_path("/m", 0, 1), data);
  CHECK(run(restore(graph, "/m", {"w"}, {DType::float32}, {PartialShape{2}})).ok());
}

TEST_CASE("nodes that save and restore are checked when they are built") {
  Graph graph;
  const auto prefix = constant(graph, std::string("/m"));
  Saved saved;
  saved.add("w", constant(graph, 1.0f));
  CHECK(code_of([&] { saved.save(graph, prefix, 1, 1); }) == Code::invalid_argument);
  CHECK(code_of([&] { saved.save(graph, texts(graph, {"/m"})); }) == Code::invalid_argument);
  saved.names.emplace_back("v");
  CHECK(code_of([&] { saved.save(graph, prefix); }) == Code::invalid_argument);
  CHECK(code_of([&] { restore(graph, "/m", {"w"}, {DType::float32, DType::int32}); }) == Code::invalid_argument);
  CHECK(code_of([&] {
          restore(graph, "/m", {"w"}, {DType::float32}, {PartialShape{1}, PartialShape{2}});
        }) == Code::invalid_argument);
  CHECK(restore(graph, "/m", {"w"}, {DType::float32}, {PartialShape{dynamic, 3}}).output(0).shape() ==
        PartialShape{dynamic, 3});
  CHECK(restore(graph, "/m", {"w"}, {DType::int32}).output(0).dtype() == DType::int32);
}

TEST_CASE("a full disk or a loss of power at any change of a save that replaces leaves the old or the new checkpoint") {
  Graph graph;
  const Variable<float> w(graph, Tensor<float>::zeros({4}), {.name = "w"});
  const auto value = placeholder<float>(graph, {4});
  const Operation assign = w.assign(value);
  const auto prefix = placeholder<std::string>(graph, {});
  Saved saved;
  saved.add("w", w);
  const Operation save = merge(graph, prefix, {saved.save(graph, prefix)}, true, "/d/m");
  const auto loaded = [](FileSystem& files) {
    const CheckpointReader reader(files, "/d/m");
    reader.verify();
    return reader.read("w").span<float>()[0];
  };
  for (std::uint64_t at = 1;; ++at) {
    const auto files = std::make_shared<MemoryFileSystem>();
    Session session(graph, {.devices = {device_with(files)}});
    session.run({{value, Tensor<float>::full({4}, 1)}}, assign);
    session.run({{prefix, "/d/m.save-1"}}, save);
    session.run({{value, Tensor<float>::full({4}, 2)}}, assign);
    const std::uint64_t before = files->changes();
    files->fail_change(at, Status::resource_exhausted("the disk is full"), true);
    const Code code = code_of([&] { session.run({{prefix, "/d/m.save-2"}}, save); });
    const bool is_past_end = files->changes() - before < at;
    files->fail_change(0, Status());
    CAPTURE(at);
    CHECK((code == Code::ok || code == Code::resource_exhausted));
    const float now = loaded(*files);
    CHECK((now == 2 || (now == 1 && code != Code::ok)));
    CHECK(session.run(w)(0) == 2);
    files->crash();
    const float after_crash = loaded(*files);
    CHECK((after_crash == 2 || (after_crash == 1 && code != Code::ok)));
    session.run({{prefix, "/d/m.save-3"}}, save);
    CHECK(loaded(*files) == 2);
    if (is_past_end) break;
  }
}

TEST_CASE("shards that an interrupted save left behind never merge with those of a later one") {
  const auto files = std::make_shared<MemoryFileSystem>();
  Graph graph;
  const Variable<float> a(graph, 1.0f, {.name = "a"}), b(graph, 1.0f, {.name = "b"});
  const auto prefix = placeholder<std::string>(graph, {});
  Saved of_a, of_b;
  of_a.add("a", a);
  of_b.add("b", b);
  const Operation save_a = of_a.save(graph, prefix, 0, 2), save_b = of_b.save(graph, prefix, 1, 2);
  const Operation merged = merge(graph, prefix, {}, true, "/m");
  const Operation bump_a = a.assign(2.0f), bump_b = b.assign(2.0f);
  Session session(graph, {.devices = {device_with(files)}});
  session.run(initialize_variables(graph));
  session.run({{prefix, "/m.save-1"}}, save_b);  // the other one was lost
  session.run(bump_a, bump_b);
  session.run({{prefix, "/m.save-2"}}, save_a);
  CHECK(code_of([&] { session.run({{prefix, "/m.save-2"}}, merged); }) == Code::not_found);
  CHECK(!files->exists("/m.index"));
  session.run({{prefix, "/m.save-2"}}, save_b);
  session.run({{prefix, "/m.save-2"}}, merged);
  const CheckpointReader reader(*files, "/m");
  CHECK(reader.read("a").span<float>()[0] == 2);
  CHECK(reader.read("b").span<float>()[0] == 2);
}

TEST_CASE("training goes on while a save waits for its disk, which holds the values that it was started with") {
  const auto files = std::make_shared<HeldFiles>();
  Graph graph;
  const Variable<float> w(graph, Tensor<float>::zeros({1000}), {.name = "w"});
  const Operation bump = w.assign_add(constant(graph, Tensor<float>::full({1000}, 1)));
  const auto prefix = constant(graph, std::string("/m"));
  Saved saved;
  saved.add("w", w);
  const Operation save = merge(graph, prefix, {saved.save(graph, prefix)});
  Session session(graph, {.devices = {device_with(files)}});
  session.run(initialize_variables(graph));
  session.run(bump);
  PoolEvent is_saved;
  Status how;
  session.run_async({}, {}, save, [&](Status status) {
    how = std::move(status);
    is_saved.set();
  });
  files->is_held.wait_blocking();
  for (int i = 0; i < 5; ++i) session.run(bump);
  CHECK(session.run(w)(999) == 6);
  files->may_go.set();
  is_saved.wait_blocking();
  CHECK(how.ok());
  const AnyTensor kept = CheckpointReader(files->files, "/m").read("w");
  CHECK(bitwise_equal(kept, Tensor<float>::full({1000}, 1)));
}

TEST_CASE("a save that is stopped ends its step and leaves nothing, and the session may go while it runs") {
  const auto files = std::make_shared<HeldFiles>();
  Graph graph;
  Saved saved;
  saved.add("w", constant(graph, 1.0f));
  saved.add("v", constant(graph, 2.0f));
  const auto prefix = constant(graph, std::string("/m"));
  const Operation save = merge(graph, prefix, {saved.save(graph, prefix)});
  auto session = std::make_unique<Session>(graph, SessionOptions{.devices = {device_with(files)}});
  std::stop_source stop;
  PoolEvent is_over;
  Status how;
  session->run_async({.stop = stop.get_token()}, {}, save, [&](Status status) {
    how = std::move(status);
    is_over.set();
  });
  files->is_held.wait_blocking();
  session.reset();
  stop.request_stop();
  files->may_go.set();
  is_over.wait_blocking();
  CHECK(how.code() == Code::cancelled);
  CHECK(files->files.list_directory("/").empty());
}

TEST_CASE("steps that update variables beside saves save each variable whole") {
  const auto files = std::make_shared<MemoryFileSystem>();
  Graph graph;
  const Variable<std::int64_t> w(graph, Tensor<std::int64_t>::zeros({4096}), {.name = "w"});
  const Operation bump = w.assign_add(constant(graph, Tensor<std::int64_t>::full({4096}, 1)));
  const auto prefix = placeholder<std::string>(graph, {});
  Saved saved;
  saved.add("w", w);
  const Operation save = merge(graph, prefix, {saved.save(graph, prefix)});
  auto device = std::make_shared<CpuDevice>(CpuDeviceOptions{.pool = std::make_shared<WorkStealingPool>(2)});
  set_device_files(device->context(), files);
  Session session(graph, {.devices = {device}});
  session.run(initialize_variables(graph));
  std::atomic<bool> is_over{false};
  std::thread trainer([&] {
    while (!is_over.load()) session.run(bump);
  });
  std::int64_t last = 0;
  for (int i = 0; i < 30; ++i) {
    const std::string path = str_cat("/m-", i);
    session.run({{prefix, path}}, save);
    const AnyTensor kept = CheckpointReader(*files, path).read("w");
    const std::span<const std::int64_t> values = std::as_const(kept).span<std::int64_t>();
    CHECK(values.front() >= last);
    last = values.front();
    bool is_whole = true;
    for (const std::int64_t value : values) is_whole &= value == last;
    CHECK(is_whole);
  }
  is_over.store(true);
  trainer.join();
}

TEST_CASE("a device without files of its own uses the machine's") {
  Graph graph;
  auto device = device_with(nullptr);
  const testing::TemporaryFolder folder;
  PosixFileSystem().write_file_atomically(folder.path() + "/a", "here");
  CHECK(device_files(device->context())->read_file(folder.path() + "/a") == "here");
  const auto files = std::make_shared<MemoryFileSystem>();
  set_device_files(device->context(), files);
  set_device_files(device->context(), files);
  CHECK(device_files(device->context()) == files);
  device->context().resources->clear();
  CHECK(device_files(device->context()) != files);
}
