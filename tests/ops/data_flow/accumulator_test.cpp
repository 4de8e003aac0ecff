#include <dflow/ops/data_flow/accumulator.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/dflow.hpp>
#include <dflow/ops/checkpoint/resource_state.hpp>
#include <dflow/state/accumulator_state.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

using namespace dflow;

namespace {

TypeArgs types_of(std::initializer_list<DType> dtypes) {
  TypeArgs types;
  for (const DType dtype : dtypes) types.push_back(dtype);
  return types;
}

/// An accumulator of gradients [2], and the operations that a test runs on it.
template <class T = float>
struct Gathered {
  explicit Gathered(const std::string& reduction = "MEAN") {
    handle = build<ConditionalAccumulator>(*graph.store(), {}, {.shape = {2}, .reduction_type = reduction},
                                           {.name = "a"}, type_args<T>());
    for (std::int64_t rank = -1; rank < 4; ++rank) {
      give_of.push_back(Operation(build<AccumulatorApplyGradient>({handle, step, gradient}, {.rank = rank})));
    }
    taken = Output<T>(AnyOutput(build<AccumulatorTakeGradient>({handle, required}, {}, {}, type_args<T>())));
    of_ranks = Output<T>(AnyOutput(build<AccumulatorTakeRanks>({handle, ranks, step}, {}, {}, type_args<T>())));
    set_step = Operation(build<AccumulatorSetGlobalStep>({handle, step}));
    reset = Operation(build<AccumulatorSetGlobalStep>({handle, step}, {.drops_waiting = true}));
    num = Output<std::int32_t>(AnyOutput(build<AccumulatorNumAccumulated>({handle})));
  }

  void give(double value, std::int64_t local_step = 0, int rank = -1) {
    session.run({{step, local_step}, {gradient, Tensor<T>::full({2}, static_cast<T>(value))}},
                give_of[static_cast<std::size_t>(rank + 1)]);
  }
  double take(std::int32_t n, const RunOptions& options = {}) {
    return static_cast<double>(session.run(options, {{required, n}}, taken)(1));
  }
  double take_ranks(const Tensor<std::int32_t>& which, std::int64_t at) {
    return static_cast<double>(session.run({{ranks, which}, {step, at}}, of_ranks)(0));
  }
  int size() { return session.run(num).scalar(); }

  Graph graph;
  AnyOutput handle;
  Output<T> gradient = placeholder<T>(graph, PartialShape::unknown());
  Output<std::int64_t> step = placeholder<std::int64_t>(graph, Shape{});
  Output<std::int32_t> required = placeholder<std::int32_t>(graph, Shape{}),
                       ranks = placeholder<std::int32_t>(graph, {dynamic});
  std::vector<Operation> give_of;
  Output<T> taken, of_ranks;
  Operation set_step, reset;
  Output<std::int32_t> num;
  Session session{graph, SessionOptions{.num_threads = 2}};
};

}  // namespace

TEMPLATE_TEST_CASE("What is taken is the mean of all gradients that were given", "", float, double, Half, BFloat16) {
  Gathered<TestType> gathered;
  gathered.give(1);
  gathered.give(2);
  gathered.give(6);
  CHECK(gathered.size() == 3);
  CHECK(gathered.take(2) == 3);
  CHECK(gathered.size() == 0);
  gathered.give(5, 1);
  CHECK(gathered.take(1) == 5);
  Gathered<TestType> summed("SUM");
  summed.give(1);
  summed.give(2);
  summed.give(4, 0, 2);
  CHECK(summed.take(3) == 7);
}

