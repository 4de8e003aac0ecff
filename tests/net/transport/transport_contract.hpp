// The promises of every transport (dflow/net/transport/transport.hpp); the tests of each transport run them.
#pragma once

#include <dflow/net/transport/transport.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <future>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace dflow::net::test {

/// Waits for a completion. Nothing here checks: threads may use it.
class Ended {
 public:
  Completion completion() {
    return [state = state_](Status status) { state->set_value(std::move(status)); };
  }
  Status wait() {
    auto future = state_->get_future();
    if (future.wait_for(std::chrono::seconds(30)) != std::future_status::ready)
      return Status::internal("nothing has ended it");
    return future.get();
  }

 private:
  std::shared_ptr<std::promise<Status>> state_ = std::make_shared<std::promise<Status>>();
};

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

inline Status write(Stream& stream, std::vector<std::string_view> parts) {
  std::vector<std::span<const std::byte>> spans;
  for (const std::string_view part : parts) spans.push_back(bytes_of(part));
  Ended ended;
  stream.write(std::move(spans), ended.completion());
  return ended.wait();
}

/// Reads up to `size` bytes; fewer after an error, which goes to `status`.
inline std::string read(Stream& stream, std::size_t size, Status* status = nullptr) {
  std::string text(size, '\0');
  std::size_t have = 0;
  while (have < size) {
    std::size_t count = 0;
    Ended ended;
    stream.read_some(std::as_writable_bytes(std::span(text.data() + have, size - have)), count, ended.completion());
    Status read = ended.wait();
    if (read.ok() && count == 0) read = Status::internal("a read of no bytes");
    if (!read.ok()) {
      if (status != nullptr) *status = read;
      break;
    }
    have += count;
  }
  text.resize(have);
  return text;
}

struct Ends {
  std::unique_ptr<Stream> near, far;
};

inline Status connect(Transport& transport, const std::string& address, std::unique_ptr<Stream>& stream) {
  Ended ended;
  transport.connect(address, Clock::never, stream, ended.completion());
  return ended.wait();
}

/// Connects to the listener's own address, or to another address that leads to the listener.
inline Ends connected(Transport& transport, Listener& listener, const std::string& address = {}) {
  Ends ends;
  Ended accepted;
  listener.accept(ends.far, accepted.completion());
  REQUIRE(connect(transport, address.empty() ? listener.address() : address, ends.near).ok());
  REQUIRE(accepted.wait().ok());
  REQUIRE(ends.near != nullptr);
  REQUIRE(ends.far != nullptr);
  return ends;
}

