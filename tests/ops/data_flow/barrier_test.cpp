#include <dflow/ops/data_flow/barrier.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/base/files/memory_file_system.hpp>
#include <dflow/dflow.hpp>
#include <dflow/kernels/state/device_files.hpp>
#include <dflow/runtime/cpu_device.hpp>
#include <dflow/state/barrier_state.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <future>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using namespace dflow;

// We tried TensorFlow 2.21's Barrier: the index that a key gets, the order of takes, and the code of each error.

namespace {

using Words = std::vector<std::string>;

constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();

/// A barrier of a number and a word, and the operations that a test runs on it.
struct Pairs {
  explicit Pairs(int num_threads = 2) : session(graph, SessionOptions{.num_threads = num_threads}) {}
  explicit Pairs(const std::shared_ptr<Device>& device) : session(graph, SessionOptions{.devices = {device}}) {}

  void numbers_of(const Words& at, const std::vector<int>& values) {
    session.run({{keys, words(at)}, {numbers, Tensor<int>({static_cast<std::int64_t>(values.size())}, values)}},
                insert_numbers);
  }
  void words_of(const Words& at, const Words& values) {
    session.run({{keys, words(at)}, {texts, words(values)}}, insert_words);
  }
  /// "key:number:word@call ..."
  std::string take(int n, const BarrierTakeOptions& how = {}, const RunOptions& options = {}) {
    const auto& [indices, names, values, labels] = !how.allow_small_batch    ? whole
                                                   : how.wait_for_incomplete ? last_whole
                                                                             : small;
    const auto [i, k, a, b] = session.run(options, {{count, n}}, indices, names, values, labels);
    std::string text;
    for (std::int64_t row = 0; row < k.dim(0); ++row) {
      text += k(row) + ":" + std::to_string(a(row)) + ":" + b(row) + "@" + std::to_string(i(row) - least) + " ";
    }
    return text;
  }
  int ready() { return session.run(barrier.ready_size()).scalar(); }
  int incomplete() { return session.run(barrier.incomplete_size()).scalar(); }

  static Tensor<std::string> words(const Words& values) {
    return Tensor<std::string>({static_cast<std::int64_t>(values.size())}, values);
  }

  Graph graph;
  Barrier<int, std::string> barrier{graph, {.shapes = {{}, {}}, .name = "pairs"}};
  Output<std::string> keys = placeholder<std::string>(graph, {dynamic}),
                      texts = placeholder<std::string>(graph, {dynamic});
  Output<int> numbers = placeholder<int>(graph, {dynamic}), count = placeholder<int>(graph, Shape{});
  Operation insert_numbers = barrier.insert_many<0>(keys, numbers), insert_words = barrier.insert_many<1>(keys, texts);
  using Taken = std::tuple<Output<std::int64_t>, Output<std::string>, Output<int>, Output<std::string>>;
  Taken whole = barrier.take_many(count), small = barrier.take_many(count, {.allow_small_batch = true}),
        last_whole = barrier.take_many(count, {.allow_small_batch = true, .wait_for_incomplete = true});
  Session session;
};

}  // namespace

TEST_CASE("A barrier puts together what comes under one key, and gives what began first") {
  Pairs pairs;
  pairs.numbers_of({"a", "b", "c"}, {1, 2, 3});
  pairs.numbers_of({"d"}, {4});
  CHECK(pairs.incomplete() == 4);
  CHECK(pairs.ready() == 0);
  pairs.words_of({"d", "c", "a"}, {"four", "three", "one"});
  CHECK(pairs.incomplete() == 1);
  CHECK(pairs.ready() == 3);
  CHECK(pairs.take(2) == "c:3:three@0 a:1:one@0 ");  // of one call those that were complete first
  pairs.words_of({"b", "e"}, {"two", "five"});
  CHECK(pairs.take(2) == "b:2:two@0 d:4:four@1 ");
  pairs.numbers_of({"e", "a"}, {5, 10});  // a key that was taken is a new one
  CHECK(pairs.take(1) == "e:5:five@2 ");
  CHECK(pairs.incomplete() == 1);
  CHECK(pairs.take(0).empty());
}