TEST_CASE("What was computed for a step before the accumulator's is dropped") {
  Gathered gathered;
  gathered.give(1);
  CHECK(gathered.take(1) == 1);
  gathered.give(100, 0);
  CHECK(gathered.size() == 0);
  gathered.give(3, 1);
  gathered.give(5, 7);
  CHECK(gathered.take(2) == 4);
  gathered.session.run({{gathered.step, std::int64_t{10}}}, gathered.set_step);
  gathered.give(100, 9);
  gathered.give(100, 2);
  CHECK(gathered.size() == 0);
  gathered.give(8, 10);
  gathered.session.run({{gathered.step, std::int64_t{10}}}, gathered.set_step);
  CHECK(gathered.size() == 1);
  gathered.session.run({{gathered.step, std::int64_t{10}}}, gathered.reset);
  CHECK(gathered.size() == 0);
  gathered.give(9, 10, 1);
  gathered.give(11, 10);
  CHECK(gathered.take(2) == 10);
}

TEST_CASE("Who takes waits until there are enough, in the order in which they came") {
  AccumulatorState state("a", DType::float32, PartialShape::unknown(), {});
  std::vector<std::vector<float>> taken(3);
  for (std::vector<float>& mine : taken) {
    state.take_async(2, {}, [&mine](const Status& status, const TakenGradients& gradients) {
      REQUIRE(status.ok());
      for (const AccumulatedGradient& gradient : gradients.gradients) {
        mine.push_back(Tensor<float>::of(gradient.values).scalar());
      }
    });
  }
  for (int i = 0; i < 6; ++i) {
    state.apply({i % 2, 100, {}, Tensor<float>(static_cast<float>(i))}, [](auto&, std::int64_t&) {});
  }
  CHECK(taken == std::vector<std::vector<float>>{{0, 1}, {2, 3}, {4, 5}});
  CHECK(state.global_step() == 3);

  Gathered gathered;
  auto waiting = std::async(std::launch::async, [&] { return gathered.take(2); });
  gathered.give(1, 100);
  gathered.give(4, 100);
  CHECK(waiting.get() == 2.5);
  CHECK(code_of([&] { gathered.take(1, {.deadline = std::chrono::milliseconds(20)}); }) == Code::deadline_exceeded);
  gathered.give(4, 100);
  CHECK(gathered.take(1) == 4);
}

TEST_CASE("Who waits behind one that is cancelled gets what is there, if it is enough for them") {
  AccumulatorState state("a", DType::float32, PartialShape::unknown(), {});
  CancellationSource first;
  std::vector<Status> told;
  std::vector<std::size_t> taken;
  for (int i = 0; i < 3; ++i) {
    state.apply({i, 0, {}, Tensor<float>(1.0f)}, [](auto&, std::int64_t&) {});
  }
  const auto take = [&](std::int64_t n, const CancellationToken& token) {
    state.take_async(n, token, [&](Status status, const TakenGradients& gradients) {
      told.push_back(std::move(status));
      taken.push_back(gradients.gradients.size());
    });
  };
  take(5, first.token());
  take(2, {});
  take(1, {});
  CHECK(told.empty());
  first.cancel(Status::deadline_exceeded("it has waited for long enough"));
  REQUIRE(told.size() == 2);
  CHECK(told[0].code() == Code::deadline_exceeded);
  CHECK(told[1].ok());
  CHECK(taken[1] == 3);
  state.apply({0, 1, {}, Tensor<float>(1.0f)}, [](auto&, std::int64_t&) {});
  CHECK(told.size() == 3);
}

TEST_CASE("Who was cancelled before there were enough takes nothing, nor who was before it asked") {
  AccumulatorState state("a", DType::float32, PartialShape{}, {});
  const auto give = [&] {
    state.apply({.rank = 0, .indices = {}, .values = Tensor<float>(1.0f)}, [](auto&, std::int64_t&) {});
  };
  CancellationSource source;
  std::vector<Code> told;
  const auto take = [&] {
    state.take_async(1, source.token(), [&](const Status& status, const TakenGradients& taken) {
      told.push_back(status.code());
      CHECK(taken.gradients.empty());
    });
  };
  take();
  source.cancel();
  give();
  take();
  CHECK(told == std::vector{Code::cancelled, Code::cancelled});
  CHECK(state.num_accumulated() == 1);
  CHECK(state.global_step() == 0);
}