/// `address` must have no listener.
inline void keeps_its_promises(Transport& transport, const std::string& address) {
  SECTION("bytes go both ways, in order, in parts and in pieces") {
    const auto listener = transport.listen(address);
    const Ends ends = connected(transport, *listener);
    CHECK(write(*ends.near, {"one ", "", "two ", "three"}).ok());
    CHECK(read(*ends.far, 3) == "one");
    CHECK(read(*ends.far, 10) == " two three");
    CHECK(write(*ends.far, {"back"}).ok());
    CHECK(read(*ends.near, 4) == "back");
    CHECK(write(*ends.near, {}).ok());
    CHECK(contains(ends.near->peer(), listener->address()));
  }
  SECTION("what does not fit on the way waits with the writer") {
    const auto listener = transport.listen(address);
    const Ends ends = connected(transport, *listener);
    std::string sent(20'000'000, '\0');
    std::mt19937 random(1);
    for (char& c : sent) c = static_cast<char>(random());
    Ended written;
    const std::string_view all = sent;
    ends.near->write({bytes_of(all.substr(0, 12'345'678)), bytes_of(all.substr(12'345'678))}, written.completion());
    std::string received;
    while (received.size() < sent.size()) {
      received += read(*ends.far, std::min<std::size_t>(1 + random() % 3'000'000, sent.size() - received.size()));
    }
    CHECK(written.wait().ok());
    CHECK(received == sent);
  }
  SECTION("what is written at once comes before what is written then, and a stream that has ended takes nothing") {
    const auto listener = transport.listen(address);
    const Ends ends = connected(transport, *listener);
    std::string expected;
    std::size_t taken = 0;
    const std::string block(100'000, 'x');
    do {
      const std::vector<std::span<const std::byte>> parts{bytes_of("ab"), bytes_of(""), bytes_of(block)};
      taken = ends.near->try_write(parts);
      REQUIRE(taken <= block.size() + 2);
      expected += ("ab" + block).substr(0, taken);
    } while (taken != 0 && expected.size() < 50'000'000);
    Ended wrote;
    ends.near->write({bytes_of("then")}, wrote.completion());
    CHECK(ends.near->try_write(std::vector<std::span<const std::byte>>{}) == 0);
    expected += "then";
    CHECK(read(*ends.far, expected.size()) == expected);
    CHECK(wrote.wait().ok());
    ends.near->close();
    CHECK(ends.near->try_write(std::vector<std::span<const std::byte>>{bytes_of("late")}) == 0);
  }
  SECTION("what was written before a side closed is read, then Unavailable, on both sides") {
    const auto listener = transport.listen(address);
    Ends ends = connected(transport, *listener);
    CHECK(write(*ends.near, {"last words"}).ok());
    ends.near->close();
    Status status;
    CHECK(read(*ends.far, 100, &status) == "last words");
    CHECK(status.code() == Code::unavailable);
    CHECK_FALSE(contains(status.message(), ends.far->peer()));  // whoever tells of it names the peer
    CHECK(read(*ends.near, 1, &status).empty());
    CHECK(status.code() == Code::unavailable);
    CHECK_FALSE(contains(status.message(), listener->address()));
    CHECK(write(*ends.near, {"more"}).code() == Code::unavailable);
    // The first write may still have gone to a buffer.
    Status later;
    for (int i = 0; i < 1000 && later.ok(); ++i) later = write(*ends.far, {std::string(100'000, 'x')});
    CHECK(later.code() == Code::unavailable);
    ends.near->close();
  }
  SECTION("closing ends a read that waits, here and there, and so does destroying") {
    const auto listener = transport.listen(address);
    for (const bool is_near : {true, false}) {
      for (const bool is_destroyed : {true, false}) {
        Ends ends = connected(transport, *listener);
        std::byte one[1], other[1];
        std::size_t count = 0, other_count = 0;
        Ended here, there;
        ends.near->read_some(one, count, here.completion());
        ends.far->read_some(other, other_count, there.completion());
        std::unique_ptr<Stream>& closed = is_near ? ends.near : ends.far;
        is_destroyed ? closed.reset() : closed->close();
        CHECK(here.wait().code() == Code::unavailable);
        CHECK(there.wait().code() == Code::unavailable);
      }
    }
  }
  SECTION("a second read or write at a time is refused, and the first goes on") {
    const auto listener = transport.listen(address);
    const Ends ends = connected(transport, *listener);
    std::byte first[4], second[4];
    std::size_t count = 0, other = 0;
    Ended one, two;
    ends.far->read_some(first, count, one.completion());
    ends.far->read_some(second, other, two.completion());
    CHECK(two.wait().code() == Code::failed_precondition);
    CHECK(write(*ends.near, {"four"}).ok());
    CHECK(one.wait().ok());
    const std::string large(30'000'000, 'x');
    Ended wrote, again;
    ends.near->write({bytes_of(large)}, wrote.completion());
    ends.near->write({bytes_of("y")}, again.completion());
    CHECK(again.wait().code() == Code::failed_precondition);
    CHECK(read(*ends.far, large.size()) == large);
    CHECK(wrote.wait().ok());
  }
  SECTION("a stream may be destroyed by its own completion, and a completion may read on") {
    const auto listener = transport.listen(address);
    for (int round = 0; round < 3; ++round) {
      Ends ends = connected(transport, *listener);
      struct Echo {
        std::unique_ptr<Stream> stream;
        std::byte byte[1] = {};
        std::size_t count = 0;
        int left = 100;
        std::promise<void> gone;

        void go() {
          stream->read_some(byte, count, [this](Status status) {
            if (status.ok() && --left > 0) return go();
            stream.reset();
            gone.set_value();
          });
        }
      };
      Echo echo;
      echo.stream = std::move(ends.far);
      echo.go();
      CHECK(write(*ends.near, {std::string(100, 'x')}).ok());
      echo.gone.get_future().wait();
      CHECK(echo.left == 0);
    }
  }
  SECTION("completions never run inside the call, nor two of one stream at once") {
    const auto listener = transport.listen(address);
    const Ends ends = connected(transport, *listener);
    struct Both {
      Stream& stream;
      std::byte byte[1] = {};
      std::size_t count = 0;
      std::atomic<int> reads{300}, writes{300}, running{0}, wrong{0};
      std::promise<void> read, written;

      explicit Both(Stream& of) : stream(of) {}
      void meet() {
        if (running.fetch_add(1) != 0) ++wrong;
        std::this_thread::yield();
        running.fetch_sub(1);
      }
      void go_on_reading() {
        stream.read_some(byte, count, [this](Status status) {
          meet();
          status.ok() && --reads > 0 ? go_on_reading() : read.set_value();
        });
      }
      void go_on_writing() {
        stream.write({bytes_of("x")}, [this](Status status) {
          meet();
          status.ok() && --writes > 0 ? go_on_writing() : written.set_value();
        });
      }
    } near(*ends.near), far(*ends.far);
    for (Both* const end : {&near, &far}) {
      end->go_on_reading();
      end->go_on_writing();
    }
    for (Both* const end : {&near, &far}) {
      end->read.get_future().wait();
      end->written.get_future().wait();
      CHECK(end->reads == 0);
      CHECK(end->writes == 0);
      CHECK(end->wrong == 0);
    }
    static thread_local bool is_calling = false;
    std::promise<bool> was_inside;
    is_calling = true;
    ends.near->write({bytes_of("y")}, [&](Status) { was_inside.set_value(is_calling); });
    is_calling = false;
    CHECK_FALSE(was_inside.get_future().get());
  }
  SECTION("three connections of a listener are three") {
    const auto listener = transport.listen(address);
    std::vector<Ends> all;
    for (int i = 0; i < 3; ++i) all.push_back(connected(transport, *listener));
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (std::size_t i = 0; i < all.size(); ++i) {
      threads.emplace_back([&, i] {
        for (int n = 0; n < 200; ++n) {
          const std::string text = std::to_string(i) + ":" + std::to_string(n);
          if (!write(*all[i].near, {text}).ok() || read(*all[i].far, text.size()) != text) ++wrong;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(wrong == 0);
  }
  SECTION("where nobody listens a connection is Unavailable, before, and after the listener has closed") {
    std::unique_ptr<Stream> stream;
    CHECK(connect(transport, address, stream).code() == Code::unavailable);
    auto listener = transport.listen(address);
    const std::string at = listener->address();
    Ended ended;
    std::unique_ptr<Stream> accepted;
    listener->accept(accepted, ended.completion());
    listener->close();
    CHECK(ended.wait().code() == Code::cancelled);
    CHECK(connect(transport, at, stream).code() == Code::unavailable);
    CHECK(stream == nullptr);
    Ended late;
    listener->accept(accepted, late.completion());
    CHECK(late.wait().code() == Code::cancelled);
    listener.reset();
    listener = transport.listen(at);
    CHECK(connected(transport, *listener).near != nullptr);
  }
  SECTION("an address is one listener's") {
    const auto listener = transport.listen(address);
    CHECK(code_of([&] { return transport.listen(listener->address()); }) == Code::already_exists);
    CHECK(connected(transport, *listener).near != nullptr);
  }
  SECTION("a connection that nobody has accepted is closed with its listener") {
    auto listener = transport.listen(address);
    std::unique_ptr<Stream> stream;
    CHECK(connect(transport, listener->address(), stream).ok());
    listener.reset();
    Status status;
    CHECK(read(*stream, 1, &status).empty());
    CHECK(status.code() == Code::unavailable);
  }
}

}  // namespace dflow::net::test
