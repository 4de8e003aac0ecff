#include <dflow/net/protocol/connection.hpp>

#include "catch.hpp"
#include "connection_harness.hpp"
#include "support/errors.hpp"

#include <atomic>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

using namespace dflow;
using namespace dflow::net;
using test::Answered;
using test::Pair;

namespace {

std::pair<Status, std::string> ask(Connection& connection, std::string body, std::uint16_t method = 1) {
  Answered answered;
  Call call;
  call.method = method;
  call.message.body = std::move(body);
  connection.call(std::move(call), answered.done());
  return answered.wait();
}

Payload shared_payload(std::string bytes) {
  auto owner = std::make_shared<const std::string>(std::move(bytes));
  Payload payload;
  payload.parts.push_back(test::bytes_of(*owner));
  payload.owner = owner;
  return payload;
}

/// The place for the payload of a reply.
struct Landing {
  std::shared_ptr<std::string> bytes = std::make_shared<std::string>();

  auto place() {
    return [bytes = bytes](std::string_view, std::uint64_t size) -> StatusOr<PayloadMemory> {
      bytes->resize(size);
      return PayloadMemory{std::as_writable_bytes(std::span(bytes->data(), bytes->size())), bytes};
    };
  }
};

}  // namespace

TEST_CASE("two tasks call each other over one connection", "[net]") {
  Pair pair(nullptr, [](const auto&, Incoming request, Responder respond) {
    respond(Outgoing{str_cat(request.method, " ", request.body), {}});
  });
  CHECK(ask(*pair.near, "question", 7).second == "7 question");
  CHECK(ask(*pair.far, "back", 8).second == "back");
  CHECK(ask(*pair.near, "", 9).second == "9 ");
  CHECK(pair.near->peer() == TaskIdentity{"cluster", "far", 11, 22});
  CHECK(pair.far->peer().task == "near");
  CHECK(pair.near->channel() == Channel::control);
  CHECK(pair.near->is_open());
}

TEST_CASE("the acceptor's channel is the connector's", "[net]") {
  test::Wire wire;
  test::Ends ends = wire.ends();
  test::Opening near_opening, far_opening;
  auto options = test::options_of("near");
  Connection::open(std::move(ends.far), Role::acceptor, test::options_of("far"), nullptr, far_opening.done());
  options.channel = Channel::data;
  options.expected_peer = "far";
  Connection::open(std::move(ends.near), Role::connector, options, nullptr, near_opening.done());
  const auto near = near_opening.wait().second, far = far_opening.wait().second;
  REQUIRE(near != nullptr);
  REQUIRE(far != nullptr);
  CHECK(near->channel() == Channel::data);
  CHECK(far->channel() == Channel::data);
  near->close(Status::cancelled("done"));
}

TEST_CASE("requests and posts come in their order, and replies find their calls", "[net]") {
  std::mutex mutex;
  std::vector<std::string> heard;
  std::vector<Responder> waiting;
  Pair pair(nullptr, [&](const auto&, const Incoming& request, Responder respond) {
    const std::lock_guard lock(mutex);
    heard.push_back(request.body);
    if (request.method == 5) return;  // a post: nobody waits
    waiting.push_back(std::move(respond));
    if (waiting.size() < 3) return;
    for (std::size_t i = 3; i-- > 0;) waiting[i](Outgoing{"answer " + std::to_string(i), {}});
  });
  std::vector<Answered> answers(3);
  for (int i = 0; i < 300; ++i) {
    CHECK(pair.near->post(5, std::to_string(i)).ok());
    if (i % 100 != 99) continue;
    Call call;
    call.message.body = "call";
    pair.near->call(std::move(call), answers[i / 100].done());
  }
  for (std::size_t i = 0; i < 3; ++i) CHECK(answers[i].wait().second == "answer " + std::to_string(i));
  const std::lock_guard lock(mutex);
  REQUIRE(heard.size() == 303);
  for (int i = 0; i < 300; ++i) CHECK(heard[i + i / 100] == std::to_string(i));
}