TEST_CASE("A replica that gives again for a step counts once, and sums are in the order of ranks") {
  Gathered gathered;
  gathered.give(7, 0, 1);
  gathered.give(1, 0, 1);
  CHECK(gathered.size() == 1);
  gathered.give(3, 0, 0);
  CHECK(gathered.take(2) == 2);
  // Floating-point addition is not associative: 2^24 + 1 + 1 has one of two values, by order.
  for (const std::vector<int>& order : {std::vector{0, 1, 2}, std::vector{2, 1, 0}, std::vector{1, 2, 0}}) {
    Gathered sum("SUM");
    for (const int rank : order) sum.give(rank == 0 ? 16777216.0 : 1.0, 0, rank);
    CHECK(sum.take(3) == 16777216.0);
  }
}

TEST_CASE("The gradients of named replicas are taken, and what else is there for the step is dropped") {
  Gathered gathered;
  gathered.give(1, 4, 0);
  gathered.give(5, 4, 2);
  gathered.give(100, 4, 1);
  gathered.give(100, 4);
  gathered.give(100, 3, 3);
  CHECK(gathered.take_ranks(Tensor<std::int32_t>({2}, {0, 2}), 4) == 3);
  CHECK(gathered.size() == 0);
  gathered.give(100, 4, 0);
  CHECK(gathered.size() == 0);
  gathered.give(2, 5, 0);
  gathered.give(3, 6, 1);
  CHECK_THROWS_WITH(gathered.take_ranks(Tensor<std::int32_t>({2}, {0, 1}), 5),
                    Catch::Contains("no gradient of replica 1 for step 5"));
  CHECK(gathered.take_ranks(Tensor<std::int32_t>::full({1}, 0), 5) == 2);
  CHECK(gathered.take_ranks(Tensor<std::int32_t>({1}, {1}), 6) == 3);
  CHECK(code_of([&] { gathered.take_ranks(Tensor<std::int32_t>::zeros({0}), 7); }) == Code::invalid_argument);
}

TEST_CASE("Rows are gathered one behind the other, and added up as they get many") {
  Graph graph;
  const AnyOutput handle =
      build<SparseConditionalAccumulator>(*graph.store(), {}, {.shape = {4, 2}}, {.name = "rows"}, type_args<float>());
  auto indices = placeholder<std::int64_t>(graph, {dynamic});
  auto values = placeholder<float>(graph, PartialShape::unknown());
  auto required = placeholder<std::int32_t>(graph, Shape{});
  const AnyOutput step = constant(graph, std::int64_t{1'000'000});
  const Operation give = build<SparseAccumulatorApplyGradient>({handle, step, indices, values});
  const BuiltNode take =
      build<SparseAccumulatorTakeGradient>({handle, required}, {}, {}, types_of({DType::float32, DType::int64}));
  const Output<std::int64_t> taken_indices(take.output(0));
  const Output<float> taken_values(take.output(1));
  CHECK(taken_values.shape() == PartialShape({dynamic, 2}));
  Session session(graph);
  const auto put = [&](const std::vector<std::int64_t>& rows, float value) {
    Tensor<std::int64_t> which(Shape({static_cast<std::int64_t>(rows.size())}));
    std::copy(rows.begin(), rows.end(), which.data());
    session.run({{indices, which}, {values, Tensor<float>::full({which.num_elements(), 2}, value)}}, give);
  };
  const auto dense = [&](std::int32_t n) {
    const auto [at, rows] = session.run({{required, n}}, taken_indices, taken_values);
    std::vector<float> sums(4);
    for (std::int64_t i = 0; i < at.num_elements(); ++i) sums[static_cast<std::size_t>(at(i))] += rows(i, 1);
    return std::pair(sums, at.num_elements());
  };
  put({1, 3}, 4);
  put({3, 3}, 2);
  const auto [two, num_rows] = dense(2);
  CHECK(two == std::vector<float>{0, 2, 0, 4});
  CHECK(num_rows == 4);
  for (int i = 0; i < 5000; ++i) put({i % 4, 1}, 1);
  const auto [many, kept] = dense(5000);
  CHECK(many[0] == Approx(0.25).epsilon(1e-4));
  CHECK(many[1] == Approx(1.25).epsilon(1e-4));
  CHECK(kept < 3000);
  CHECK(code_of([&] { put({4}, 1); }) == Code::invalid_argument);
  CHECK(code_of([&] { put({-1}, 1); }) == Code::invalid_argument);
  CHECK(
      code_of([&] {
        session.run({{indices, Tensor<std::int64_t>::full({1}, 0)}, {values, Tensor<float>::full({1, 3}, 1.0f)}}, give);
      }) == Code::invalid_argument);
}

