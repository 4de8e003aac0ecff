#include <dflow/runtime/local_rendezvous.hpp>

#include <dflow/core/tensor.hpp>

#include "catch.hpp"
#include "runtime/rendezvous_conformance.hpp"

#include <atomic>
#include <future>
#include <memory>
#include <thread>
#include <vector>

using namespace dflow;
using dflow::testing::is_complete, dflow::testing::receive, dflow::testing::Received;

namespace {

RendezvousKey key_of(std::string_view tensor) { return {"/cpu:0", 1, "/cpu:1", tensor}; }

}  // namespace

TEST_CASE("it keeps the contract of a rendezvous", "[runtime][rendezvous]") {
  dflow::testing::check_rendezvous([] { return std::make_shared<LocalRendezvous>(); }, key_of);
}

TEST_CASE("a tensor is shared with its receiver, and the pair leaves nothing behind", "[runtime][rendezvous]") {
  for (const bool send_first : {true, false}) {
    LocalRendezvous rendezvous;
    const Tensor<float> sent(3.0f);
    std::future<Received> got;
    if (!send_first) got = receive(rendezvous, key_of("x"));
    CHECK(rendezvous.send(key_of("x"), sent, false).ok());
    if (send_first) got = receive(rendezvous, key_of("x"));
    REQUIRE(is_complete(got));
    CHECK(got.get().tensor.raw_data() == sent.raw_data());
    CHECK(rendezvous.num_pending() == 0);
  }
}

TEST_CASE("abort lets go of what was sent", "[runtime][rendezvous]") {
  LocalRendezvous rendezvous;
  CHECK(rendezvous.send(key_of("sent"), Tensor<float>(1.0f), false).ok());
  const std::future<Received> waiting = receive(rendezvous, key_of("x"));
  CHECK(rendezvous.num_pending() == 2);
  rendezvous.abort(Status::data_loss("first"));
  CHECK(rendezvous.num_pending() == 0);
}

TEST_CASE("what waits when a rendezvous goes is ended", "[runtime][rendezvous]") {
  std::future<Received> waiting;
  {
    LocalRendezvous rendezvous;
    waiting = receive(rendezvous, key_of("x"));
  }
  REQUIRE(is_complete(waiting));
  CHECK(waiting.get().status.code() == Code::cancelled);
}

TEST_CASE("a receive that is given up leaves nothing behind", "[runtime][rendezvous]") {
  LocalRendezvous rendezvous;
  CancellationSource source;
  RecvArgs args;
  args.cancellation = source.token();
  const std::future<Received> given_up = receive(rendezvous, key_of("x"), args);
  const std::future<Received> other = receive(rendezvous, key_of("y"));
  source.cancel();
  CHECK(is_complete(given_up));
  CHECK(rendezvous.num_pending() == 1);
}

TEST_CASE("what is wanted is what was asked for, and has neither come nor been given up", "[runtime][rendezvous]") {
  LocalRendezvous rendezvous;
  CancellationSource source;
  RecvArgs args;
  args.cancellation = source.token();
  CHECK(rendezvous.send(key_of("early"), Tensor<float>(1.0f), false).ok());
  CHECK(rendezvous.num_wanted() == 0);
  CHECK(rendezvous.wanted(9).empty());
  std::vector<std::future<Received>> got;
  got.push_back(receive(rendezvous, key_of("early")));
  CHECK(rendezvous.num_wanted() == 0);
  for (const char* const name : {"a", "b", "c"}) got.push_back(receive(rendezvous, key_of(name), args));
  got.push_back(receive(rendezvous, key_of("x")));
  CHECK(rendezvous.num_wanted() == 4);
  CHECK(rendezvous.wanted(9).size() == 4);
  CHECK(rendezvous.wanted(2).size() == 2);
  CHECK(rendezvous.send(key_of("a"), Tensor<float>(1.0f), false).ok());
  CHECK(rendezvous.num_wanted() == 3);
  source.cancel();
  CHECK(rendezvous.num_wanted() == 1);
  REQUIRE(rendezvous.wanted(9).size() == 1);
  CHECK(rendezvous.wanted(9).front().tensor_name() == "x");
  got.push_back(receive(rendezvous, key_of("d"), args));  // its token has been cancelled before
  CHECK(rendezvous.num_wanted() == 1);
  rendezvous.abort(Status::cancelled("enough"));
  CHECK(rendezvous.num_wanted() == 0);
  CHECK(rendezvous.wanted(9).empty());
}

TEST_CASE("a token that is cancelled after the pair has met changes nothing", "[runtime][rendezvous]") {
  LocalRendezvous rendezvous;
  CancellationSource source;
  RecvArgs args;
  args.cancellation = source.token();
  std::future<Received> got = receive(rendezvous, key_of("x"), args);
  CHECK(rendezvous.send(key_of("x"), Tensor<float>(1.0f), false).ok());
  source.cancel();
  CHECK(got.get().status.ok());
}

TEST_CASE("keys of loops leave nothing behind", "[runtime][rendezvous]") {
  LocalRendezvous rendezvous;
  const RendezvousKey outside = key_of("x");
  for (int round = 0; round < 2; ++round) {
    for (std::int64_t i = 0; i < 1000; ++i) {
      const RendezvousKey key = outside.in_frame("loop", i);
      CHECK(rendezvous.send(key, Tensor<float>(static_cast<float>(i)), false).ok());
      CHECK(receive(rendezvous, key).get().tensor.span<float>()[0] == static_cast<float>(i));
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
    rendezvous.abort(Status::cancelled("enough"));
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
        [&] { round % 2 == 0 ? static_cast<void>(source.cancel()) : rendezvous.abort(Status::cancelled("enough")); });
    sender.join();
    receiver.join();
    canceller.join();
    rendezvous.abort(Status::cancelled("the end"));
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
    CHECK(!is_complete(receive(rendezvous, key_of("x"), args)));
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
