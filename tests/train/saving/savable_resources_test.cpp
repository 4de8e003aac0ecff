#include <dflow/train/saving/savable_resources.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/dflow.hpp>
#include <dflow/kernels/state/device_files.hpp>
#include <dflow/runtime/cpu_device.hpp>
#include <dflow/state/accumulator_state.hpp>
#include <dflow/state/queue_state.hpp>
#include <dflow/state/staleness_clock_state.hpp>
#include <dflow/state/token_barrier_state.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

using namespace dflow;

namespace {

using SavedState = std::vector<AnyTensor>;

Session session_with_files(const Graph& graph, const std::shared_ptr<FileSystem>& files) {
  const auto devices = cpu_devices(1, {.pool = std::make_shared<InlinePool>()});
  for (const auto& device : devices) set_device_files(device->context(), files);
  return Session(graph, {.devices = devices});
}

/// Trains on the elements of an input queue, which is filled a few elements at a time.
struct QueueFed {
  QueueFed() : graph({.seed = 11}), queue(graph, {.capacity = 12, .shapes = {{2}, {}}, .name = "inputs"}) {
    x = placeholder<float>(graph, {dynamic, 2});
    label = placeholder<std::string>(graph, {dynamic});
    fill = queue.enqueue_many(x, label);
    const auto [batch, labels] = queue.dequeue_many(3);
    names = labels;
    loss = reduce_mean(square(matmul(batch, weight) - 0.5f));
    train = train::Momentum(0.1, 0.9).minimize(loss, {.global_step = step});
  }
  void put(Session& session, int first, int count) const {
    Tensor<float> rows({count, 2});
    Tensor<std::string> labels(Shape{count});
    for (int i = 0; i < count; ++i) {
      rows(i, 0) = static_cast<float>((first + i) % 7);
      rows(i, 1) = static_cast<float>((first + i) % 5) - 2.0f;
      labels(i) = "element " + std::to_string(first + i);
    }
    session.run({{x, rows}, {label, labels}}, fill);
  }
  /// Steps from number `begin` on: each takes three elements, and every second one puts six in.
  std::vector<std::string> run(Session& session, int begin, int count) const {
    std::vector<std::string> seen;
    for (int i = begin; i < begin + count; ++i) {
      if (i % 2 == 0) put(session, 6 * (i / 2) + 4, 6);
      const auto [value, labels] = session.run(loss, names, train);
      seen.push_back(std::to_string(value.scalar()));
      seen.insert(seen.end(), labels.begin(), labels.end());
    }
    return seen;
  }

  Graph graph;
  FifoQueue<float, std::string> queue;
  Variable<float> weight{graph, Tensor<float>({2, 1}, {0.1f, -0.2f}), {.name = "weight"}};
  Variable<std::int64_t> step{graph, 0, {.name = "global_step", .trainable = false}};
  Output<float> x, loss;
  Output<std::string> label, names;
  Operation fill, train;
};

QueuedElements queued(std::vector<AnyTensor> components) {
  QueuedElements element;
  element.components = std::move(components);
  element.is_single = true;
  return element;
}

std::optional<QueuedElements> taken_from(QueueState& queue) {
  std::optional<QueuedElements> taken;
  queue.dequeue_async(1, false, {}, [&](const Status& status, const std::vector<QueuedElements>& parts) {
    if (status.ok()) taken = parts.at(0);
  });
  return taken;
}

void give(AccumulatorState& to, AccumulatedGradient gradient) {
  to.apply(std::move(gradient), [](std::vector<AccumulatedGradient>&, std::int64_t&) {});
}

bool equal_states(const SavedState& a, const SavedState& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const AnyTensor& x, const AnyTensor& y) { return bitwise_equal(x, y); });
}

}  // namespace