TEMPLATE_TEST_CASE("Sums of 16-bit gradients are rounded once, when they are taken, also from a saved state", "", Half,
                   BFloat16) {
  // In the element type they stand still at 2048, and at 256.
  Gathered<TestType> gathered("SUM");
  const std::vector<DType> types{DType::int64, DType::int64, DType::float32};
  const BuiltNode read = build<ReadResourceState>({gathered.handle}, {.dtypes = types});
  const Output<std::int64_t> numbers(read.output(0)), rows(read.output(1));
  const Output<float> values(read.output(2));
  const auto numbers_again = placeholder<std::int64_t>(gathered.graph, {dynamic}),
             rows_again = placeholder<std::int64_t>(gathered.graph, {dynamic});
  const auto values_again = placeholder<float>(gathered.graph, {dynamic});
  const Operation restore =
      build<AssignResourceState>({gathered.handle, numbers_again, rows_again, values_again}, {.dtypes = types});
  gathered.give(1, 0, 2);
  for (int i = 0; i < 2999; ++i) gathered.give(1);
  const auto [saved_numbers, saved_rows, saved_values] = gathered.session.run(numbers, rows, values);
  gathered.session.run({{gathered.step, std::int64_t{0}}}, gathered.reset);
  gathered.give(9);
  gathered.session.run({{numbers_again, saved_numbers}, {rows_again, saved_rows}, {values_again, saved_values}},
                       restore);
  CHECK(gathered.size() == 3000);
  for (int i = 0; i < 1000; ++i) gathered.give(1);
  CHECK(gathered.take(4000) == 4000);
  // A state of one gradient.
  gathered.give(3, 1);
  const auto [one_number, no_row, one_value] = gathered.session.run(numbers, rows, values);
  gathered.session.run({{gathered.step, std::int64_t{1}}}, gathered.reset);
  gathered.session.run({{numbers_again, one_number}, {rows_again, no_row}, {values_again, one_value}}, restore);
  CHECK(gathered.take(1) == 3);
  Gathered<TestType> mean;
  for (int i = 0; i < 4000; ++i) mean.give(i % 2 == 0 ? 1 : 2);
  CHECK(mean.take(4000) == 1.5);
}

TEMPLATE_TEST_CASE("Sums of rows of 16-bit gradients are rounded once, when they are taken", "", Half, BFloat16) {
  Graph graph;
  const AnyOutput handle = build<SparseConditionalAccumulator>(
      *graph.store(), {}, {.shape = {2, 1}, .reduction_type = "SUM"}, {.name = "rows"}, type_args<TestType>());
  const auto indices = placeholder<std::int32_t>(graph, {dynamic});
  const auto values = placeholder<TestType>(graph, {dynamic, 1});
  const Operation give =
      build<SparseAccumulatorApplyGradient>({handle, constant(graph, std::int64_t{0}), indices, values});
  const BuiltNode take =
      build<SparseAccumulatorTakeGradient>({handle, constant(graph, 1)}, {}, {}, type_args<TestType, std::int32_t>());
  const Output<TestType> taken(take.output(1));
  Session session(graph);
  const auto put = [&](std::int64_t rows, float value) {
    session.run({{indices, Tensor<std::int32_t>::full({rows}, 1)},
                 {values, Tensor<TestType>::full({rows, 1}, TestType(value))}},
                give);
  };
  put(1, 256);
  for (int i = 0; i < 16; ++i) put(1152, 1.0f / 1024);  // they are summed each time: 1.125
  const Tensor<TestType> all = session.run(taken);
  float sum = 0;
  for (const TestType each : all) sum += static_cast<float>(each);
  CHECK(sum == 274);
}

