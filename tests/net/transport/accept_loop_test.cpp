#include <dflow/net/transport/accept_loop.hpp>

#include "catch.hpp"

#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace dflow;
using namespace dflow::net;

namespace {

struct SilentStream final : Stream {
  void read_some(std::span<std::byte>, std::size_t&, Completion) override {}
  void write(std::vector<std::span<const std::byte>>, Completion) override {}
  void close() noexcept override {}
  std::string peer() const override { return "silence"; }
};

/// Accepts when it is told to.
struct ScriptedListener final : Listener {
  struct Script {
    std::unique_ptr<Stream>* into = nullptr;
    Completion waiting;
    bool accept_throws = false;
    int num_accepts = 0;
    bool is_closed = false;

    void end(Status status) {
      if (status.ok()) *into = std::make_unique<SilentStream>();
      std::exchange(waiting, nullptr)(std::move(status));
    }
  };

  explicit ScriptedListener(std::shared_ptr<Script> its_script) : script(std::move(its_script)) {}
  void accept(std::unique_ptr<Stream>& stream, Completion done) override {
    ++script->num_accepts;
    if (std::exchange(script->accept_throws, false)) throw std::runtime_error("no more descriptors");
    script->into = &stream;
    script->waiting = std::move(done);
  }
  void close() noexcept override {
    script->is_closed = true;
    if (script->waiting) script->end(Status::cancelled("closed"));
  }
  std::string address() const override { return "here"; }

  const std::shared_ptr<Script> script;
};

struct Accepting {
  std::shared_ptr<VirtualClock> clock = std::make_shared<VirtualClock>();
  std::shared_ptr<ScriptedListener::Script> script = std::make_shared<ScriptedListener::Script>();
  std::vector<std::string> lines;
  int num_admitted = 0;
  bool admit_throws = false;
  std::shared_ptr<AcceptLoop> loop = std::make_shared<AcceptLoop>(
      std::make_unique<ScriptedListener>(script),
      AcceptLoop::Options{clock, [this](std::string_view line) { lines.emplace_back(line); }, "a guest"},
      [this](std::unique_ptr<Stream> stream) {
        if (std::exchange(admit_throws, false)) throw std::runtime_error("no seat");
        num_admitted += stream != nullptr ? 1 : 0;
      });
};

}  // namespace

TEST_CASE("connections are accepted one after the other", "[net]") {
  Accepting accepting;
  CHECK(accepting.loop->address() == "here");
  accepting.loop->start();
  for (int i = 0; i < 3; ++i) accepting.script->end({});
  CHECK(accepting.num_admitted == 3);
  CHECK(accepting.script->num_accepts == 4);
  CHECK(accepting.lines.empty());
}

TEST_CASE("after a failure of any kind connections are accepted again, some time later", "[net]") {
  Accepting accepting;
  const int kind = GENERATE(0, 1, 2);
  accepting.script->accept_throws = kind == 0;
  accepting.admit_throws = kind == 1;
  accepting.loop->start();
  if (kind == 1) accepting.script->end({});
  if (kind == 2) accepting.script->end(Status::resource_exhausted("no more descriptors"));
  CHECK(accepting.script->num_accepts == 1);
  REQUIRE(accepting.lines.size() == 1);
  CHECK(accepting.lines[0].starts_with("a guest could not be accepted: "));
  accepting.clock->advance_to_next();
  CHECK(accepting.script->num_accepts == 2);
  accepting.script->end({});
  CHECK(accepting.num_admitted == 1);
}

TEST_CASE("a loop that is closed, or gone while it waits after a failure, accepts nobody any more", "[net]") {
  Accepting accepting;
  accepting.loop->start();
  SECTION("closed") {
    accepting.loop->close();
    CHECK(accepting.script->is_closed);
    CHECK(accepting.script->num_accepts == 1);
    CHECK(accepting.lines.empty());
  }
  SECTION("gone") {
    accepting.script->end(Status::resource_exhausted("no more descriptors"));
    accepting.loop = nullptr;
    accepting.clock->advance_to_next();
    CHECK(accepting.script->num_accepts == 1);
  }
}
