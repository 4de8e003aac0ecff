#include <dflow/base/reactor_thread.hpp>

#include <dflow/base/clock.hpp>
#include <dflow/base/files/file_system.hpp>
#include <dflow/base/threads/thread_pool.hpp>

#include "catch.hpp"
#include "support/errors.hpp"

#include <csignal>
#include <future>
#include <string>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

using namespace dflow;
using dflow::detail::ReactorThread;

TEST_CASE("a thread that serves sockets or timers is marked, and no other", "[threads]") {
  CHECK_FALSE(ReactorThread::is_current());
  {
    const ReactorThread outer;
    CHECK(ReactorThread::is_current());
    { const ReactorThread inner; }
    CHECK(ReactorThread::is_current());
    bool is_other = true;
    std::thread([&] { is_other = ReactorThread::is_current(); }).join();
    CHECK_FALSE(is_other);
  }
  CHECK_FALSE(ReactorThread::is_current());
  std::promise<bool> by_clock;
  RealClock clock;
  clock.schedule_after(Duration::zero(), [&] { by_clock.set_value(ReactorThread::is_current()); });
  CHECK(by_clock.get_future().get());
}

#if !defined(NDEBUG)

namespace {

/// What a process writes to standard error that makes this call on a marked thread; empty unless it aborts.
template <class F>
std::string last_words(const F& call) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t process = ::fork();
  if (process == 0) {
    ::signal(SIGABRT, SIG_DFL);
    ::dup2(ends[1], STDERR_FILENO);
    const ReactorThread marked;
    call();
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string words;
  char bytes[512];
  for (ssize_t count = 0; (count = ::read(ends[0], bytes, sizeof bytes)) > 0;) {
    words.append(bytes, static_cast<std::size_t>(count));
  }
  ::close(ends[0]);
  int status = 0;
  REQUIRE(::waitpid(process, &status, 0) == process);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT ? words : std::string();
}

}  // namespace

TEST_CASE("a debug build names a call that blocks a thread of sockets or timers", "[threads]") {
  const std::string where = " blocks a thread that serves sockets or timers";
  PoolEvent event;
  InlinePool pool;
  CHECK(contains(last_words([&] { pool.wait(event); }), "waiting for an event" + where));
  CHECK(contains(last_words([] { PosixFileSystem().read_file("/dev/null"); }), "opening a file" + where));
  const auto file = PosixFileSystem().open_for_appending("/dev/null");
  CHECK(contains(last_words([&] { file->append("x"); }), "writing a file" + where));
}

#endif