TEST_CASE("Elements of different shapes cannot be taken together, and stay in the barrier") {
  Graph graph;
  Barrier<int> barrier(graph, {.shapes = {{dynamic}}, .name = "rows"});
  auto keys = placeholder<std::string>(graph, {dynamic});
  auto rows = placeholder<int>(graph, {dynamic, dynamic});
  const auto insert = barrier.insert_many<0>(keys, rows);
  auto n = placeholder<int>(graph, Shape{});
  const auto taken = barrier.take_many(n);
  Session session(graph);
  session.run({{keys, Pairs::words({"two"})}, {rows, Tensor<int>({1, 2}, {1, 2})}}, insert);
  session.run({{keys, Pairs::words({"three"})}, {rows, Tensor<int>({1, 3}, {3, 4, 5})}}, insert);
  const Status status = status_of([&] { session.run({{n, 2}}, std::get<2>(taken)); });
  CHECK(status.code() == Code::invalid_argument);
  CHECK(mentions(status, "elements 'two' and 'three' of shapes [2] and [3] of barrier 'rows'"));
  CHECK(session.run(barrier.ready_size()).scalar() == 2);
  CHECK(session.run({{n, 1}}, std::get<2>(taken)).dim(1) == 2);
  CHECK(session.run({{n, 1}}, std::get<2>(taken)).dim(1) == 3);
}

TEST_CASE("What a step has no memory for stays in its barrier, in order") {
  Graph graph;
  Barrier<std::int64_t> barrier(graph, {.name = "large"});
  auto keys = placeholder<std::string>(graph, {dynamic});
  auto rows = placeholder<std::int64_t>(graph, {dynamic, dynamic});
  const auto insert = barrier.insert_many<0>(keys, rows);
  auto n = placeholder<int>(graph, Shape{});
  const auto taken = barrier.take_many(n);
  Session session(graph, SessionOptions{.num_threads = 1, .memory_limit_bytes = 1 << 19});
  for (std::int64_t i = 0; i < 3; ++i) {
    const Words names{std::to_string(2 * i), std::to_string(2 * i + 1)};
    session.run({{keys, Pairs::words(names)}, {rows, Tensor<std::int64_t>::full({2, 1 << 14}, i)}}, insert);
  }
  CHECK(code_of([&] { session.run({{n, 6}}, std::get<2>(taken)); }) == Code::resource_exhausted);
  CHECK(session.run(barrier.ready_size()).scalar() == 6);
  for (int i = 0; i < 6; ++i) CHECK(session.run({{n, 1}}, std::get<1>(taken))(0) == std::to_string(i));
}

TEST_CASE("Shapes of what a barrier gives are known where its own are") {
  Graph graph;
  const Barrier<float, int> barrier(graph, {.shapes = {{2, dynamic}, {}}});
  const auto [indices, keys, x, y] = barrier.take_many(5);
  CHECK(indices.shape() == PartialShape({5}));
  CHECK(keys.shape() == PartialShape({5}));
  CHECK(x.shape() == PartialShape({5, 2, dynamic}));
  CHECK(y.shape() == PartialShape({5}));
  const auto [few, few_keys, few_x, few_y] = barrier.take_many(5, {.allow_small_batch = true});
  CHECK(few_x.shape() == PartialShape({dynamic, 2, dynamic}));
}

TEST_CASE("A component that an element has already is refused, and nothing of the call is kept") {
  Pairs pairs;
  pairs.numbers_of({"a", "b"}, {1, 2});
  CHECK(code_of([&] { pairs.numbers_of({"c", "a"}, {3, 9}); }) == Code::invalid_argument);
  CHECK(code_of([&] { pairs.numbers_of({"d", "d"}, {3, 9}); }) == Code::invalid_argument);
  CHECK(code_of([&] { pairs.words_of({"a", "a"}, {"x", "y"}); }) == Code::invalid_argument);
  CHECK(pairs.incomplete() == 2);
  pairs.words_of({"b", "a"}, {"two", "one"});
  CHECK(pairs.take(2) == "b:2:two@0 a:1:one@0 ");
}

TEST_CASE("Who takes waits for complete elements, in order, and has taken nothing when stopped") {
  Pairs pairs(1);
  const RunOptions soon{.deadline = std::chrono::milliseconds(10)};
  pairs.numbers_of({"a"}, {1});
  pairs.words_of({"a"}, {"one"});
  CHECK(code_of([&] { pairs.take(2, {}, soon); }) == Code::deadline_exceeded);
  CHECK(pairs.ready() == 1);
  BarrierState state("b", {.dtypes = {DType::int32}, .shapes = {}});
  std::string order;
  const auto take = [&](std::int64_t n, const CancellationToken& token = {}) {
    state.take_async({.count = n}, token, [&order, n](const Status& status, const auto& taken) {
      order += std::to_string(n) + (status.ok() ? "" : "!") + ":" + std::to_string(taken.size()) + " ";
    });
  };
  CancellationSource source;
  take(2, source.token());
  take(1);
  state.insert_many(0, Words{"x"}, Tensor<int>({1}, {1}));
  CHECK(order.empty());  // the second one waits for its turn
  source.cancel(Status::cancelled("enough"));
  CHECK(order == "1:1 2!:0 ");
}

