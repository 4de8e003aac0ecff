#include <dflow/runtime/local_rendezvous.hpp>

#include <dflow/core/tensor.hpp>

#include "catch.hpp"

#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

using namespace dflow;

namespace {

RendezvousKey key_of(std::string_view tensor) { return {"/cpu:0", 1, "/cpu:1", tensor}; }

/// What a receive completed with.
struct Received {
  Status status;
  AnyTensor tensor;
  bool is_dead = false;
};
std::shared_ptr<std::vector<Received>> receive(Rendezvous& rendezvous, const RendezvousKey& key,
                                               const RecvArgs& args = {}) {
  auto all = std::make_shared<std::vector<Received>>();
  rendezvous.recv_async(key, args, [all](Status status, AnyTensor tensor, bool is_dead) {
    all->push_back({std::move(status), std::move(tensor), is_dead});
  });
  return all;
}

}  // namespace

TEST_CASE("a tensor and its receiver meet in either order, once", "[runtime][rendezvous]") {
  for (const bool send_first : {true, false}) {
    LocalRendezvous rendezvous;
    const Tensor<float> sent(3.0f);
    std::shared_ptr<std::vector<Received>> got;
    if (!send_first) got = receive(rendezvous, key_of("x"));
    CHECK(rendezvous.send(key_of("x"), sent, false).ok());
    if (send_first) got = receive(rendezvous, key_of("x"));
    REQUIRE(got->size() == 1);
    CHECK((*got)[0].status.ok());
    CHECK(!(*got)[0].is_dead);
    CHECK((*got)[0].tensor.raw_data() == sent.raw_data());  // shared, not copied
    CHECK(rendezvous.num_pending() == 0);
  }
}

TEST_CASE("a dead tensor is delivered as one", "[runtime][rendezvous]") {
  LocalRendezvous rendezvous;
  CHECK(rendezvous.send(key_of("x"), AnyTensor(), true).ok());
  const auto got = receive(rendezvous, key_of("x"));
  REQUIRE(got->size() == 1);
  CHECK((*got)[0].status.ok());
  CHECK((*got)[0].is_dead);
  CHECK(!(*got)[0].tensor.is_initialized());
}

TEST_CASE("a second send or receive of a key is Aborted, before and after the pair has met", "[runtime][rendezvous]") {
  LocalRendezvous rendezvous;
  CHECK(rendezvous.send(key_of("x"), Tensor<float>(1.0f), false).ok());
  CHECK(rendezvous.send(key_of("x"), Tensor<float>(2.0f), false).code() == Code::aborted);
  const auto first = receive(rendezvous, key_of("x"));
  CHECK((*first)[0].tensor.span<float>()[0] == 1);
  const auto second = receive(rendezvous, key_of("x"));
  REQUIRE(second->size() == 1);
  CHECK((*second)[0].status.code() == Code::aborted);
  CHECK(!(*second)[0].tensor.is_initialized());
  CHECK(rendezvous.send(key_of("x"), Tensor<float>(3.0f), false).code() == Code::aborted);

  const auto waiting = receive(rendezvous, key_of("y"));
  const auto other = receive(rendezvous, key_of("y"));
  CHECK(waiting->empty());
  REQUIRE(other->size() == 1);
  CHECK((*other)[0].status.code() == Code::aborted);
  CHECK(rendezvous.send(key_of("y"), Tensor<float>(4.0f), false).ok());
  REQUIRE(waiting->size() == 1);
  CHECK((*waiting)[0].status.ok());
}

TEST_CASE("abort ends what waits and what comes, with the first status", "[runtime][rendezvous]") {
  LocalRendezvous rendezvous;
  CHECK(rendezvous.send(key_of("sent"), Tensor<float>(1.0f), false).ok());
  const auto waiting = receive(rendezvous, key_of("x"));
  rendezvous.abort(data_loss("first"));
  rendezvous.abort(internal("second"));
  REQUIRE(waiting->size() == 1);
  CHECK((*waiting)[0].status.code() == Code::data_loss);
  CHECK((*receive(rendezvous, key_of("sent")))[0].status.code() == Code::data_loss);
  CHECK((*receive(rendezvous, key_of("new")))[0].status.code() == Code::data_loss);
  CHECK(rendezvous.send(key_of("x"), Tensor<float>(1.0f), false).code() == Code::data_loss);
  CHECK(rendezvous.num_pending() == 0);
  LocalRendezvous other;
  other.abort(Status());
  CHECK((*receive(other, key_of("x")))[0].status.code() == Code::cancelled);
}

TEST_CASE("what waits when a rendezvous goes is ended", "[runtime][rendezvous]") {
  std::shared_ptr<std::vector<Received>> waiting;
  {
    LocalRendezvous rendezvous;
    waiting = receive(rendezvous, key_of("x"));
  }
  REQUIRE(waiting->size() == 1);
  CHECK((*waiting)[0].status.code() == Code::cancelled);
}