TEST_CASE("A run with an input queue that was saved and restored elsewhere goes on as the undisturbed one") {
  const auto files = std::make_shared<MemoryFileSystem>();
  QueueFed first;
  train::Saver saver(first.graph, {.files = files});
  Session before = session_with_files(first.graph, files);
  before.run(initialize_variables(first.graph));
  first.put(before, 0, 4);
  QueueFed reference;
  Session whole = session_with_files(reference.graph, files);
  whole.run(initialize_variables(reference.graph));
  reference.put(whole, 0, 4);
  CHECK(first.run(before, 0, 5) == reference.run(whole, 0, 5));
  CHECK(before.run(first.queue.size()).scalar() == 7);
  saver.save(before, "/m/q", 5);

  QueueFed again;
  train::Saver restorer(again.graph, {.files = files});
  Session resumed = session_with_files(again.graph, files);
  restorer.restore(resumed, "/m/q-5");
  CHECK(resumed.run(again.queue.size()).scalar() == 7);
  CHECK(again.run(resumed, 5, 6) == reference.run(whole, 5, 6));
  CHECK(bitwise_equal(resumed.run(again.weight), whole.run(reference.weight)));

  // Without queues in the checkpoint, queues stay as they were.
  train::Saver without(again.graph, {.queues = false, .files = files});
  const auto size = resumed.run(again.queue.size()).scalar();
  without.restore(resumed, "/m/q-5");
  CHECK(resumed.run(again.queue.size()).scalar() == size);
}

TEST_CASE("A reader that was saved amid a file goes on there elsewhere, and its queue with what was left") {
  const auto files = std::make_shared<MemoryFileSystem>();
  files->write_file_atomically("/a", std::string_view("a1\na2\na3\n"));
  files->write_file_atomically("/b", std::string_view("b1\n"));
  struct Read {
    Read() : lines(graph, {.skip_header_lines = 1, .name = "lines"}) {
      fill = names.enqueue_many(constant(graph, Tensor<std::string>({3}, {"/a", "/a", "/b"})));
      close = names.close();
      value = std::get<1>(lines.read(names));
    }
    Graph graph;
    FifoQueue<std::string> names{graph, {.shapes = {{}}, .name = "names"}};
    TextLineReader lines;
    Operation fill, close;
    Output<std::string> value;
  };
  Read first;
  Session before = session_with_files(first.graph, files);
  before.run(first.fill);
  CHECK(before.run(first.value).scalar() == "a2");
  train::Saver(first.graph, {.files = files}).save(before, "/m/q", 1);

  Read again;
  Session resumed = session_with_files(again.graph, files);
  train::Saver(again.graph, {.files = files}).restore(resumed, "/m/q-1");
  resumed.run(again.close);
  for (const char* wanted : {"a3", "a2", "a3"}) CHECK(resumed.run(again.value).scalar() == wanted);
  CHECK(code_of([&] { resumed.run(again.value); }) == Code::out_of_range);
}

TEST_CASE("A queue that cannot hold what was saved is named, and keeps what it has") {
  const auto files = std::make_shared<MemoryFileSystem>();
  const auto restore_error = [&](const std::vector<PartialShape>& shapes, std::int64_t capacity) {
    Graph graph;
    Variable<float> w(graph, 1.0f, {.name = "w"});
    FifoQueue<float> queue(graph, {.capacity = capacity, .shapes = shapes, .name = "inputs"});
    train::Saver saver(graph, {.files = files});
    Session session = session_with_files(graph, files);
    session.run(queue.enqueue(constant(graph, Tensor<float>::full({1}, 9.0f))));
    const Status status = status_of([&] { saver.restore(session, "/m/q"); });
    CHECK(session.run(queue.size()).scalar() == 1);
    return status;
  };
  {
    Graph graph;
    Variable<float> w(graph, 1.0f, {.name = "w"});
    FifoQueue<float> queue(graph, {.name = "inputs"});
    const Operation put = queue.enqueue(constant(graph, Tensor<float>::full({3}, 1.0f)));
    train::Saver saver(graph, {.files = files});
    Session session = session_with_files(graph, files);
    session.run(initialize_variables(graph));
    session.run(put);
    session.run(put);
    saver.save(session, "/m/q");
  }
  const Status wrong_shape = restore_error({{1}}, 0), too_many = restore_error({}, 1);
  CHECK(wrong_shape.code() == Code::invalid_argument);
  CHECK_THAT(wrong_shape.to_string(), Catch::Contains("FIFOQueue 'inputs'"));
  CHECK(too_many.code() == Code::invalid_argument);
  CHECK_THAT(too_many.to_string(), Catch::Contains("FIFOQueue 'inputs'"));

  Graph graph;
  Variable<float> w(graph, 1.0f, {.name = "w"});
  const FifoQueue<std::int32_t> queue(graph, {.name = "inputs"});
  train::Saver saver(graph, {.files = files});
  Session session = session_with_files(graph, files);
  const Status wrong_type = status_of([&] { saver.restore(session, "/m/q"); });
  CHECK(wrong_type.code() == Code::invalid_argument);
  CHECK_THAT(wrong_type.to_string(), Catch::Contains("inputs"));
}