TEST_CASE("A closed barrier lets no new key in, and gives what will be complete") {
  Pairs pairs;
  pairs.numbers_of({"a", "b"}, {1, 2});
  pairs.words_of({"a"}, {"one"});
  auto waiting = std::async(std::launch::async, [&] { return pairs.take(2); });
  pairs.session.run(pairs.barrier.close());
  CHECK(code_of([&] { pairs.numbers_of({"c"}, {3}); }) == Code::cancelled);
  CHECK(code_of([&] { pairs.words_of({"b", "c"}, {"two", "three"}); }) == Code::cancelled);
  CHECK(code_of([&] { pairs.take(3); }) == Code::out_of_range);
  pairs.words_of({"b"}, {"two"});
  CHECK(waiting.get() == "a:1:one@0 b:2:two@0 ");
  CHECK(code_of([&] { pairs.take(1); }) == Code::out_of_range);
  CHECK(code_of([&] { pairs.take(1, {.allow_small_batch = true}); }) == Code::out_of_range);
  CHECK(pairs.take(0).empty());
}

TEST_CASE("Of a closed barrier fewer may be taken, at once or when all is complete") {
  Pairs pairs;
  pairs.numbers_of({"a", "b"}, {1, 2});
  pairs.words_of({"a"}, {"one"});
  pairs.session.run(pairs.barrier.close());
  const RunOptions soon{.deadline = std::chrono::milliseconds(10)};
  const BarrierTakeOptions at_once{.allow_small_batch = true};
  const BarrierTakeOptions at_last{.allow_small_batch = true, .wait_for_incomplete = true};
  CHECK(code_of([&] { pairs.take(5, at_last, soon); }) == Code::deadline_exceeded);
  CHECK(pairs.take(5, at_once) == "a:1:one@0 ");
  pairs.words_of({"b"}, {"two"});
  CHECK(pairs.take(5, at_last) == "b:2:two@0 ");
}

TEST_CASE("Closing a barrier at once drops what is incomplete") {
  Pairs pairs;
  pairs.numbers_of({"a", "b"}, {1, 2});
  pairs.words_of({"a"}, {"one"});
  auto waiting = std::async(std::launch::async, [&] { return code_of([&] { pairs.take(2); }); });
  pairs.session.run(pairs.barrier.close(true));
  CHECK(waiting.get() == Code::out_of_range);
  CHECK(pairs.incomplete() == 0);
  CHECK(code_of([&] { pairs.words_of({"b"}, {"two"}); }) == Code::cancelled);
  CHECK(pairs.take(1) == "a:1:one@0 ");
}

TEST_CASE("What does not fit a barrier is refused when it is built, or when it comes") {
  Graph graph;
  const Barrier<float> barrier(graph, {.shapes = {{2}}});
  const auto keys = placeholder<std::string>(graph, {dynamic});
  const auto three = constant(graph, Tensor<float>({1, 3}, {1, 2, 3}));
  CHECK_THAT(error_of([&] { static_cast<void>(barrier.insert_many<0>(keys, three)); }),
             Catch::Contains("component 0 of the barrier has shape [2]") && Catch::Contains("barrier_test.cpp"));
  const auto two_keys = constant(graph, Tensor<std::string>({2}, {"a", "b"}));
  const auto row = constant(graph, Tensor<float>({1, 2}, {1, 2}));
  CHECK(code_of([&] { static_cast<void>(barrier.insert_many<0>(two_keys, row)); }) == Code::invalid_argument);
  CHECK(code_of([&] { static_cast<void>(barrier.take_many(-1)); }) == Code::invalid_argument);
  CHECK(code_of([&] { Barrier<float>(graph, {.shapes = {{2}, {3}}}); }) == Code::invalid_argument);
  const auto any = placeholder<float>(graph, PartialShape::unknown());
  const auto put = barrier.insert_many<0>(keys, any);
  const auto second = build<BarrierInsertMany>({barrier.handle(), keys, any}, {.component_index = 1});
  Session session(graph);
  const Tensor<std::string> key({1}, {"a"});
  CHECK(code_of([&] {
          session.run({{keys, key}, {any, Tensor<float>({1, 3}, {1, 2, 3})}}, put);
        }) == Code::invalid_argument);
  CHECK(code_of([&] {
          session.run({{keys, key}, {any, Tensor<float>({2, 2}, {1, 2, 3, 4})}}, put);
        }) == Code::invalid_argument);
  CHECK_THROWS_WITH(session.run({{keys, key}, {any, Tensor<float>({1, 2}, {1, 2})}}, Operation(second)),
                    Catch::Contains("has no component 1"));
  CHECK(session.run(barrier.incomplete_size()).scalar() == 0);
}