TEST_CASE("What does not fit an accumulator is refused, and leaves it as it was") {
  Gathered gathered;
  gathered.give(1);
  CHECK_THROWS_WITH(
      gathered.session.run({{gathered.step, std::int64_t{0}}, {gathered.gradient, Tensor<float>({3}, {1, 2, 3})}},
                           gathered.give_of[0]),
      Catch::Contains("[3]"));
  CHECK(code_of([&] { gathered.take(0); }) == Code::invalid_argument);
  CHECK(code_of([&] { gathered.take(-3); }) == Code::invalid_argument);
  CHECK(gathered.take(1) == 1);
  CHECK(code_of([&] {
          build<ConditionalAccumulator>(*gathered.graph.store(), {}, {.reduction_type = "MEDIAN"}, {},
                                        type_args<float>());
        }) == Code::invalid_argument);
  const AnyOutput other =
      build<AccumulatorTakeGradient>({gathered.handle, gathered.required}, {}, {}, type_args<double>());
  CHECK(code_of([&] {
          gathered.session.run({{gathered.required, 1}}, Output<double>(other));
        }) == Code::invalid_argument);
}

TEST_CASE("A gradient that does not fit those before it does not count") {
  Graph graph;
  const AnyOutput handle =
      build<ConditionalAccumulator>(*graph.store(), {}, {.shape = {dynamic}}, {.name = "any"}, type_args<float>());
  auto gradient = placeholder<float>(graph, {dynamic});
  const AnyOutput step = constant(graph, std::int64_t{0});
  const Operation give = build<AccumulatorApplyGradient>({handle, step, gradient});
  const Output<std::int32_t> num(AnyOutput(build<AccumulatorNumAccumulated>({handle})));
  const Output<float> taken(
      AnyOutput(build<AccumulatorTakeGradient>({handle, constant(graph, 2)}, {}, {}, type_args<float>())));
  Session session(graph);
  session.run({{gradient, Tensor<float>({2}, {1, 3})}}, give);
  for (int i = 0; i < 3; ++i) {
    CHECK(code_of([&] { session.run({{gradient, Tensor<float>({3}, {1, 1, 1})}}, give); }) == Code::invalid_argument);
    CHECK(session.run(num).scalar() == 1);
  }
  session.run({{gradient, Tensor<float>({2}, {3, 3})}}, give);
  CHECK(session.run(taken)(0) == 2);
}