TEST_CASE("A queue's state holds elements of every type and of any shapes, and whether it is closed") {
  std::vector<DType> types;
  for (const int t : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 14, 17, 18, 19, 22, 23}) types.push_back(static_cast<DType>(t));
  QueueState queue("q", {types, {}, -1});
  for (const Shape& shape : {Shape{}, Shape{2, 3}, Shape{0}}) {
    std::vector<AnyTensor> components;
    for (const DType type : types) {
      AnyTensor& tensor = components.emplace_back(type, shape);
      if (type == DType::string) {
        for (std::string& text : tensor.span<std::string>()) text = "text " + shape.to_string();
      } else if (tensor.num_elements() > 0) {
        auto* const bytes = static_cast<unsigned char*>(tensor.raw_data());
        const std::size_t size = static_cast<std::size_t>(tensor.num_elements()) * size_of(type);
        for (std::size_t i = 0; i < size; ++i) bytes[i] = type == DType::boolean ? i % 2 : i * 37 + 1;
      }
    }
    queue.enqueue_async(queued(components), {}, [](const Status& status) { REQUIRE(status.ok()); });
  }
  queue.close(false);
  QueueState again("q", {types, {}, -1});
  again.restore_state(queue.saved_state());
  CHECK(again.size() == 3);
  CHECK(again.is_closed());
  CHECK(equal_states(again.saved_state(), queue.saved_state()));
  for (int i = 0; i < 3; ++i) {
    const auto a = taken_from(queue), b = taken_from(again);
    REQUIRE((a && b));
    CHECK(equal_states(a->components, b->components));
  }
  again.restore_state(queue.saved_state());
  CHECK(again.size() == 0);
}

TEST_CASE("What a call that waits has taken of a queue is saved, and those who wait are served by what is restored") {
  const QueueState::Kind kind{{DType::float32}, {}, 2};
  QueueState queue("q", kind);
  const auto put = [&](float value) { queue.enqueue_async(queued({Tensor<float>(value)}), {}, [](const Status&) {}); };
  std::vector<float> taken;
  queue.dequeue_async(3, false, {}, [&](const Status&, const std::vector<QueuedElements>& parts) {
    for (const QueuedElements& part : parts) taken.push_back(part.components[0].as<float>().scalar());
  });
  put(1);
  put(2);
  const SavedState two = queue.saved_state();
  CHECK(queue.size() == 0);
  CHECK(two[1].shape() == Shape{2});
  put(3);
  CHECK(taken == std::vector<float>{1, 2, 3});
  for (const float value : {4.0f, 5.0f, 6.0f}) put(value);  // the last one waits for room
  CHECK(queue.size() == 2);
  QueueState empty("q", kind);
  queue.restore_state(empty.saved_state());
  CHECK(queue.size() == 1);
  queue.restore_state(two);
  queue.dequeue_async(3, false, {}, [&](const Status&, const std::vector<QueuedElements>& parts) {
    taken.clear();
    for (const QueuedElements& part : parts) taken.push_back(part.components[0].as<float>().scalar());
  });
  CHECK(taken == std::vector<float>{1, 2, 3});
  queue.restore_state(two);  // the elements that the call had taken are gone with the old state
  put(7);
  CHECK(taken == std::vector<float>{1, 2, 7});
}

