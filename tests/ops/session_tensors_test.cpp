#include <dflow/ops/state/session_tensors.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/dflow.hpp>
#include <dflow/state/session_tensors_state.hpp>

#include <complex>
#include <cstdint>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

using namespace dflow;

namespace {

/// Keeps tensors of type T, and uses them in later runs.
template <class T>
struct KeptOf {
  explicit KeptOf(const SessionTensorsOptions& options = {}) : kept(graph, options) {}

  Graph graph;
  SessionTensors<T> kept;
  Output<T> value = placeholder<T>(graph, PartialShape::unknown());
  Output<std::int64_t> keep = kept.keep(value);
  Output<std::int64_t> number = placeholder<std::int64_t>(graph, {});
  Output<T> back = kept.get(number);
  Operation drop = kept.remove(number);
};

template <class T>
void check_kept_and_dropped(const Tensor<T>& first, const Tensor<T>& second) {
  const KeptOf<T> of;
  Session session(of.graph);
  const Tensor<std::int64_t> a = session.run({{of.value, first}}, of.keep);
  const Tensor<std::int64_t> b = session.run({{of.value, second}}, of.keep);
  CHECK(a.scalar() != b.scalar());
  for (int again = 0; again < 3; ++again) {
    CHECK(session.run({{of.number, a}}, of.back).to_string() == first.to_string());
    CHECK(session.run({{of.number, b}}, of.back).to_string() == second.to_string());
  }
  session.run({{of.number, a}}, of.drop);
  CHECK(code_of([&] { return session.run({{of.number, a}}, of.back); }) == Code::not_found);
  CHECK(code_of([&] { return session.run({{of.number, a}}, of.drop), 0; }) == Code::not_found);
  CHECK(session.run({{of.number, b}}, of.back).to_string() == second.to_string());
  CHECK(session.run({{of.value, first}}, of.keep).scalar() > b.scalar());
}

}  // namespace

TEST_CASE("a tensor of any type that a run keeps is there for later runs until it is dropped") {
  check_kept_and_dropped(Tensor<float>({2, 2}, {1, 2, 3, 4}), Tensor<float>({0, 3}));
  check_kept_and_dropped(Tensor<std::int64_t>(7), Tensor<std::int64_t>({1}, {8}));
  check_kept_and_dropped(Tensor<bool>({2}, {true, false}), Tensor<bool>(true));
  check_kept_and_dropped(Tensor<std::string>({2}, {"a", std::string(100, 'b')}), Tensor<std::string>(std::string()));
  check_kept_and_dropped(Tensor<std::complex<float>>({1}, {{1, 2}}),
                         Tensor<std::complex<float>>({2}, {{3, 4}, {5, 6}}));
}

TEST_CASE("a kept tensor changes neither with the tensor that was fed nor with one that was fetched") {
  const KeptOf<float> of;
  Session session(of.graph);
  Tensor<float> fed({3}, {1, 2, 3});
  const Tensor<std::int64_t> number = session.run({{of.value, fed}}, of.keep);
  fed.data()[0] = 9;
  Tensor<float> fetched = session.run({{of.number, number}}, of.back);
  CHECK(fetched.to_string() == Tensor<float>({3}, {1, 2, 3}).to_string());
  fetched.data()[1] = 9;
  CHECK(session.run({{of.number, number}}, of.back).to_string() == Tensor<float>({3}, {1, 2, 3}).to_string());
}

TEST_CASE("a kept variable's value stays as it was when the variable changes") {
  Graph graph;
  const Variable<float> total(graph, Tensor<float>({2}, {1, 2}));
  const SessionTensors<float> kept(graph);
  const Output<std::int64_t> keep = kept.keep(total);
  const auto number = placeholder<std::int64_t>(graph, {});
  const Output<float> back = kept.get(number, {2});
  const Operation add = total.assign_add(Tensor<float>({2}, {10, 10}));
  CHECK(back.shape() == PartialShape{2});
  CHECK(keep.node().colocated_with == kept.handle().node_id());
  Session session(graph);
  session.run(initialize_variables(graph));
  const Tensor<std::int64_t> before = session.run(keep);
  for (int i = 0; i < 3; ++i) session.run(add);
  CHECK(session.run({{number, before}}, back).to_string() == Tensor<float>({2}, {1, 2}).to_string());
  CHECK(session.run(total).to_string() == Tensor<float>({2}, {31, 32}).to_string());
}

TEST_CASE("kept tensors take no more bytes than their limit, with the content of strings") {
  const KeptOf<std::string> of({.memory_limit = 200});
  Session session(of.graph);
  const Tensor<std::string> text(std::string(100, 'x'));  // with the string itself more than 100 bytes
  const Tensor<std::int64_t> first = session.run({{of.value, text}}, of.keep);
  const Status full = status_of([&] { return session.run({{of.value, text}}, of.keep); });
  CHECK(full.code() == Code::resource_exhausted);
  CHECK(full.op() == "GetSessionHandle");
  session.run({{of.number, first}}, of.drop);
  CHECK_NOTHROW(session.run({{of.value, text}}, of.keep));
}