TEST_CASE("A barrier is one for all sessions on a device that name it, and goes on from a checkpoint") {
  const auto files = std::make_shared<MemoryFileSystem>();
  const auto device = std::make_shared<CpuDevice>(CpuDeviceOptions{});
  set_device_files(device->context(), files);
  Pairs first(device), second(device);
  first.numbers_of({"a", "b", "c"}, {1, 2, 3});
  second.words_of({"b", "a", "e"}, {"two", "one", "five"});
  CHECK(second.take(1) == "b:2:two@0 ");
  train::Saver saver(first.graph, {.files = files});
  saver.save(first.session, "/m/b");

  const auto other = std::make_shared<CpuDevice>(CpuDeviceOptions{});
  set_device_files(other->context(), files);
  Pairs restored(other);
  train::Saver(restored.graph, {.files = files}).restore(restored.session, "/m/b");
  CHECK(restored.ready() == 1);
  CHECK(restored.incomplete() == 2);
  restored.numbers_of({"e", "f"}, {5, 6});
  restored.words_of({"c", "f"}, {"three", "six"});
  CHECK(restored.take(4) == "a:1:one@0 c:3:three@0 e:5:five@1 f:6:six@2 ");
}

TEST_CASE("A state that is none of a barrier is refused, and the barrier keeps its own") {
  BarrierState state("b", {.dtypes = {DType::int32, DType::int32}, .shapes = {{}, {}}});
  state.insert_many(0, Words{"x", "y"}, Tensor<int>({2}, {1, 2}));
  state.insert_many(1, Words{"y"}, Tensor<int>({1}, {3}));
  const std::vector<AnyTensor> saved = state.saved_state();
  BarrierState other("c", {.dtypes = {DType::int32, DType::int32}, .shapes = {{}, {}}});
  other.restore_state(saved);
  CHECK(other.ready_size() == 1);
  CHECK(other.incomplete_size() == 1);
  const auto numbers = saved[0].span<std::int64_t>();
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    // After any change of a number, the state is refused or is a valid state.
    for (const std::int64_t change : {std::int64_t{-3}, std::int64_t{1}, std::int64_t{1} << 40}) {
      std::vector<AnyTensor> changed = saved;
      changed[0] = saved[0].deep_copy();
      std::int64_t& number = changed[0].span<std::int64_t>()[i];
      if (__builtin_add_overflow(number, change, &number)) continue;
      const Code code = code_of([&] { other.restore_state(changed); });
      if (code != Code::ok) CHECK(code == Code::invalid_argument);
      CHECK(other.ready_size() + other.incomplete_size() == 2);
    }
    std::vector<AnyTensor> cut = saved;
    cut[0] = saved[0].slice(0, static_cast<std::int64_t>(i));
    CHECK(code_of([&] { other.restore_state(cut); }) == Code::invalid_argument);
  }
}

TEST_CASE("Many insert and take at once: each element is put together once") {
  for (const int num_threads : {1, 3}) {
    Pairs pairs(num_threads);
    constexpr int givers = 4, each = 50;
    std::vector<Words> got(4);
    {
      std::vector<std::jthread> threads;
      for (int who = 0; who < givers; ++who) {
        threads.emplace_back([&, who] {
          for (int i = 0; i < each; ++i) pairs.numbers_of({std::to_string(who * each + i)}, {who * each + i});
        });
        threads.emplace_back([&, who] {
          for (int i = each - 1; i >= 0; --i) {
            const std::string key = std::to_string(who * each + i);
            pairs.words_of({key}, {"word " + key});
          }
        });
      }
      for (Words& mine : got) {
        threads.emplace_back([&pairs, &mine] {
          for (int i = 0; i < each / 5; ++i) {
            const auto& [indices, keys, values, words] = pairs.whole;
            const auto [k, a, b] = pairs.session.run({{pairs.count, 5}}, keys, values, words);
            for (std::int64_t row = 0; row < 5; ++row) {
              const std::string key = std::to_string(a(row));
              if (k(row) == key && b(row) == "word " + key) mine.push_back(key);
            }
          }
        });
      }
    }
    Words all;
    for (const Words& mine : got) all.insert(all.end(), mine.begin(), mine.end());
    std::sort(all.begin(), all.end());
    CHECK(all.size() == static_cast<std::size_t>(givers * each));
    CHECK(std::unique(all.begin(), all.end()) == all.end());
    CHECK(pairs.incomplete() + pairs.ready() == 0);
  }
}
