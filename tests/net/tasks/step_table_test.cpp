#include <dflow/net/tasks/step_table.hpp>

#include <catch2/catch.hpp>
#include <dflow/core/tensor.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/rendezvous_conformance.hpp"

namespace net = dflow::net;
using dflow::AnyTensor;
using dflow::Code;
using dflow::RendezvousKey;
using dflow::Status;
using dflow::Tensor;

namespace {

const std::string here = "/job:ps/replica:0/task:0";
const std::string there = "/job:worker/replica:0/task:1";

RendezvousKey key_from(const std::string& task, const std::string& name) {
  return {task + "/device:CPU:0", 1, (task == here ? there : here) + "/device:CPU:0", name};
}

/// Other tasks that answer when the test tells them to.
struct AskedTasks final : net::TensorSource {
  struct Asked {
    std::string task;
    std::uint64_t step;
    dflow::CancellationToken cancellation;
    dflow::Rendezvous::RecvDone done;
  };
  void receive(const std::string& task, std::uint64_t step, const RendezvousKey& key, const dflow::RecvArgs&,
               dflow::CancellationToken cancellation, dflow::Rendezvous::RecvDone done) override {
    asked[std::string(key.tensor_name())] = {task, step, std::move(cancellation), std::move(done)};
  }
  void push(const std::string& task, std::uint64_t, const RendezvousKey& key, const AnyTensor& tensor, bool,
            dflow::UniqueFunction<bool()>, dflow::UniqueFunction<void(Status)> failed) override {
    pushed[std::string(key.tensor_name())] = {task, tensor, std::move(failed)};
  }
  struct Pushed {
    std::string task;
    AnyTensor tensor;
    dflow::UniqueFunction<void(Status)> failed;
  };
  std::map<std::string, Asked> asked;
  std::map<std::string, Pushed> pushed;
};

struct Table {
  std::shared_ptr<AskedTasks> others = std::make_shared<AskedTasks>();
  std::shared_ptr<net::StepTable> steps = std::make_shared<net::StepTable>(net::StepTable::Options{
      .task = here, .source = others, .max_awaited = 3, .max_early_bytes = 100'000, .max_ended = 1024});
};

struct Outcome {
  int calls = 0;
  Status status;
  AnyTensor tensor;
  bool is_dead = false;

  dflow::Rendezvous::RecvDone done() {
    return [this](Status s, AnyTensor t, bool dead) {
      ++calls;
      status = std::move(s);
      tensor = std::move(t);
      is_dead = dead;
    };
  }
};

}  // namespace

TEST_CASE("the rendezvous of a step over tasks keeps what any rendezvous promises") {
  dflow::testing::check_rendezvous(
      [] {
        struct Owned {
          Table table;
          std::shared_ptr<net::StepRendezvous> rendezvous = table.steps->begin(1, "client");
        };
        const auto owned = std::make_shared<Owned>();
        return std::shared_ptr<dflow::Rendezvous>(owned, owned->rendezvous.get());
      },
      [](std::string_view tensor) { return key_from(here, std::string(tensor)); });
}

TEST_CASE("what another task sends is asked for there") {
  Table table;
  const auto step = table.steps->begin(5, "client");
  Outcome got;
  step->recv_async(key_from(there, "x"), got.done());
  REQUIRE(table.others->asked.count("x") == 1);
  CHECK(table.others->asked["x"].task == there);
  CHECK(table.others->asked["x"].step == 5);
  CHECK(got.calls == 0);
  table.others->asked["x"].done({}, Tensor<float>({2}, {1, 2}), false);
  CHECK(got.calls == 1);
  CHECK(got.tensor.span<float>()[1] == 2);
}

TEST_CASE("a tensor that cannot be had from another task ends the step") {
  Table table;
  const auto step = table.steps->begin(5, "client");
  Outcome first, second;
  step->recv_async(key_from(there, "x"), first.done());
  step->recv_async(key_from(there, "y"), second.done());
  table.others->asked["x"].done(dflow::Status::unavailable("gone"), {}, false);
  CHECK(first.status.code() == Code::unavailable);
  CHECK(second.status.code() == Code::unavailable);
  CHECK(table.others->asked["y"].cancellation.is_cancelled());
  CHECK(step->send(key_from(here, "z"), Tensor<float>({}, {1}), false).code() == Code::unavailable);
}

TEST_CASE("what is sent waits for the task that wants it, also when the parts have ended") {
  Table table;
  {
    const auto step = table.steps->begin(5, "client");
    CHECK(step->send(key_from(here, "x"), Tensor<float>({}, {3}), false).ok());
  }
  CHECK(table.steps->size() == 1);
  Outcome got;
  table.steps->serve(5, key_from(here, "x"), {}, got.done());
  CHECK(got.calls == 1);
  CHECK(got.tensor.span<float>()[0] == 3);
  CHECK(table.steps->size() == 0);
}

TEST_CASE("a task may ask before the step has begun here") {
  Table table;
  Outcome got;
  table.steps->serve(5, key_from(here, "x"), {}, got.done());
  CHECK(got.calls == 0);
  {
    const auto step = table.steps->begin(5, "client");
    CHECK(step->send(key_from(here, "x"), AnyTensor(), true).ok());
    CHECK(got.calls == 1);
    CHECK(got.is_dead);
    CHECK(table.steps->size() == 1);
  }
  CHECK(table.steps->size() == 0);
}

TEST_CASE("who asks and goes leaves nothing behind") {
  Table table;
  dflow::CancellationSource source;
  Outcome got;
  table.steps->serve(5, key_from(here, "x"), source.token(), got.done());
  CHECK(table.steps->size() == 1);
  source.cancel(dflow::Status::unavailable("the connection is gone"));
  CHECK(got.status.code() == Code::unavailable);
  CHECK(table.steps->size() == 0);
}

TEST_CASE("of steps that are asked for and do not begin the oldest are forgotten") {
  Table table;
  std::vector<Outcome> got(5);
  for (std::size_t i = 0; i < 5; ++i) table.steps->serve(i, key_from(here, "x"), {}, got[i].done());
  CHECK(got[0].status.code() == Code::resource_exhausted);
  CHECK(got[1].status.code() == Code::resource_exhausted);
  CHECK(got[2].calls == 0);
  CHECK(table.steps->size() == 3);
  const auto begun = table.steps->begin(2, "client");
  for (std::uint64_t step = 100; step < 200; ++step) {
    CHECK(table.steps->take(step, there, key_from(there, "y"), Tensor<float>(1.0f), false).ok());
  }
  CHECK(got[2].calls == 0);
  CHECK(table.steps->size() == 4);
  table.steps->cancel_all(dflow::Status::cancelled("end"));
  CHECK(got[2].calls == 1);
}

TEST_CASE("a small tensor goes to the other task unasked, and is not asked for there") {
  Table table;
  const auto step = table.steps->begin(5, "client");
  CHECK(step->send(key_from(here, "x"), Tensor<float>(3.0f), false, {.pushed = true}).ok());
  REQUIRE(table.others->pushed.count("x") == 1);
  CHECK(table.others->pushed["x"].task == there);
  CHECK(table.others->pushed["x"].tensor.span<float>()[0] == 3);
  CHECK(step->num_pending() == 0);
  Outcome got;
  dflow::RecvArgs args;
  args.pushed = true;
  step->recv_async(key_from(there, "y"), args, got.done());
  CHECK(table.others->asked.empty());
  CHECK(table.steps->take(5, there, key_from(there, "y"), Tensor<float>(4.0f), false).ok());
  CHECK(got.tensor.span<float>()[0] == 4);
  CHECK(table.steps->take(5, there, key_from(there, "y"), Tensor<float>(4.0f), false).code() == Code::aborted);
  table.others->pushed["x"].failed(dflow::Status::unavailable("gone"));
  CHECK(step->send(key_from(here, "z"), Tensor<float>(3.0f), false).code() == Code::unavailable);
}

TEST_CASE("what a thread pushes while it gathers goes with its message: of one step, to one task, of that thread") {
  Table table;
  const auto step = table.steps->begin(5, "client"), other_step = table.steps->begin(6, "client");
  const auto push = [&](const auto& to, const std::string& name, const AnyTensor& tensor) {
    CHECK(to->send(key_from(here, name), tensor, false, {.pushed = true}).ok());
  };
  const Tensor<float> small(3.0f), large({net::GatheredPushes::max_bytes / sizeof(float)});
  {
    net::GatheredPushes outer(5, there);
    {
      net::GatheredPushes inner(6, there);
      push(other_step, "inner", small);
      push(step, "not the latest", small);
      REQUIRE(inner.take().size() == 1);
      CHECK(inner.take().empty());
    }
    net::GatheredPushes elsewhere(5, here);
    push(step, "another task's", small);
  }
  CHECK(table.others->pushed.count("inner") == 0);
  CHECK(table.others->pushed.count("not the latest") == 1);
  CHECK(table.others->pushed.count("another task's") == 1);
  {
    net::GatheredPushes gathered(5, there);
    push(step, "a", small);
    push(other_step, "another step's", small);
    push(step, "large", large);
    push(step, "text", Tensor<std::string>("text"));
    std::thread([&] { CHECK(net::GatheredPushes::find(5, there) == nullptr); }).join();
    CHECK(step->send(key_from(here, "dead"), {}, true, {.pushed = true}).ok());
    const std::vector<net::PushedTensor> taken = gathered.take();
    REQUIRE(taken.size() == 2);
    CHECK(taken[0].key == key_from(here, "a").text());
    CHECK(taken[0].tensor.span<float>()[0] == 3);
    CHECK(taken[1].is_dead);
    step->push_on(taken[0]);
  }
  for (const char* const name : {"another step's", "large", "text"}) CHECK(table.others->pushed.count(name) == 1);
  CHECK(table.others->pushed.count("dead") == 0);
  push(step, "after", small);
  CHECK(table.others->pushed.count("after") == 1);
}

TEST_CASE("what comes unasked before the step has begun waits for it, and goes with who has sent it") {
  Table table;
  CHECK(table.steps->take(5, there, key_from(there, "y"), Tensor<float>(4.0f), false).ok());
  CHECK(table.steps->take(6, there, key_from(there, "y"), Tensor<float>(4.0f), false).ok());
  CHECK(table.steps->size() == 2);
  Outcome got;
  {
    const auto step = table.steps->begin(5, "client");
    dflow::RecvArgs args;
    args.pushed = true;
    step->recv_async(key_from(there, "y"), args, got.done());
    CHECK(got.calls == 1);
  }
  table.steps->cancel_all_of(there, dflow::Status::unavailable("gone"));
  CHECK(table.steps->size() == 0);
}

TEST_CASE("a step that is cancelled lets go of what was sent, and those who wait are told") {
  Table table;
  {
    const auto step = table.steps->begin(5, "client");
    CHECK(step->send(key_from(here, "x"), Tensor<float>({}, {3}), false).ok());
  }
  table.steps->cancel(5, dflow::Status::aborted("over"));
  CHECK(table.steps->size() == 0);
  Outcome waits;
  const auto second = table.steps->begin(6, "client");
  table.steps->serve(6, key_from(here, "x"), {}, waits.done());
  table.steps->cancel(6, dflow::Status::aborted("over"));
  CHECK(waits.status.code() == Code::aborted);
}

TEST_CASE("the steps of a client that is gone are cancelled, those of others are not") {
  Table table;
  const auto first = table.steps->begin(1, "gone");
  const auto second = table.steps->begin(2, "stays");
  const auto third = table.steps->begin(3, "gone");
  std::vector<Outcome> got(3);
  first->recv_async(key_from(there, "x"), got[0].done());
  second->recv_async(key_from(there, "y"), got[1].done());
  third->recv_async(key_from(there, "z"), got[2].done());
  table.steps->cancel_all_of("gone", dflow::Status::unavailable("gone"));
  CHECK(got[0].status.code() == Code::unavailable);
  CHECK(got[1].calls == 0);
  CHECK(got[2].status.code() == Code::unavailable);
  second->abort(dflow::Status::cancelled("end"));
}

TEST_CASE("a key of one step and the same of another are two, and one step that is aborted leaves the other") {
  Table table;
  const auto first = table.steps->begin(1, "client"), second = table.steps->begin(2, "client");
  std::vector<Outcome> got(2);
  first->recv_async(key_from(here, "x"), got[0].done());
  second->recv_async(key_from(here, "x"), got[1].done());
  CHECK(second->send(key_from(here, "x"), Tensor<float>(2.0f), false).ok());
  CHECK(got[0].calls == 0);
  REQUIRE(got[1].status.ok());
  CHECK(got[1].tensor.span<float>()[0] == 2);
  table.steps->cancel(2, dflow::Status::aborted("over"));
  CHECK(first->send(key_from(here, "x"), Tensor<float>(1.0f), false).ok());
  CHECK(got[0].tensor.span<float>()[0] == 1);
  table.steps->cancel_all(dflow::Status::cancelled("cleanup"));
  CHECK(first->send(key_from(here, "y"), Tensor<float>(1.0f), false).code() == Code::cancelled);
}

TEST_CASE("a step that was ended before it began ends when it begins, and so many are remembered") {
  Table table;
  table.steps->cancel(5, dflow::Status::unavailable("lost"));
  CHECK(table.steps->size() == 0);
  {
    const auto step = table.steps->begin(5, "client");
    Outcome got;
    step->recv_async(key_from(there, "x"), {.pushed = true}, got.done());
    CHECK(got.status.code() == Code::unavailable);
  }
  for (std::uint64_t step = 100; step < 1200; ++step) table.steps->cancel(step, dflow::Status::unavailable("lost"));
  const auto is_refused = [&](std::uint64_t step) {
    Outcome got;
    const auto begun = table.steps->begin(step, "client");
    begun->recv_async(key_from(there, "x"), {.pushed = true}, got.done());
    const bool refused = got.calls == 1;
    begun->abort(dflow::Status::cancelled("end"));
    return refused;
  };
  CHECK_FALSE(is_refused(100));
  CHECK(is_refused(1199));
  CHECK(table.steps->size() == 0);
}

TEST_CASE("what comes for a step that has ended by an error is not kept, and who asks is told") {
  Table table;
  const auto comes_late = [&](std::uint64_t step, Code code) {
    CHECK(table.steps->take(step, there, key_from(there, "y"), Tensor<float>(4.0f), false).code() == code);
    Outcome got;
    table.steps->serve(step, key_from(here, "x"), {}, got.done());
    CHECK(got.calls == 1);
    CHECK(got.status.code() == code);
    CHECK(table.steps->size() == 0);
  };
  table.steps->begin(1, "client")->abort(dflow::Status::internal("a kernel failed"));
  comes_late(1, Code::internal);
  {
    const auto step = table.steps->begin(2, "client");
    table.steps->cancel(2, dflow::Status::cancelled("enough"));
  }
  comes_late(2, Code::cancelled);
  table.steps->cancel(3, dflow::Status::unavailable("lost"));
  comes_late(3, Code::unavailable);
  CHECK(table.steps->take(4, there, key_from(there, "y"), Tensor<float>(4.0f), false).ok());
  table.steps->cancel_all_of(there, dflow::Status::unavailable("gone"));
  comes_late(4, Code::unavailable);
}

TEST_CASE("a step that ends well is not remembered, and what is left of it is served") {
  Table table;
  for (int round = 0; round < 2; ++round) {
    const auto step = table.steps->begin(1, "client");
    CHECK(step->send(key_from(here, "x"), Tensor<float>(1.0f), false).ok());
    Outcome got;
    table.steps->serve(1, key_from(here, "x"), {}, got.done());
    CHECK(got.status.ok());
  }
}

TEST_CASE("what waits for steps that have not begun is bounded in bytes, for each sender alone") {
  Table table;
  const std::string third = "/job:worker/replica:0/task:2";
  const auto push = [&](std::uint64_t step, const std::string& sender, const std::string& name, std::int64_t bytes) {
    return table.steps->take(step, sender, key_from(sender, name), Tensor<std::uint8_t>({bytes}), false).code();
  };
  const auto ends_when_it_begins = [&](std::uint64_t step) {
    Outcome got;
    const auto begun = table.steps->begin(step, "client");
    begun->recv_async(key_from(there, "x"), {.pushed = true}, got.done());
    begun->abort(dflow::Status::cancelled("end"));
    return got.status.code() == Code::resource_exhausted;
  };
  CHECK(push(1, there, "x", 60'000) == Code::ok);
  CHECK(push(2, there, "x", 20'000) == Code::ok);
  CHECK(push(3, third, "y", 60'000) == Code::ok);
  CHECK(push(2, there, "y", 30'000) == Code::ok);  // now the oldest of that sender is too much
  CHECK(table.steps->size() == 2);
  CHECK(push(1, there, "y", 1) == Code::resource_exhausted);
  CHECK(ends_when_it_begins(1));
  CHECK(push(4, there, "x", 200'000) == Code::resource_exhausted);  // more than there is room for
  CHECK(ends_when_it_begins(4));
  CHECK(ends_when_it_begins(2));
  // A begun step takes no room, and neither does a received tensor.
  const auto begun = table.steps->begin(5, "client");
  CHECK(push(5, there, "x", 200'000) == Code::ok);
  for (std::uint64_t step = 10; step < 20; ++step) {
    CHECK(push(step, there, "x", 60'000) == Code::ok);
    Outcome got;
    const auto later = table.steps->begin(step, "client");
    later->recv_async(key_from(there, "x"), {.pushed = true}, got.done());
    CHECK(got.status.ok());
    CHECK(got.calls == 1);
  }
  begun->abort(dflow::Status::cancelled("end"));
  table.steps->cancel_all(dflow::Status::cancelled("end"));
}

// This would take minutes if the table looked through the earlier tensors of other senders.
TEST_CASE("what a sender costs that sends too much early does not depend on what others have sent") {
  constexpr std::uint64_t many = 50'000;
  net::StepTable::Options options{.task = here, .source = std::make_shared<AskedTasks>()};
  options.max_awaited = 4 * many;
  options.max_early_bytes = 40'000;
  const auto steps = std::make_shared<net::StepTable>(options);
  const auto push = [&](std::uint64_t step, const std::string& sender, std::int64_t bytes) {
    return steps->take(step, sender, key_from(there, "x"), Tensor<std::uint8_t>({bytes}), false).ok();
  };
  std::uint64_t num_taken = 0;
  for (std::uint64_t step = 0; step < many; ++step) {
    num_taken += push(step, "/job:worker/replica:0/task:" + std::to_string(2 + step / 50), 1) ? 1 : 0;
  }
  for (std::uint64_t step = many; step < 2 * many; ++step) {
    num_taken += push(step, there, 30'000) ? 1 : 0;  // the step before goes
  }
  CHECK(num_taken == 2 * many);
  CHECK(steps->size() == many + 1);
  steps->cancel_all(dflow::Status::cancelled("end"));
  CHECK(steps->size() == 0);
}

TEST_CASE("a step that is awaited is not ended for the sake of steps that have begun") {
  Table table;
  Outcome got;
  table.steps->serve(1, key_from(here, "x"), {}, got.done());
  for (std::uint64_t step = 100; step < 200; ++step) table.steps->begin(step, "client");
  CHECK(got.calls == 0);
  const auto begun = table.steps->begin(1, "client");
  CHECK(begun->send(key_from(here, "x"), Tensor<float>(1.0f), false).ok());
  CHECK(got.status.ok());
  CHECK(got.calls == 1);
}

TEST_CASE("who waits for tensors of a task that may have lost them is told, in its incarnation alone") {
  Table table;
  const auto step = table.steps->begin(5, "client"), other = table.steps->begin(6, "client");
  const auto from_there = key_from(there, "x");
  Outcome lost, stays;
  step->recv_async(from_there, {.pushed = true}, lost.done());
  other->recv_async(key_from(here, "y"), stays.done());
  const std::uint64_t mark = table.steps->next_entry()->load();
  const auto later = table.steps->begin(7, "client");
  Outcome comes;
  later->recv_async(from_there, {.pushed = true}, comes.done());
  table.steps->cancel_waits_for(there, from_there.source_incarnation() + 1, mark, dflow::Status::unavailable("lost"));
  CHECK(lost.calls == 0);
  table.steps->cancel_waits_for(there, from_there.source_incarnation(), mark, dflow::Status::unavailable("lost"));
  CHECK(lost.status.code() == Code::unavailable);
  CHECK(stays.calls == 0);
  CHECK(comes.calls == 0);
  other->abort(dflow::Status::cancelled("end"));
  later->abort(dflow::Status::cancelled("end"));
}

TEST_CASE("a step that was pushed out and begins at that moment is forgotten when it is over") {
  Table table;
  std::shared_ptr<net::StepRendezvous> begun;
  const auto key = key_from(here, "x");
  // Another thread may do this between the two.
  table.steps->serve(1, key, {},
                     [&](const Status&, const AnyTensor&, bool) { begun = table.steps->begin(1, "client"); });
  for (std::uint64_t step = 2; step <= 5; ++step) {
    table.steps->serve(step, key, {}, [](const Status&, const AnyTensor&, bool) {});
  }
  REQUIRE(begun != nullptr);
  begun = nullptr;
  table.steps->cancel_all(dflow::Status::cancelled("the test is over"));
  CHECK(table.steps->size() == 0);
}

TEST_CASE("of what ended a step so much is remembered for those who come late, however much is said of it") {
  Table table;
  const std::string text(std::size_t{1} << 20, 'x');
  table.steps->cancel(7, dflow::Status::aborted(text).with_node(text, text).with_task(there));
  Outcome late;
  table.steps->serve(7, key_from(here, "x"), {}, late.done());
  CHECK(late.status.code() == Code::aborted);
  CHECK(late.status.task() == there);
  CHECK(late.status.to_string().size() < 4096);
}
