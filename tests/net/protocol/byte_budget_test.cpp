// What a client makes a task keep, in bytes.
#include <dflow/net/protocol/byte_budget.hpp>

#include "catch.hpp"
#include "connection_harness.hpp"
#include "support/errors.hpp"

#include <dflow/net/protocol/connection.hpp>
#include <dflow/net/tasks/client_sessions.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace dflow;
using namespace dflow::net;
using test::Raw;

namespace {

TaskIdentity client(int task, std::uint64_t incarnation = 1) {
  return {"", "client " + std::to_string(task), incarnation, 0};
}

/// A connection whose peer may make it keep so much.
ConnectionOptions limited(const std::shared_ptr<ByteBudget>& budget) {
  ConnectionOptions options = test::options_of("far");
  options.budget = [budget](const TaskIdentity&) { return budget; };
  return options;
}

/// True once so many bytes are in use. A write that is under way gives its payload back when it is done.
bool comes_to_use(const ByteBudget& budget, std::uint64_t bytes) {
  const auto until = std::chrono::steady_clock::now() + test::patience;
  while (budget.used() != bytes && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  return budget.used() == bytes;
}

/// Keeps all requests unanswered.
struct Keeper {
  std::vector<Responder> responders;
  std::shared_ptr<test::Owner> owner =
      std::make_shared<test::Owner>([this](const auto&, Incoming request, Responder respond) {
        if (request.body == "end") responders.clear();
        responders.push_back(std::move(respond));
      });
};

Status error_of(const test::Frame& reply) {
  ByteReader in(reply.payload);
  return read_status(in);
}

}  // namespace

TEST_CASE("a client's bytes are taken from its budget and from all clients', and given back", "[net]") {
  ClientBudgets budgets(100, 150);
  const auto first = budgets.of(client(1)), same = budgets.of(client(1)), other = budgets.of(client(2)),
             restarted = budgets.of(client(1, 2));
  CHECK(first == same);
  CHECK(first != restarted);
  ByteCharge a(first), b(other), c(first);
  REQUIRE(a.add(60).ok());
  REQUIRE(a.add(30).ok());
  const Status full = c.add(11);
  CHECK(full.code() == Code::resource_exhausted);
  CHECK(mentions(full, "this task keeps 90 bytes for client 1: 11 more would be over the limit of 100"));
  CHECK(c.add(10).ok());
  const Status all_full = b.add(51);
  CHECK(mentions(all_full, "100 bytes for all its clients: 51 more would be over the limit of 150"));
  CHECK(other->used() == 0);
  CHECK(b.add(50).ok());
  CHECK(budgets.used() == 150);
  a = std::move(c);
  CHECK(first->used() == 10);
  a = ByteCharge();
  CHECK(first->used() == 0);
  CHECK(b.add(~std::uint64_t{0}).code() == Code::resource_exhausted);  // not by a sum that wraps around
  b.release();
  CHECK(budgets.used() == 0);
  CHECK(ByteCharge().add(1 << 30).ok());
  CHECK(ClientBudgets(0, 0).of(client(1))->take(~std::uint64_t{0}).ok());
}

TEST_CASE("threads that take bytes at one time are never given more than there are", "[net]") {
  const auto budget = std::make_shared<ByteBudget>("a client", 1000);
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) {
        ByteCharge charge(budget);
        static_cast<void>(charge.add(400));
        if (budget->used() > 1000) std::terminate();
      }
    });
  }
  threads.clear();
  CHECK(budget->used() == 0);
}

