// Tests that every Rendezvous passes, over any transport.
#pragma once

#include <dflow/core/rendezvous.hpp>
#include <dflow/core/tensor.hpp>

#include "catch.hpp"

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string_view>
#include <utility>

namespace dflow::testing {

/// The result of a receive.
struct Received {
  Status status;
  AnyTensor tensor;
  bool is_dead = false;
};

inline std::future<Received> receive(Rendezvous& rendezvous, const RendezvousKey& key, const RecvArgs& args = {}) {
  auto promise = std::make_shared<std::promise<Received>>();
  std::future<Received> received = promise->get_future();
  rendezvous.recv_async(key, args, [promise](Status status, AnyTensor tensor, bool is_dead) {
    promise->set_value({std::move(status), std::move(tensor), is_dead});
  });
  return received;
}

inline bool is_complete(const std::future<Received>& received) {
  return received.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

using MakeRendezvous = std::function<std::shared_ptr<Rendezvous>()>;
/// The key of a tensor of that name that the rendezvous carries, outside of loops.
using MakeKey = std::function<RendezvousKey(std::string_view tensor)>;

/// Runs through the contract, on a new rendezvous for each clause.
inline void check_rendezvous(const MakeRendezvous& make, const MakeKey& key_of) {
  const std::shared_ptr<Rendezvous> rendezvous = make();
  const auto send = [&](const RendezvousKey& key, float value) {
    return rendezvous->send(key, Tensor<float>(value), false);
  };
  const auto is_value = [](std::future<Received>& received, float value) {
    const Received got = received.get();
    return got.status.ok() && !got.is_dead && Tensor<float>(got.tensor).scalar() == value;
  };
  const auto code_of = [](std::future<Received>& received) {
    const Received got = received.get();
    CHECK(!got.tensor.is_initialized());
    return got.status.code();
  };

  SECTION("a tensor and its receiver meet in either order") {
    CHECK(send(key_of("x"), 1).ok());
    std::future<Received> x = receive(*rendezvous, key_of("x"));
    std::future<Received> y = receive(*rendezvous, key_of("y"));
    CHECK(!is_complete(y));
    CHECK(send(key_of("y"), 2).ok());
    CHECK(is_value(x, 1));
    CHECK(is_value(y, 2));
  }

  SECTION("a dead tensor is delivered as one") {
    CHECK(rendezvous->send(key_of("x"), AnyTensor(), true).ok());
    const Received got = receive(*rendezvous, key_of("x")).get();
    CHECK(got.status.ok());
    CHECK(got.is_dead);
    CHECK(!got.tensor.is_initialized());
  }

  SECTION("a second send or receive of a key outside of loops is Aborted, before and after the pair has met") {
    CHECK(send(key_of("x"), 1).ok());
    CHECK(send(key_of("x"), 2).code() == Code::aborted);
    std::future<Received> first = receive(*rendezvous, key_of("x"));
    CHECK(is_value(first, 1));
    std::future<Received> second = receive(*rendezvous, key_of("x"));
    CHECK(code_of(second) == Code::aborted);
    CHECK(send(key_of("x"), 3).code() == Code::aborted);

    std::future<Received> waiting = receive(*rendezvous, key_of("y"));
    std::future<Received> other = receive(*rendezvous, key_of("y"));
    CHECK(code_of(other) == Code::aborted);
    CHECK(!is_complete(waiting));
    CHECK(send(key_of("y"), 4).ok());
    CHECK(is_value(waiting, 4));
  }

  SECTION("keys of loop frames may be used again once the pair has met, not before") {
    const RendezvousKey key = key_of("x").in_frame("loop", 3);
    for (int round = 0; round < 2; ++round) {
      CHECK(send(key, 1).ok());
      CHECK(send(key, 2).code() == Code::aborted);
      std::future<Received> got = receive(*rendezvous, key);
      CHECK(is_value(got, 1));
    }
    std::future<Received> waiting = receive(*rendezvous, key);
    std::future<Received> other = receive(*rendezvous, key);
    CHECK(code_of(other) == Code::aborted);
    CHECK(send(key, 3).ok());
    CHECK(is_value(waiting, 3));
  }

  SECTION("abort ends what waits and what comes, with the first status") {
    CHECK(send(key_of("sent"), 1).ok());
    std::future<Received> waiting = receive(*rendezvous, key_of("x"));
    rendezvous->abort(Status::data_loss("first"));
    rendezvous->abort(Status::internal("second"));
    CHECK(code_of(waiting) == Code::data_loss);
    for (const char* name : {"sent", "new"}) {
      std::future<Received> late = receive(*rendezvous, key_of(name));
      CHECK(code_of(late) == Code::data_loss);
    }
    CHECK(send(key_of("x"), 1).code() == Code::data_loss);
  }

  SECTION("an ok status aborts as Cancelled") {
    rendezvous->abort(Status());
    std::future<Received> late = receive(*rendezvous, key_of("x"));
    CHECK(code_of(late) == Code::cancelled);
  }

  SECTION("one receive is given up by its token, and the key may be received again") {
    CancellationSource source;
    RecvArgs args;
    args.cancellation = source.token();
    std::future<Received> given_up = receive(*rendezvous, key_of("x"), args);
    std::future<Received> other = receive(*rendezvous, key_of("y"));
    CHECK(!is_complete(given_up));
    source.cancel(Status::unavailable("no longer wanted"));
    CHECK(code_of(given_up) == Code::unavailable);
    CHECK(!is_complete(other));
    std::future<Received> again = receive(*rendezvous, key_of("x"));
    CHECK(send(key_of("x"), 1).ok());
    CHECK(is_value(again, 1));
    std::future<Received> at_once = receive(*rendezvous, key_of("z"), args);
    CHECK(code_of(at_once) == Code::unavailable);
    CHECK(send(key_of("y"), 2).ok());
    CHECK(is_value(other, 2));
  }
}

}  // namespace dflow::testing