TEST_CASE("one receive is given up by its token, and the key may be received again", "[runtime][rendezvous]") {
  LocalRendezvous rendezvous;
  CancellationSource source;
  RecvArgs args;
  args.cancellation = source.token();
  const auto given_up = receive(rendezvous, key_of("x"), args);
  const auto other = receive(rendezvous, key_of("y"));
  CHECK(given_up->empty());
  source.cancel(unavailable("no longer wanted"));
  REQUIRE(given_up->size() == 1);
  CHECK((*given_up)[0].status.code() == Code::unavailable);
  CHECK(other->empty());
  CHECK(rendezvous.num_pending() == 1);
  const auto again = receive(rendezvous, key_of("x"));
  CHECK(rendezvous.send(key_of("x"), Tensor<float>(1.0f), false).ok());
  REQUIRE(again->size() == 1);
  CHECK((*again)[0].status.ok());
  const auto at_once = receive(rendezvous, key_of("z"), args);
  REQUIRE(at_once->size() == 1);
  CHECK((*at_once)[0].status.code() == Code::unavailable);
  CHECK(rendezvous.send(key_of("y"), Tensor<float>(1.0f), false).ok());
  CHECK(other->size() == 1);
}

TEST_CASE("a token that is cancelled after the pair has met changes nothing", "[runtime][rendezvous]") {
  LocalRendezvous rendezvous;
  CancellationSource source;
  RecvArgs args;
  args.cancellation = source.token();
  const auto got = receive(rendezvous, key_of("x"), args);
  CHECK(rendezvous.send(key_of("x"), Tensor<float>(1.0f), false).ok());
  source.cancel();
  CHECK(got->size() == 1);
}

TEST_CASE("keys of loops leave nothing behind and may be used again", "[runtime][rendezvous]") {
  LocalRendezvous rendezvous;
  const RendezvousKey outside = key_of("x");
  for (int round = 0; round < 2; ++round) {
    for (std::int64_t i = 0; i < 1000; ++i) {
      const RendezvousKey key = outside.in_frame("loop", i);
      CHECK(rendezvous.send(key, Tensor<float>(static_cast<float>(i)), false).ok());
      CHECK((*receive(rendezvous, key))[0].tensor.span<float>()[0] == static_cast<float>(i));
    }
  }
  CHECK(rendezvous.num_pending() == 0);
}

TEST_CASE("a completion may call the rendezvous again", "[runtime][rendezvous]") {
  LocalRendezvous rendezvous;
  std::vector<float> got;
  rendezvous.recv_async(key_of("a"), [&](Status, AnyTensor, bool) {
    rendezvous.recv_async(key_of("b"), [&](Status, AnyTensor tensor, bool) { got.push_back(tensor.span<float>()[0]); });
    CHECK(rendezvous.send(key_of("b"), Tensor<float>(2.0f), false).ok());
    rendezvous.abort(cancelled("enough"));
  });
  CHECK(rendezvous.send(key_of("a"), Tensor<float>(1.0f), false).ok());
  CHECK(got == std::vector<float>{2});
}

TEST_CASE("senders, receivers, tokens and an abort race, and every receive completes once", "[runtime][rendezvous]") {
  for (int round = 0; round < 30; ++round) {
    LocalRendezvous rendezvous;
    CancellationSource source;
    constexpr int count = 100;
    std::vector<std::atomic<int>> completed(count);
    std::vector<RendezvousKey> keys;
    for (int i = 0; i < count; ++i) keys.push_back(key_of(str_cat("t", i)));
    std::thread sender([&] {
      for (const RendezvousKey& key : keys) static_cast<void>(rendezvous.send(key, Tensor<float>(1.0f), false));
    });
    std::thread receiver([&] {
      RecvArgs args;
      args.cancellation = source.token();
      for (std::size_t i = 0; i < count; ++i) {
        rendezvous.recv_async(keys[i], args, [&, i](Status, AnyTensor, bool) { ++completed[i]; });
      }
    });
    std::thread canceller(
        [&] { round % 2 == 0 ? static_cast<void>(source.cancel()) : rendezvous.abort(cancelled("enough")); });
    sender.join();
    receiver.join();
    canceller.join();
    rendezvous.abort(cancelled("the end"));
    for (const std::atomic<int>& times : completed) {
      if (times != 1) FAIL("a receive completed " << times << " times");
    }
  }
}

TEST_CASE("a token outlives the rendezvous that waited for it, which may go while a receive is made",
          "[runtime][rendezvous]") {
  CancellationSource source;
  RecvArgs args;
  args.cancellation = source.token();
  {
    LocalRendezvous rendezvous;
    CHECK(receive(rendezvous, key_of("x"), args)->empty());
  }
  source.cancel();
  // The token is cancelled already: its callback ends the receive inside of recv_async, and that destroys the
  // rendezvous.
  auto owned = std::make_unique<LocalRendezvous>();
  int completed = 0;
  owned->recv_async(key_of("x"), args, [&](const Status& status, AnyTensor, bool) {
    CHECK(status.code() == Code::cancelled);
    ++completed;
    owned.reset();
  });
  CHECK(completed == 1);
}