TEST_CASE("errors come back with their code, text and place", "[net]") {
  const Status error =
      Status::data_loss("gone").with_node("MatMul", "layer").with_device("/cpu:0").with_task("/job:ps");
  Pair pair(nullptr, [&](const auto&, const Incoming& request, Responder respond) {
    if (request.body == "drop") return;
    respond(error);
    respond(Outgoing{"a second answer", {}});
  });
  CHECK(ask(*pair.near, "").first == error);
  const Status dropped = ask(*pair.near, "drop").first;
  CHECK(dropped.code() == Code::internal);
  CHECK(mentions(dropped, "dropped without a reply"));
  CHECK(ask(*pair.near, "").first == error);
}

TEST_CASE("payloads go both ways, from where they are to where they are wanted", "[net]") {
  std::string bytes(3'000'001, '\0');
  std::iota(bytes.begin(), bytes.end(), 0);
  Pair pair;
  for (int i = 0; i < 3; ++i) {
    Landing landing;
    Answered answered;
    Call call;
    call.message = {"body", shared_payload(bytes)};
    call.place_payload = landing.place();
    pair.near->call(std::move(call), answered.done());
    const auto [status, body] = answered.wait();
    CHECK(status.ok());
    CHECK(body == "body");
    CHECK(*landing.bytes == bytes);
    CHECK(test::comes_to_be_alone(landing.bytes));  // the connection has released its references to it
  }
}

