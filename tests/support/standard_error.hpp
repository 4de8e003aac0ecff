// Standard error as a pipe whose reader a test stops, or takes away.
#pragma once

#include "catch.hpp"

#include <atomic>
#include <csignal>
#include <cstddef>
#include <string>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

namespace dflow::testing {

/// Standard error goes to a pipe that nobody reads, as long as this lives.
class StandardErrorPipe {
 public:
  StandardErrorPipe() : before_(::dup(STDERR_FILENO)) {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    read_end_ = ends[0];
    REQUIRE(::dup2(ends[1], STDERR_FILENO) == STDERR_FILENO);
    ::close(ends[1]);
  }
  /// Writes that still wait end with an error.
  ~StandardErrorPipe() {
    ::dup2(before_, STDERR_FILENO);
    ::close(before_);
    take_reader_away();
  }
  StandardErrorPipe(const StandardErrorPipe&) = delete;
  StandardErrorPipe& operator=(const StandardErrorPipe&) = delete;

  /// The next write to standard error waits for the reader.
  void fill() {
    const int flags = ::fcntl(STDERR_FILENO, F_GETFL);
    ::fcntl(STDERR_FILENO, F_SETFL, flags | O_NONBLOCK);
    const std::string filling(4096, '.');
    while (::write(STDERR_FILENO, filling.data(), filling.size()) > 0) {
    }
    while (::write(STDERR_FILENO, ".", 1) > 0) {
    }
    ::fcntl(STDERR_FILENO, F_SETFL, flags);
  }
  /// Reads until `text` has come, and returns all that was read. Without it: all that is there after 30 s.
  std::string read_until(const std::string& text) {
    std::string all;
    char bytes[4096];
    for (pollfd ready{read_end_, POLLIN, 0}; all.find(text) == std::string::npos && ::poll(&ready, 1, 30'000) == 1;) {
      const ssize_t count = ::read(read_end_, bytes, sizeof bytes);
      if (count <= 0) break;
      all.append(bytes, static_cast<std::size_t>(count));
    }
    return all;
  }
  void take_reader_away() {
    if (read_end_ >= 0) ::close(read_end_);
    read_end_ = -1;
  }

 private:
  const int before_;
  int read_end_ = -1;
};

/// Counts the process's SIGPIPEs, which else would end it.
class BrokenPipeCount {
 public:
  BrokenPipeCount() {
    count() = 0;
    struct sigaction counting {};
    counting.sa_handler = [](int) { ++count(); };
    ::sigaction(SIGPIPE, &counting, &before_);
  }
  ~BrokenPipeCount() { ::sigaction(SIGPIPE, &before_, nullptr); }
  BrokenPipeCount(const BrokenPipeCount&) = delete;
  BrokenPipeCount& operator=(const BrokenPipeCount&) = delete;

  static std::atomic<int>& count() noexcept {
    static std::atomic<int> number{0};
    return number;
  }

 private:
  struct sigaction before_ {};
};

}  // namespace dflow::testing