TEST_CASE("An accumulator's state holds its step and the gradients that wait") {
  AccumulatorState dense("a", DType::float32, PartialShape{2}, {});
  dense.set_global_step(4, false);
  give(dense, {3, 4, {}, Tensor<float>({2}, {1, 2})});
  give(dense, {1, 5, {}, Tensor<float>({2}, {3, 4})});
  give(dense, {-1, 4, {}, Tensor<float>({2}, {5, 6})});
  AccumulatorState again("a", DType::float32, PartialShape{2}, {});
  again.restore_state(dense.saved_state());
  CHECK(again.global_step() == 4);
  CHECK(again.num_accumulated() == 3);
  CHECK(equal_states(again.saved_state(), dense.saved_state()));
  std::vector<float> taken;
  again.take_async(3, {}, [&](const Status&, const TakenGradients& gradients) {
    for (const auto& each : gradients.gradients) taken.push_back(each.values.span<float>()[0]);
  });
  CHECK(taken == std::vector<float>{3, 1, 5});
  // A waiting caller is served.
  taken.clear();
  again.take_async(2, {},
                   [&](const Status&, const TakenGradients& gradients) { taken.resize(gradients.gradients.size()); });
  again.restore_state(dense.saved_state());
  CHECK(taken.size() == 3);

  for (const bool is_long : {false, true}) {
    const AccumulatorState::Kind rows{.is_sparse = true};
    AccumulatorState sparse("s", DType::float64, PartialShape{9, 2}, rows), other("s", DType::float64, {9, 2}, rows);
    AnyTensor indices = is_long ? AnyTensor(Tensor<std::int64_t>({2}, {8, 1})) : Tensor<std::int32_t>({2}, {8, 1});
    give(sparse, {0, 0, indices, Tensor<double>({2, 2}, {1, 2, 3, 4})});
    other.restore_state(sparse.saved_state());
    CHECK(equal_states(other.saved_state(), sparse.saved_state()));
    other.take_async(1, {}, [&](const Status&, const TakenGradients& gradients) {
      CHECK(bitwise_equal(gradients.gradients.at(0).indices, indices));
    });
    AccumulatorState smaller("s", DType::float64, PartialShape{8, 2}, rows);
    CHECK(code_of([&] { smaller.restore_state(sparse.saved_state()); }) == Code::invalid_argument);
  }
  // Sums of 16-bit gradients are float, and so are all values that are saved.
  AccumulatorState half("h", DType::float16, PartialShape{2}, {}), half_again("h", DType::float16, PartialShape{2}, {});
  give(half, {3, 0, {}, Tensor<Half>({2}, {Half(1.0f), Half(2.0f)})});
  give(half, {-1, 0, {}, Tensor<float>({2}, {4097, 1})});
  CHECK(half.saved_state()[2].dtype() == DType::float32);
  half_again.restore_state(half.saved_state());
  half_again.take_async(2, {}, [&](const Status&, const TakenGradients& gradients) {
    CHECK(bitwise_equal(gradients.gradients.at(0).values, Tensor<Half>({2}, {Half(1.0f), Half(2.0f)})));
    CHECK(bitwise_equal(gradients.gradients.at(1).values, Tensor<float>({2}, {4097, 1})));
  });
  AccumulatorState wider("a", DType::float32, PartialShape{3}, {}), of_double("a", DType::float64, PartialShape{2}, {});
  CHECK(code_of([&] { wider.restore_state(dense.saved_state()); }) == Code::invalid_argument);
  CHECK(code_of([&] { of_double.restore_state(dense.saved_state()); }) == Code::invalid_argument);
}