TEST_CASE("a payload that nobody can place ends its call alone", "[net]") {
  Pair pair(nullptr, [](const auto&, const Incoming&, Responder respond) {
    respond(Outgoing{"body", shared_payload(std::string(100'000, 'x'))});
  });
  CHECK(mentions(ask(*pair.near, "").first, "bytes nobody asked for"));
  const auto with = [&](auto place) {
    Answered answered;
    Call call;
    call.place_payload = std::move(place);
    pair.near->call(std::move(call), answered.done());
    return answered.wait().first;
  };
  using Placed = StatusOr<PayloadMemory>;
  CHECK(with([](std::string_view, std::uint64_t) -> Placed { return Status::not_found("no room"); }) ==
        Status::not_found("no room"));
  CHECK(with([](std::string_view, std::uint64_t) -> Placed { throw_error(Status::aborted("thrown")); }) ==
        Status::aborted("thrown"));
  CHECK(mentions(with([](std::string_view, std::uint64_t) -> Placed { return PayloadMemory{}; }), "of another size"));
  Landing landing;
  CHECK(with(landing.place()).ok());
  CHECK(*landing.bytes == std::string(100'000, 'x'));
}

TEST_CASE("a call is not told of its end while it is asked where the reply goes", "[net]") {
  Pair pair(nullptr, [](const auto&, const Incoming&, Responder respond) {
    respond(Outgoing{"body", shared_payload(std::string(1000, 'x'))});
  });
  const bool by_closing = GENERATE(false, true);
  CancellationSource source;
  std::promise<void> is_asked, may_answer;
  std::atomic<bool> is_placing{false}, was_placing{false};
  std::promise<Status> ended;
  Call call;
  call.cancellation = source.token();
  call.place_payload = [&](std::string_view, std::uint64_t) -> StatusOr<PayloadMemory> {
    is_placing = true;
    is_asked.set_value();
    may_answer.get_future().wait();
    is_placing = false;
    return Status::not_found("no room");
  };
  pair.near->call(std::move(call), [&](Status status, const std::string&) {
    was_placing = is_placing.load();
    ended.set_value(std::move(status));
  });
  is_asked.get_future().wait();
  if (by_closing) {
    pair.near->close(Status::aborted("by the test"));
  } else {
    source.cancel(Status::aborted("by the test"));
  }
  may_answer.set_value();
  const Status status = ended.get_future().get();
  CHECK(status.code() == Code::aborted);
  CHECK_FALSE(was_placing);
}

TEST_CASE("three threads call both ways at once", "[net]") {
  Pair pair;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        Connection& from = (i + t) % 2 == 0 ? *pair.near : *pair.far;
        const std::string payload(static_cast<std::size_t>(i * 997 % 5000), static_cast<char>('a' + t));
        Landing landing;
        Answered answered;
        Call call;
        call.message = {str_cat(t, " ", i), shared_payload(payload)};
        call.place_payload = landing.place();
        from.call(std::move(call), answered.done());
        const auto [status, body] = answered.wait();
        if (!status.ok() || body != str_cat(t, " ", i) || *landing.bytes != payload) ++wrong;
        if (!from.post(2, "post").ok()) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("who cancels a call is told at once, and the other side that nobody waits", "[net]") {
  std::promise<CancellationToken> heard;
  std::vector<Responder> waiting;
  Pair pair(nullptr, [&](const auto&, const Incoming& request, Responder respond) {
    if (request.body == "echo") return respond(Outgoing{"echo", {}});
    waiting.push_back(std::move(respond));
    heard.set_value(request.cancellation);
  });
  CancellationSource source;
  Answered answered;
  Call call;
  call.cancellation = source.token();
  pair.near->call(std::move(call), answered.done());
  const CancellationToken token = heard.get_future().get();
  CHECK_FALSE(token.is_cancelled());
  source.cancel(Status::aborted("enough"));
  const Status status = answered.wait().first;
  CHECK(status.code() == Code::aborted);
  CHECK(status.task() == "far");
  CHECK(ask(*pair.near, "echo").second == "echo");  // comes after the cancel
  CHECK(token.is_cancelled());
  CHECK(mentions(token.status(), "near does not wait any more"));
  waiting.front()(Outgoing{"too late", {}});
  CHECK(ask(*pair.near, "echo").second == "echo");

  Answered refused;
  Call late;
  late.cancellation = source.token();
  pair.near->call(std::move(late), refused.done());
  CHECK(refused.wait().first.code() == Code::aborted);
}

TEST_CASE("a call that is not answered in time ends", "[net]") {
  const auto clock = std::make_shared<VirtualClock>();
  std::promise<Responder> waiting;
  Pair pair(
      nullptr, [&](const auto&, const Incoming&, Responder respond) { waiting.set_value(std::move(respond)); },
      [&](ConnectionOptions& options) { options.clock = clock; });
  Answered answered;
  Call call;
  call.deadline = clock->after(std::chrono::seconds(1));
  pair.near->call(std::move(call), answered.done());
  const Responder responder = waiting.get_future().get();
  clock->advance(std::chrono::seconds(1));
  const Status status = answered.wait().first;
  CHECK(status.code() == Code::deadline_exceeded);
  CHECK(mentions(status, "far has not answered in time"));
}

TEST_CASE("a call that has ended leaves no timer on the clock, however it has ended", "[net]") {
  const auto clock = std::make_shared<VirtualClock>();
  std::promise<Responder> waiting;
  Pair pair(
      nullptr,
      [&](const auto&, const Incoming& request, Responder respond) {
        if (request.body == "error") return respond(Status::data_loss("none"));
        if (request.body == "bytes") return respond(Outgoing{"", shared_payload("bytes")});
        if (request.body != "silence") return respond(Outgoing{"answer", {}});
        waiting.set_value(std::move(respond));
      },
      [&](ConnectionOptions& options) { options.clock = clock; });
  const Clock::time_point deadline = clock->after(std::chrono::milliseconds(1));  // before any heartbeat
  CancellationSource source;
  const auto call_for = [&](std::string body) {
    Call call;
    call.message.body = std::move(body);
    call.deadline = deadline;
    call.cancellation = source.token();
    return call;
  };
  for (const char* const body : {"answer", "error"}) {
    Answered answered;
    pair.near->call(call_for(body), answered.done());
    static_cast<void>(answered.wait());
    CHECK(clock->next_deadline() > deadline);
  }
  const auto end = GENERATE(0, 1, 2);
  Clock::time_point during{};
  Answered answered;
  if (end == 0) {  // while it is asked where the reply goes
    Call call = call_for("bytes");
    call.place_payload = [&](std::string_view, std::uint64_t) -> StatusOr<PayloadMemory> {
      during = clock->next_deadline();
      pair.near->close(Status::aborted("by the test"));
      return Status::not_found("no room");
    };
    pair.near->call(std::move(call), answered.done());
  } else {
    pair.near->call(call_for("silence"), answered.done());
    const Responder responder = waiting.get_future().get();
    during = clock->next_deadline();
    if (end == 1) source.cancel(Status::aborted("by the test"));
    if (end == 2) pair.near->close(Status::aborted("by the test"));
  }
  CHECK(answered.wait().first.code() == Code::aborted);
  CHECK(during == deadline);
  CHECK(clock->next_deadline() > deadline);
}

TEST_CASE("as many calls run as the options say, and no body is longer", "[net]") {
  std::mutex mutex;
  std::vector<Responder> waiting;
  Pair pair(
      nullptr,
      [&](const auto&, const Incoming&, Responder respond) {
        const std::lock_guard lock(mutex);
        waiting.push_back(std::move(respond));
        if (waiting.size() == 2) waiting.clear();
      },
      [](ConnectionOptions& options) {
        options.max_calls = 2;
        options.max_body_bytes = 1000;
      });
  std::vector<Answered> answered(3);
  pair.near->call({}, answered[0].done());
  {
    const std::lock_guard lock(mutex);  // neither is answered before the third is made
    pair.near->call({}, answered[1].done());
    pair.near->call({}, answered[2].done());
  }
  CHECK(answered[2].wait().first.code() == Code::resource_exhausted);
  CHECK(answered[0].wait().first.code() == Code::internal);
  CHECK(answered[1].wait().first.code() == Code::internal);
  const auto [status, body] = ask(*pair.near, std::string(1000, 'x'));
  CHECK(status.code() == Code::invalid_argument);
  CHECK(mentions(status, "a request of 1010 bytes, more than 1000"));
  CHECK(pair.near->post(1, std::string(1000, 'x')).code() == Code::invalid_argument);
  CHECK(pair.near->is_open());
}

TEST_CASE("a reply longer than a body may be is an error of its call", "[net]") {
  Pair pair(
      nullptr,
      [&](const auto&, const Incoming& request, Responder respond) {
        respond(Outgoing{std::string(request.body.size() * 100, 'x'), {}});
      },
      [](ConnectionOptions& options) { options.max_body_bytes = 1000; });
  CHECK(mentions(ask(*pair.near, std::string(20, 'x')).first, "a reply of 2000 bytes, more than 1000"));
  CHECK(ask(*pair.near, "x").second.size() == 100);
}

// ---- the end ----

TEST_CASE("who closes a connection tells the other side why, and ends all calls", "[net]") {
  std::promise<CancellationToken> heard;
  std::vector<Responder> waiting;
  Pair pair(nullptr, [&](const auto&, const Incoming& request, Responder respond) {
    waiting.push_back(std::move(respond));
    heard.set_value(request.cancellation);
  });
  Answered answered;
  pair.near->call({}, answered.done());
  const CancellationToken token = heard.get_future().get();
  pair.near->close(Status::aborted("enough"));
  pair.near->close(Status::aborted("twice"));
  CHECK(answered.wait().first.code() == Code::aborted);
  const Status near_closed = pair.near_owner->closed(), far_closed = pair.far_owner->closed();
  CHECK(near_closed.code() == Code::aborted);
  CHECK(mentions(near_closed, "enough"));
  CHECK(far_closed.code() == Code::aborted);
  CHECK(mentions(far_closed, "enough"));
  CHECK(token.is_cancelled());
  waiting.front()(Outgoing{"too late", {}});
  for (int i = 0; i < 3; ++i) {
    CHECK_FALSE(pair.near->is_open());
    CHECK(ask(*pair.near, "").first.code() == Code::unavailable);
    CHECK(pair.far->post(1, "").code() == Code::unavailable);
  }
  CHECK(pair.near_owner->num_closed == 1);
  CHECK(pair.far_owner->num_closed == 1);
}

TEST_CASE("the end of a connection is told to all who listen for it, after its calls, and to those who come later",
          "[net]") {
  std::mutex mutex;
  std::vector<Responder> unanswered;  // if dropped, they would answer
  Pair pair(nullptr, [&](const auto&, Incoming, Responder respond) {
    const std::lock_guard lock(mutex);
    unanswered.push_back(std::move(respond));
  });
  std::vector<std::string> told;
  const auto note = [&](const std::string& what) {
    return [&, what](const Status& status, auto&&...) {
      const std::lock_guard lock(mutex);
      told.push_back(str_cat(what, " ", status.message()));
    };
  };
  const CancellationRegistration first = pair.near->end().on_cancel(note("first"));
  const CancellationRegistration second = pair.near->end().on_cancel(note("second"));
  { const CancellationRegistration gone = pair.near->end().on_cancel(note("gone")); }
  CHECK_FALSE(pair.near->end().is_cancelled());
  pair.near->call(Call{}, note("call"));
  pair.near->close(Status::unavailable("enough"));
  const CancellationRegistration late = pair.near->end().on_cancel(note("late"));
  CHECK(pair.near->end().status().code() == Code::unavailable);
  const std::lock_guard lock(mutex);
  CHECK(told == std::vector<std::string>{"call enough", "first enough", "second enough", "late enough"});
}

TEST_CASE("a connection may be closed, and let go of, by whatever it calls", "[net]") {
  SECTION("by a request") {
    Pair pair(nullptr, [](const auto& connection, const Incoming&, const Responder&) {
      connection->close(Status::aborted("by a request"));
    });
    for (int i = 0; i < 3; ++i) CHECK(pair.near->post(1, "").code() != Code::internal);
    CHECK(mentions(pair.near_owner->closed(), "by a request"));
    CHECK(pair.far_owner->num_requests == 1);  // no second one is told of
  }
  SECTION("by the end of a call") {
    Pair pair;
    std::promise<void> ended;
    pair.near->call({}, [&](const Status&, const std::string&) {
      pair.near->close(Status::aborted("by a call"));
      ended.set_value();
    });
    ended.get_future().wait();
    CHECK(mentions(pair.far_owner->closed(), "by a call"));
  }
  SECTION("by its end") {
    Pair pair;
    std::promise<Status> refused;
    pair.near_owner->also_closed = [&](Connection& connection) {
      connection.close(Status::aborted("again"));
      connection.call({}, [&](Status status, const std::string&) { refused.set_value(std::move(status)); });
    };
    pair.near->close(Status::aborted("first"));
    CHECK(mentions(pair.near_owner->closed(), "first"));
    CHECK(refused.get_future().get().code() == Code::unavailable);
  }
  SECTION("by its opening") {
    test::Wire wire;
    test::Ends ends = wire.ends();
    test::Opening far_opening;
    const auto owner = std::make_shared<test::Owner>();
    Connection::open(std::move(ends.far), Role::acceptor, test::options_of("far"), owner, far_opening.done());
    Connection::open(std::move(ends.near), Role::connector, test::options_of("near"), nullptr,
                     [](const Status&, const std::shared_ptr<Connection>& connection) {
                       connection->close(Status::aborted("by its opening"));
                     });
    CHECK(far_opening.wait().first.ok());
    CHECK(mentions(owner->closed(), "by its opening"));
  }
}

TEST_CASE("a connection that is let go of while calls run is freed with its end", "[net]") {
  const auto token = std::make_shared<int>(0);
  for (int i = 0; i < 20; ++i) {
    std::vector<Responder> waiting;
    std::promise<void> heard;
    auto pair = std::make_unique<Pair>(
        nullptr,
        [&](const auto&, const Incoming&, Responder respond) {
          waiting.push_back(std::move(respond));
          heard.set_value();
        },
        [&](ConnectionOptions& options) { options = test::holding(std::move(options), token); });
    Answered answered;
    Call call;
    call.message = {"body", shared_payload(std::string(1'000'000, 'x'))};
    call.deadline = Clock::never - std::chrono::seconds(1);
    pair->near->call(std::move(call), answered.done());
    if (i % 2 == 0) heard.get_future().wait();
    pair.reset();
    CHECK_FALSE(answered.wait().first.ok());
  }
  CHECK(test::comes_to_be_alone(token));
}

TEST_CASE("a stream that ends ends the connection, naming the task", "[net]") {
  test::Raw raw;
  const auto connection = raw.shake();
  Answered answered;
  connection->call({}, answered.done());
  raw.next(FrameType::request);
  raw.stream->close();
  const Status status = answered.wait().first;
  CHECK(status.code() == Code::unavailable);
  CHECK(status.task() == "near");
  CHECK(mentions(status, "the connection with near is lost"));
  CHECK(raw.owner->closed().code() == Code::unavailable);
}

TEST_CASE("a goodbye is heard though what is being sent to its sender cannot be", "[net]") {
  std::string body;
  ByteWriter out(body);
  write_status(out, Status::aborted("the peer's reason"));
  for (int i = 0; i < 50; ++i) {
    test::Raw raw;
    const auto connection = raw.shake();
    CHECK(connection->post(1, std::string(1'000'000, 'x')).ok());
    CHECK(raw.send(test::frame_bytes(FrameType::goodbye, 0, body)).ok());
    raw.stream->close();
    CHECK(mentions(raw.owner->closed(), "the peer's reason"));
  }
}

TEST_CASE("what is said to all that one read has brought goes together, in its order", "[net]") {
  test::Raw raw;
  const auto connection = raw.shake();
  for (int round = 0; round < 20; ++round) {
    std::string requests, replies;
    for (std::uint64_t r = 1; r <= 3; ++r) {
      const std::string body = "request " + std::to_string(r);
      requests += test::request_bytes(100 * r, body);
      replies += test::reply_bytes(100 * r, body);
    }
    REQUIRE(raw.send(requests).ok());
    std::string read(replies.size(), ' ');
    std::size_t count = 0;
    test::Ended ended;
    raw.stream->read_some(std::as_writable_bytes(std::span(read)), count, ended.completion());
    REQUIRE(ended.wait().ok());
    CHECK(count == replies.size());
    CHECK(read == replies);
  }
}

TEST_CASE("what was answered before a connection is closed goes before the goodbye", "[net]") {
  const auto answer = [](const std::shared_ptr<Connection>& connection, const Incoming& request, Responder respond) {
    if (request.body == "close") return connection->close(Status::aborted("it was asked to"));
    respond(Outgoing{request.body, {}});
  };
  test::Raw raw(test::options_of("far"), std::make_shared<test::Owner>(answer));
  const auto connection = raw.shake();
  REQUIRE(raw.send(test::request_bytes(1, "first") + test::request_bytes(2, "close") + test::request_bytes(3, "late"))
              .ok());
  test::Frame frame;
  REQUIRE(raw.read_frame(frame));
  CHECK(frame.header.type == FrameType::reply);
  CHECK(frame.header.request == 1);
  CHECK(raw.goodbye().code() == Code::aborted);
}

TEST_CASE("a goodbye ends the connection with what it says", "[net]") {
  std::string body;
  ByteWriter out(body);
  const bool has_reason = GENERATE(false, true);
  write_status(out, has_reason ? Status::aborted("the peer's reason") : Status());
  test::Lines lines;
  auto options = test::options_of("far");
  options.log = lines.log();
  test::Raw raw(options);
  raw.shake();
  CHECK(raw.send(test::frame_bytes(FrameType::goodbye, 0, body)).ok());
  const Status status = raw.owner->closed();
  CHECK(status.code() == (has_reason ? Code::aborted : Code::unavailable));
  CHECK(mentions(status, has_reason ? "the peer's reason" : "near has closed the connection"));
  CHECK(lines.count("") == 0);  // it goes as it should
}
