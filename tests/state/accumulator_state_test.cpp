#include <dflow/state/accumulator_state.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <dflow/core/tensor.hpp>

#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

using namespace dflow;

TEST_CASE("who is told that an accumulator has been abandoned may let go of it") {
  auto accumulator =
      std::make_shared<AccumulatorState>("sums", DType::float32, PartialShape{3}, AccumulatorState::Kind{});
  accumulator->abandon(Status::aborted("its container was reset"));
  const CancellationSource source;
  AccumulatorState& state = *accumulator;
  Status told;
  state.take_async(1, source.token(), [&told, held = std::move(accumulator)](Status status, const auto&) mutable {
    told = std::move(status);
    held = nullptr;
  });
  CHECK(told.code() == Code::aborted);
}

TEST_CASE("states of an accumulator whose numbers could not be counted on are refused, and change nothing") {
  using Numbers = std::vector<std::int64_t>;
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  AccumulatorState accumulator("sums", DType::float32, PartialShape{}, {});
  accumulator.set_global_step(5, false);
  // For each state: global step, summed, rows, how many ranked and sums. For each gradient: rank, step, shape.
  for (const Numbers& numbers : {Numbers{0, 0, 0, 2, 0, most, 0, 0, 5, 0, 0},
                                 Numbers{0, 0, 0, 2, 0, most, 0, 0, -most + 7, 0, 0}, Numbers{0, 0, 0, 1, 0, -1, 0, 0},
                                 Numbers{0, most, 0, 1, 1, 0, 0, 0, -1, 0, 0}, Numbers{most, 1, 0, 0, 1, -1, 0, 0},
                                 Numbers{0, 1, most, 0, 1, -1, 0, 0}, Numbers{0, 1, 0, 0, 1, -1, most, 0}}) {
    const std::vector<AnyTensor> state{Tensor<std::int64_t>({static_cast<std::int64_t>(numbers.size())}, numbers),
                                       Tensor<std::int64_t>(Shape{0}), Tensor<float>({2}, {1, 2})};
    CHECK_THROWS_AS(accumulator.restore_state(state), Error);
    CHECK(accumulator.num_accumulated() == 0);
    CHECK(accumulator.global_step() == 5);
  }
}