TEST_CASE("kept tensors of one shared name are the same, and those of another type are refused") {
  Graph graph;
  const SessionTensors<float> one(graph, {.shared_name = "both"}), same(graph, {.shared_name = "both"});
  const SessionTensors<int> wrong(graph, {.shared_name = "both"});
  const Output<std::int64_t> keep = one.keep(constant(graph, 3.0f));
  const auto number = placeholder<std::int64_t>(graph, {});
  const Output<float> back = same.get(number);
  const Output<int> never = wrong.get(number);
  Session session(graph);
  const Tensor<std::int64_t> kept = session.run(keep);
  CHECK(session.run({{number, kept}}, back).scalar() == 3);
  const Status status = status_of([&] { return session.run({{number, kept}}, never); });
  CHECK(status.code() == Code::invalid_argument);
  CHECK(contains(std::string(status.message()), "SessionTensors(float)"));
}

TEST_CASE("a tensor that does not fit what get was built with, and a number of no tensor, are refused") {
  Graph graph;
  const SessionTensors<float> kept(graph);
  const Output<std::int64_t> keep = kept.keep(placeholder_with_default(constant(graph, Tensor<float>({3}, {1, 2, 3}))));
  const auto number = placeholder<std::int64_t>(graph, {});
  const Output<float> as_two = kept.get(number, {2});
  Session session(graph);
  const Tensor<std::int64_t> of_three = session.run(keep);
  const Status status = status_of([&] { return session.run({{number, of_three}}, as_two); });
  CHECK(status.code() == Code::invalid_argument);
  CHECK(contains(std::string(status.message()), "has shape [3], not [2]"));
  CHECK(code_of([&] { return session.run({{number, Tensor<std::int64_t>(-1)}}, as_two); }) == Code::not_found);
  CHECK_THROWS_AS(kept.get(placeholder<std::int64_t>(graph, {2})), Error);
  CHECK_THROWS_AS(SessionTensors<float>(graph, {.memory_limit = -1}), Error);
  CHECK_THROWS_AS(SessionTensors<float>().get(number), Error);
}

TEST_CASE("many threads keep, read and drop tensors at once") {
  const KeptOf<std::int64_t> of;
  Session session(of.graph);
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::int64_t i = 0; i < 100; ++i) {
        const Tensor<std::int64_t> mine({2}, {static_cast<std::int64_t>(t), i});
        const Tensor<std::int64_t> number = session.run({{of.value, mine}}, of.keep);
        if (session.run({{of.number, number}}, of.back).to_string() != mine.to_string()) ++wrong[t];
        session.run({{of.number, number}}, of.drop);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<int>(4));
}

TEST_CASE("a temporary variable lives in its step alone") {
  Graph graph;
  const auto x = placeholder<float>(graph, {2});
  const TemporaryVariable<float> sum(graph, {2});
  Operation last = sum.assign(x);
  for (int i = 0; i < 3; ++i) {
    const auto after = graph.control_dependencies({last});
    last = i == 1 ? sum.assign_sub(Tensor<float>({2}, {1, 1})) : sum.assign_add(x);
  }
  const Output<float> total = [&] {
    const auto after = graph.control_dependencies({last});
    return sum.destroy();
  }();
  CHECK(total.shape() == PartialShape{2});
  Session session(graph);
  for (const float first : {1.0f, 5.0f, 7.0f}) {
    const Tensor<float> found = session.run({{x, Tensor<float>({2}, {first, 2})}}, total);
    CHECK(found.to_string() == Tensor<float>({2}, {3 * first - 1, 5}).to_string());
  }
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const float mine = static_cast<float>(t);
      for (int i = 0; i < 50; ++i) {
        const Tensor<float> found = session.run({{x, Tensor<float>({2}, {mine, 0})}}, total);
        if (found.data()[0] != 3 * mine - 1) ++wrong[t];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<int>(4));
}

TEST_CASE("a temporary variable of a loop is another one in each iteration") {
  Graph graph;
  const auto n = placeholder<std::int32_t>(graph, {});
  const auto [count, total] = while_loop([&](auto i, auto) { return i < n; },
                                         [&](auto i, auto so_far) {
                                           const TemporaryVariable<float> square(graph, Shape{});
                                           const Operation begin = square.assign(cast<float>(i));
                                           const Operation added = [&] {
                                             const auto after = graph.control_dependencies({begin});
                                             return square.assign_add(so_far);
                                           }();
                                           const auto after = graph.control_dependencies({added});
                                           return std::tuple(i + 1, square.destroy());
                                         },
                                         std::tuple{zeros_like(n), constant(graph, 0.0f)});
  Session session(graph);
  CHECK(session.run({{n, Tensor<std::int32_t>(10)}}, total).scalar() == 45);
}

TEST_CASE("a temporary variable that was not assigned, or gets another shape, is an error") {
  Graph graph;
  const TemporaryVariable<float> sum(graph, {2});
  const Output<float> empty = sum.destroy();
  const Operation other = sum.assign(placeholder_with_default(constant(graph, Tensor<float>({3}, {1, 2, 3}))));
  Session session(graph);
  CHECK(code_of([&] { return session.run(empty); }) == Code::failed_precondition);
  CHECK(code_of([&] { return session.run(other), 0; }) == Code::invalid_argument);
  CHECK_THROWS_AS(sum.assign(Tensor<float>({3}, {1, 2, 3})), Error);
}