TEST_CASE("Who has left a barrier or a clock has left the one that is restored, if it has not come back") {
  TokenBarrierState barrier("b", 3, 3);
  barrier.leave_async(1, {}, [](const Status&) {});
  const SavedState one_left = barrier.saved_state();
  TokenBarrierState again("b", 3, 3);
  again.restore_state(one_left);
  CHECK(again.num_present() == 2);
  CHECK(equal_states(again.saved_state(), one_left));
  TokenBarrierState back("b", 3, 3);
  back.wait_async(1, -1, {}, [](const Status&, std::int64_t) {});
  back.restore_state(one_left);
  CHECK(back.num_present() == 3);
  for (const std::int64_t rank : {0, 2}) barrier.leave_async(rank, {}, [](const Status&) {});
  TokenBarrierState anew("b", 3, 3);
  anew.restore_state(barrier.saved_state());  // all have left: a restored barrier trains on
  CHECK(anew.num_present() == 3);
  TokenBarrierState larger("b", 4, 3);
  CHECK(code_of([&] { larger.restore_state(one_left); }) == Code::invalid_argument);

  StalenessClockState clock("c", 3, 0), restored("c", 3, 0), joined("c", 3, 0);
  clock.leave_async(2, {}, [](const Status&) {});
  restored.restore_state(clock.saved_state());
  joined.join(2);
  joined.restore_state(clock.saved_state());
  std::vector<std::int32_t> gone;
  restored.watch_async({}, {}, [&](const Status&, std::vector<std::int32_t> ranks) { gone = std::move(ranks); });
  CHECK(gone == std::vector<std::int32_t>{2});
  CHECK(joined.num_present() == 1);
  CHECK(code_of([&] { clock.restore_state({}); }) == Code::invalid_argument);
}

TEST_CASE("A state that was changed anywhere is refused or restored, and allocates no more than it has") {
  QueueState queue("q", {{DType::float32, DType::string}, {PartialShape{2}, PartialShape::unknown()}, 4});
  for (int i = 0; i < 2; ++i) {
    queue.enqueue_async(queued({Tensor<float>({2}, {1, 2}), Tensor<std::string>({1}, {"x"})}), {},
                        [](const Status&) {});
  }
  AccumulatorState sparse("s", DType::float32, PartialShape{9, 2}, {.is_sparse = true});
  give(sparse, {0, 0, Tensor<std::int32_t>({2}, {8, 1}), Tensor<float>({2, 2}, {1, 2, 3, 4})});
  std::mt19937_64 random(7);
  for (SavableResource* const resource :
       {static_cast<SavableResource*>(&queue), static_cast<SavableResource*>(&sparse)}) {
    const SavedState good = resource->saved_state();
    const std::span<const std::int64_t> numbers = good[0].span<std::int64_t>();
    for (std::size_t size = 0; size <= numbers.size(); ++size) {
      for (int change = 0; change < 60; ++change) {
        std::vector<std::int64_t> changed(numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(size));
        if (size > 0) {
          const std::int64_t values[] = {-1, 0, 1, 3, 9, std::int64_t{1} << 40, std::int64_t{1} << 62};
          changed[random() % size] = values[random() % 7];
        }
        SavedState state = good;
        state[0] = Tensor<std::int64_t>({static_cast<std::int64_t>(size)}, changed);
        const Code code = code_of([&] { resource->restore_state(state); });
        CHECK((code == Code::ok || code == Code::invalid_argument));
        static_cast<void>(resource->saved_state());
      }
    }
    resource->restore_state(good);
    CHECK(equal_states(resource->saved_state(), good));
  }
}

TEST_CASE("Nodes of the collection not_saved are left out, and those of training in step are found") {
  Graph graph;
  Variable<float> w(graph, 1.0f, {.name = "w"});
  train::SyncReplicas sync(train::GradientDescent(0.1), train::SyncReplicasOptions{});
  sync.minimize(square(w * 1.0f));
  const FifoQueue<float> kept(graph, {.name = "kept"}), left_out(graph, {.name = "left_out"});
  graph.add_to_collection("not_saved", left_out.handle().operation());
  std::vector<std::string> names;
  for (const auto& node : train::savable_nodes_of(*graph.store())) names.push_back(node.handle.operation().name());
  CHECK(names == std::vector<std::string>{"sync_replicas/barrier", "kept"});
}