TEST_CASE("requests that are not answered are charged to the client, and refused over its budget", "[net]") {
  const auto budget = std::make_shared<ByteBudget>("the client", 10'000);
  Keeper keeper;
  Raw raw(limited(budget), keeper.owner);
  raw.shake();
  std::string many;
  for (std::uint64_t i = 1; i <= 20; ++i) many += test::request_bytes(i, std::string(500, 'x'));
  REQUIRE(raw.send(many).ok());
  for (std::uint64_t i = 10; i <= 20; ++i) {
    const test::Frame reply = raw.next(FrameType::reply);
    CHECK(reply.header.request == i);
    CHECK(error_of(reply).code() == Code::resource_exhausted);
  }
  CHECK(raw.ping().header.request == 77);  // the connection goes on
  CHECK(keeper.owner->num_requests == 9);
  CHECK(budget->used() > 9'000);
  keeper.responders.clear();
  for (int i = 0; i < 9; ++i) CHECK(raw.next(FrameType::reply).header.request == static_cast<std::uint64_t>(i + 1));
  CHECK(budget->used() == 0);
}

TEST_CASE("payloads of requests are charged as they come, and thrown away over the budget", "[net]") {
  const auto budget = std::make_shared<ByteBudget>("the client", 20'000);
  ConnectionOptions options = limited(budget);
  options.window_bytes = 1 << 20;
  Raw raw(options);
  raw.shake();
  // Announced and not sent: costs next to nothing.
  for (std::uint64_t i = 1; i <= 5; ++i) REQUIRE(raw.send(test::request_bytes(i, "", 1'000'000'000)).ok());
  CHECK(raw.ping().header.request == 77);
  CHECK(budget->used() < 5'000);
  for (std::uint64_t i = 1; i <= 5; ++i) {
    REQUIRE(raw.send(test::frame_bytes(FrameType::chunk, i, std::string(6000, 'x'))).ok());
  }
  const test::Frame refused = raw.next(FrameType::reply);
  CHECK(refused.header.request == 3);
  CHECK(error_of(refused).code() == Code::resource_exhausted);
  CHECK(raw.next(FrameType::reply).header.request == 4);
  CHECK(budget->used() <= 20'000);
  // The rest of a refused request is of no interest.
  REQUIRE(raw.send(test::frame_bytes(FrameType::chunk, 3, std::string(6000, 'x'))).ok());
  REQUIRE(raw.send(test::frame_bytes(FrameType::cancel, 1, "") + test::frame_bytes(FrameType::cancel, 2, "")).ok());
  CHECK(raw.ping().header.request == 77);
  CHECK(budget->used() < 10'000);
  // A whole one goes through now.
  REQUIRE(raw.send(test::request_bytes(6, "body", 6000)).ok());
  REQUIRE(raw.send(test::frame_bytes(FrameType::chunk, 6, std::string(6000, 'x'))).ok());
  const test::Frame reply = raw.next(FrameType::reply);
  CHECK(reply.header.request == 6);
  CHECK(reply.payload == test::u64_bytes(6000) + "body");
}

TEST_CASE("payloads of replies are charged until they have been sent", "[net]") {
  const auto budget = std::make_shared<ByteBudget>("the client", 100'000);
  const auto owner = std::make_shared<test::Owner>([](const auto&, const Incoming&, Responder respond) {
    auto bytes = std::make_shared<const std::string>(40'000, 'x');
    Outgoing reply;
    reply.payload.parts.push_back(test::bytes_of(*bytes));
    reply.payload.owner = bytes;
    respond(std::move(reply));
  });
  Raw raw(limited(budget), owner, 1000);  // it takes 1000 bytes, and gives no more credit
  raw.shake();
  REQUIRE(raw.send(test::request_bytes(1, "") + test::request_bytes(2, "") + test::request_bytes(3, "")).ok());
  CHECK(raw.next(FrameType::reply).header.request == 1);
  CHECK(raw.next(FrameType::reply).header.request == 2);
  const test::Frame third = raw.next(FrameType::reply);
  CHECK(third.header.request == 3);
  CHECK(error_of(third).code() == Code::resource_exhausted);
  CHECK(comes_to_use(*budget, 80'000));
  REQUIRE(raw.send(test::frame_bytes(FrameType::cancel, 2, "")).ok());
  CHECK(raw.ping().header.request == 77);
  CHECK(comes_to_use(*budget, 40'000));
}

TEST_CASE("a graph costs its client more than its message, and nothing once it is gone", "[net]") {
  Incoming request;
  request.budget = std::make_shared<ByteBudget>("the client", 100'000);
  request.payload.resize(5000);
  ByteCharge charge = net::detail::charge_graph(request);
  CHECK(charge.bytes() > 80'000);
  CHECK(code_of([&] { net::detail::charge_graph(request); }) == Code::resource_exhausted);
  charge.release();
  CHECK_NOTHROW(net::detail::charge_graph(request));
}
