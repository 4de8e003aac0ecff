#include <dflow/session/session.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/ops/ops.hpp>

#include <future>
#include <thread>
#include <utility>
#include <vector>

using namespace dflow;

TEST_CASE("a prepared step of erased edges runs, outlives its session, and checks how many tensors it is given") {
  AnyPreparedStep step;
  {
    Graph graph;
    auto x = placeholder<float>(graph, {dynamic});
    const std::vector<AnyOutput> fed{x}, fetched{x * 2.0f, x + 1.0f};
    Session session(graph);
    step = session.prepare_erased(fed, fetched, {});
    CHECK(session.op_set().ops().find("Mul") != nullptr);
    Session moved = std::move(session);
    CHECK(code_of([&] { return session.prepare_erased(fed, fetched, {}); }) == Code::failed_precondition);
  }
  const Tensor<float> two({2}, {1, 2});
  std::vector<AnyTensor> feeds{two}, results(2), none;
  step.run({}, nullptr, feeds, results);
  CHECK(bitwise_equal(results[0], Tensor<float>({2}, {2, 4})));
  CHECK(bitwise_equal(results[1], Tensor<float>({2}, {2, 3})));

  const auto run = [&](std::vector<AnyTensor> fed, std::vector<AnyTensor>& into) {
    return error_of([&] {
      step.run({}, nullptr, fed, into);
      return 0;
    });
  };
  CHECK(contains(run({}, results), "takes 1 tensors, and is given 0"));
  CHECK(contains(run({two, two}, results), "takes 1 tensors, and is given 2"));
  CHECK(contains(run({two}, none), "takes 2 places for results, and is given 0"));

  const auto run_async = [](const AnyPreparedStep& of, std::vector<AnyTensor> fed) {
    std::promise<std::pair<Status, std::vector<AnyTensor>>> done;
    of.run_async({}, nullptr, std::move(fed), [&](Status status, std::vector<AnyTensor> tensors) {
      done.set_value({std::move(status), std::move(tensors)});
    });
    return done.get_future().get();
  };
  CHECK(bitwise_equal(run_async(step, {two}).second.at(1), Tensor<float>({2}, {2, 3})));
  CHECK(run_async(step, {}).first.code() == Code::invalid_argument);
  std::promise<std::thread::id> told;
  step.run_async({}, nullptr, {},
                 [&](const Status&, const std::vector<AnyTensor>&) { told.set_value(std::this_thread::get_id()); });
  CHECK(told.get_future().get() != std::this_thread::get_id());
  CHECK(run_async({}, {}).first.code() == Code::failed_precondition);
  CHECK(code_of([&] {
          AnyPreparedStep().run({}, nullptr, none, none);
          return 0;
        }) == Code::failed_precondition);
}
