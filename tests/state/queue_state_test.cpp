#include <dflow/state/queue_state.hpp>

#include "catch.hpp"

#include <dflow/core/tensor.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

using namespace dflow;

namespace {

/// A queue of floats of any shape that holds 24 bytes, which is 6 floats.
QueueState queue_of_six() { return {"six", {.dtypes = {DType::float32}, .shapes = {}, .memory_limit = 24}}; }

/// Puts an element of `count` floats in. The result is true as soon as it is in.
std::shared_ptr<const bool> put_floats(QueueState& queue, std::int64_t count) {
  const auto is_in = std::make_shared<bool>(false);
  QueuedElements element;
  element.components = {Tensor<float>::full({count}, 1)};
  element.is_single = true;
  queue.enqueue_async(std::move(element), {}, [is_in](const Status& status) { *is_in = status.ok(); });
  return is_in;
}

/// The outcome of taking elements out; empty while the call waits.
struct TakenOut {
  std::optional<Status> status;
  std::vector<QueuedElements> elements;
};

std::shared_ptr<TakenOut> take_out(QueueState& queue, std::int64_t count, const CancellationToken& token = {}) {
  const auto taken = std::make_shared<TakenOut>();
  queue.dequeue_async(count, false, token, [taken](Status status, std::vector<QueuedElements> elements) {
    *taken = {std::move(status), std::move(elements)};
  });
  return taken;
}

}  // namespace

TEST_CASE("elements that go back into a queue count against its memory limit again", "[queue_state]") {
  enum class Why { unlike, cancelled, given_back };
  const Why why = GENERATE(Why::unlike, Why::cancelled, Why::given_back);
  QueueState queue = queue_of_six();
  CHECK(*put_floats(queue, 2));
  CHECK(*put_floats(queue, 3));
  if (why == Why::unlike) {
    const auto taken = take_out(queue, 2);
    REQUIRE(taken->status);
    CHECK(taken->status->code() == Code::invalid_argument);
  } else if (why == Why::cancelled) {
    CancellationSource source;
    const auto taken = take_out(queue, 3, source.token());
    CHECK_FALSE(taken->status);
    CHECK(queue.size() == 0);
    source.cancel();
    REQUIRE(taken->status);
    CHECK(taken->status->code() == Code::cancelled);
  } else {
    const auto taken = take_out(queue, 1);
    REQUIRE(taken->elements.size() == 1);
    queue.give_back(std::move(taken->elements));
  }
  CHECK(queue.size() == 2);
  const auto in = put_floats(queue, 2);  // 4 bytes too many
  CHECK_FALSE(*in);
  CHECK(take_out(queue, 1)->elements.at(0).element_shape(0) == Shape{2});
  CHECK(*in);
  CHECK(queue.size() == 2);
}

TEST_CASE("elements that a queue is restored with count against its memory limit, and dropped ones do not",
          "[queue_state]") {
  QueueState saved = queue_of_six();
  CHECK(*put_floats(saved, 2));
  CHECK(*put_floats(saved, 3));
  QueueState queue = queue_of_six();
  CHECK(*put_floats(queue, 6));
  queue.restore_state(saved.saved_state());
  CHECK(queue.size() == 2);
  CHECK(*put_floats(queue, 1));
  const auto waits = put_floats(queue, 1);
  CHECK_FALSE(*waits);
  queue.clear();
  CHECK(*waits);
  CHECK(*put_floats(queue, 5));
  CHECK_FALSE(*put_floats(queue, 1));
}