TEST_CASE("Rows that do not fit those before them do not count") {
  Graph graph;
  const AnyOutput handle = build<SparseConditionalAccumulator>(*graph.store(), {}, {.shape = PartialShape::unknown()},
                                                               {.name = "any_rows"}, type_args<float>());
  auto values = placeholder<float>(graph, {dynamic, dynamic});
  auto indices = placeholder<std::int64_t>(graph, {dynamic});
  auto short_indices = placeholder<std::int32_t>(graph, {dynamic});
  const AnyOutput step = constant(graph, std::int64_t{1'000'000});
  const Operation give = build<SparseAccumulatorApplyGradient>({handle, step, indices, values});
  const Operation give_short = build<SparseAccumulatorApplyGradient>({handle, step, short_indices, values});
  const Output<std::int32_t> num(AnyOutput(build<AccumulatorNumAccumulated>({handle})));
  const auto take = [&](DType index) {
    return build<SparseAccumulatorTakeGradient>({handle, constant(graph, 1)}, {}, {},
                                                types_of({DType::float32, index}));
  };
  const BuiltNode taken = take(DType::int64), taken_short = take(DType::int32);
  Session session(graph);
  constexpr std::int64_t many = 1500;  // enough to be added up
  session.run({{indices, Tensor<std::int64_t>::zeros({many})}, {values, Tensor<float>::full({many, 2}, 1)}}, give);
  CHECK(code_of([&] {
          session.run(
              {{indices, Tensor<std::int64_t>::zeros({2 * many})}, {values, Tensor<float>::full({2 * many, 100}, 1)}},
              give);
        }) == Code::invalid_argument);
  CHECK(code_of([&] {
          session.run({{short_indices, Tensor<std::int32_t>::zeros({2 * many})},
                       {values, Tensor<float>::full({2 * many, 2}, 1)}},
                      give_short);
        }) == Code::invalid_argument);
  CHECK(session.run(num).scalar() == 1);
  const auto [at, rows] = session.run(Output<std::int64_t>(taken.output(0)), Output<float>(taken.output(1)));
  CHECK(at.num_elements() == many);
  CHECK(rows(many - 1, 1) == 1);
  // A gradient that was given with one type of indices cannot be taken with another type.
  session.run({{indices, Tensor<std::int64_t>::zeros({2})}, {values, Tensor<float>::full({2, 2}, 1)}}, give);
  CHECK(code_of([&] { session.run(Output<std::int32_t>(taken_short.output(0))); }) == Code::invalid_argument);
}

TEST_CASE("Who takes from an accumulator may let go of it when it is told") {
  CancellationSource source;
  source.cancel();
  auto state = std::make_shared<AccumulatorState>("a", DType::float32, PartialShape{}, AccumulatorState::Kind{});
  state->take_async(1, source.token(), [&state](const Status& status, const TakenGradients&) {
    CHECK(status.code() == Code::cancelled);
    state = nullptr;
  });
  CHECK(state == nullptr);
}

TEST_CASE("What is given is taken once, while those who take are stopped") {
  constexpr int num_givers = 3, each = 200;
  Gathered gathered("SUM");
  std::atomic<int> left = num_givers;
  std::atomic<std::int64_t> sum = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < num_givers; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < each; ++k) gathered.give(1, 1'000'000);
      --left;
    });
  }
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (left > 0) {
        std::stop_source stop;
        std::jthread stopper([&stop] { stop.request_stop(); });
        try {
          sum += static_cast<std::int64_t>(gathered.take(1, {.stop = stop.get_token()}));
        } catch (const Error&) {  // stopped
        }
      }
    });
  }
  threads.clear();
  const int rest = gathered.size();
  if (rest > 0) sum += static_cast<std::int64_t>(gathered.take(rest));
  // A step that is stopped after its take ends as stopped, and the gradient that it took is gone.
  CHECK(sum <= num_givers * each);
  CHECK(gathered.size() == 0);
}

TEST_CASE("A gradient that was fed may be written to after it was given") {
  Gathered gathered;
  Tensor<float> mine({2}, {1, 1});
  gathered.session.run({{gathered.step, std::int64_t{0}}, {gathered.gradient, mine}}, gathered.give_of[1]);
  mine(0) = mine(1) = 50;
  CHECK(gathered.take(1) == 1);
}

TEST_CASE("An accumulator that was reset is there until the call returns whose caller lets go of it when told") {
  auto gathered = std::make_shared<AccumulatorState>("a", DType::float32, PartialShape{}, AccumulatorState::Kind{});
  AccumulatorState& held = *gathered;
  const std::vector<float> zero(1);
  bool is_gone = false, was_gone = true;
  held.apply({0, 0, {}, borrow(zero, {}, [&] { is_gone = true; })}, [](auto&, std::int64_t&) {});
  held.abandon(Status::aborted("container '' was reset"));
  Status told;
  held.take_async(2, {}, [&, gathered = std::move(gathered)](Status status, const TakenGradients&) mutable {
    told = std::move(status);
    gathered = nullptr;
    was_gone = is_gone;
  });
  CHECK(told.code() == Code::aborted);
  CHECK_FALSE(was_gone);
  CHECK(is_gone);
}
