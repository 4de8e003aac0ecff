// ThreadSanitizer has an operator new of its own and does not follow a fork.
#if !defined(__SANITIZE_THREAD__)

#include "small_training.hpp"

#include "catch.hpp"

#include <atomic>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <new>
#include <optional>

#include <execinfo.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace dflow;
using namespace dflow::testing;

namespace {

constexpr std::int64_t never = std::int64_t{1} << 60;

/// Calls of `operator new` left until one fails; all threads count.
constinit std::atomic<std::int64_t> calls_left{never};
/// Blocks handed out and not yet taken back.
constinit std::atomic<std::int64_t> blocks_in_use{0};
/// The stack of the call that failed.
void* failed_at[48];
constinit int failed_depth = 0;

bool fails_now() noexcept {
  if (calls_left.load(std::memory_order_relaxed) > never / 2) return false;
  if (calls_left.fetch_sub(1, std::memory_order_relaxed) != 1) return false;
  failed_depth = ::backtrace(failed_at, 48);
  return true;
}

void* take(std::size_t bytes, std::size_t alignment) noexcept {
  if (fails_now()) return nullptr;
  void* block = alignment <= alignof(std::max_align_t)
                    ? std::malloc(bytes == 0 ? 1 : bytes)
                    : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (block != nullptr) blocks_in_use.fetch_add(1, std::memory_order_relaxed);
  return block;
}

void* take_or_throw(std::size_t bytes, std::size_t alignment) {
  if (void* block = take(bytes, alignment)) return block;
  throw std::bad_alloc();
}

void give_back(void* block) noexcept {
  if (block == nullptr) return;
  blocks_in_use.fetch_sub(1, std::memory_order_relaxed);
  std::free(block);
}

constexpr std::size_t usual = alignof(std::max_align_t);

}  // namespace

void* operator new(std::size_t bytes) { return take_or_throw(bytes, usual); }
void* operator new[](std::size_t bytes) { return take_or_throw(bytes, usual); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return take_or_throw(bytes, std::size_t(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return take_or_throw(bytes, std::size_t(alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return take(bytes, usual); }
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept { return take(bytes, usual); }
void operator delete(void* block) noexcept { give_back(block); }
void operator delete[](void* block) noexcept { give_back(block); }
void operator delete(void* block, std::size_t) noexcept { give_back(block); }
void operator delete[](void* block, std::size_t) noexcept { give_back(block); }
void operator delete(void* block, std::align_val_t) noexcept { give_back(block); }
void operator delete[](void* block, std::align_val_t) noexcept { give_back(block); }
void operator delete(void* block, std::size_t, std::align_val_t) noexcept { give_back(block); }
void operator delete[](void* block, std::size_t, std::align_val_t) noexcept { give_back(block); }
void operator delete(void* block, const std::nothrow_t&) noexcept { give_back(block); }
void operator delete[](void* block, const std::nothrow_t&) noexcept { give_back(block); }

namespace {

/// The exit code of a child process.
enum Outcome : int {
  fine = 0,
  not_reached = 1,
  wrong_exception = 2,
  wrong_code = 3,
  wrong_value = 4,
  leaked = 5,
  terminated = 6,
  broken = 7
};
constexpr const char* outcome_names[] = {"fine",
                                         "not reached",
                                         "an exception that is neither Error nor bad_alloc",
                                         "an Error that is not ResourceExhausted",
                                         "a wrong value afterwards",
                                         "a leak",
                                         "std::terminate",
                                         "an exception afterwards"};

/// A whole life of a program with one failure in it, then the rest of that life as if nothing had happened.
Outcome live(std::int64_t n, int threads, float expected) {
  Outcome outcome = fine;
  const std::int64_t before = blocks_in_use;
  {
    SmallTraining training;
    std::optional<SessionOptions> options(SessionOptions{.num_threads = threads});
    calls_left = n;
    try {
      training.build();
      training.open(*options);
      static_cast<void>(training.all_steps());
    } catch (const Error& error) {
      calls_left = never;
      if (error.code() != Code::resource_exhausted) {
        std::cerr << error.what() << '\n';
        outcome = wrong_code;
      }
    } catch (const std::bad_alloc&) {
    } catch (...) {
      outcome = wrong_exception;
    }
    if (calls_left > 0 && calls_left < never / 2) outcome = not_reached;
    calls_left = never;
    try {
      if (!training.is_built()) training.build();
      if (!training.is_open()) training.open(*options);
      if (training.all_steps() != expected && outcome == fine) outcome = wrong_value;
    } catch (const std::exception& error) {
      std::cerr << error.what() << '\n';
      if (outcome == fine) outcome = broken;
    }
  }
  if (outcome == fine && !comes_true([&] { return blocks_in_use <= before; })) outcome = leaked;
  return outcome;
}

[[noreturn]] void say_where_and_end() {
  static constexpr char text[] = "std::terminate; the block that failed was asked for at\n";
  static_cast<void>(!::write(2, text, sizeof text - 1));
  ::backtrace_symbols_fd(failed_at, failed_depth, 2);
  ::_exit(terminated);
}

/// Calls that fail in turn, one in each life: `first`, and every `step`-th after it before `end`.
struct Calls {
  std::int64_t first, step, end;
};

/// Runs up to 16 lives in one child process, so that a life that ends its process ends no other process. The child
/// stops at the first life that is not fine. With AddressSanitizer a fork takes longer than a life, so each fork
/// serves several. The child writes the number of the call that fails into `last`, in memory that both processes see.
int outcome_of_lives(const Calls& calls, int threads, float expected, std::int64_t& last) {
  constexpr int most = 16;
  std::cout.flush();
  const pid_t child = ::fork();
  if (child == 0) {
    std::set_terminate(say_where_and_end);
    Outcome outcome = fine;
    std::int64_t n = calls.first;
    for (int lives = 0; outcome == fine && lives < most && n < calls.end; ++lives, n += calls.step) {
      ::alarm(60);
      last = n;
      outcome = live(n, threads, expected);
    }
    if (outcome != fine && outcome != not_reached) ::backtrace_symbols_fd(failed_at, failed_depth, 2);
    ::_exit(outcome);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

std::string name_of(int outcome) { return outcome < 100 ? outcome_names[outcome] : str_cat("signal ", outcome - 100); }

std::int64_t calls_of_a_life(int threads) {
  SmallTraining training;
  calls_left = never / 2;
  training.build();
  training.open({.num_threads = threads});
  training.all_steps();
  const std::int64_t calls = never / 2 - calls_left;
  calls_left = never;
  return calls;
}

}  // namespace

/// DFLOW_EVERY_FAILURE=1 takes every call in turn, not a sample; DFLOW_FAILURE=N only the N-th.
TEST_CASE("whichever call of operator new fails, nothing but an exception comes of it", "[failures]") {
  const int threads = GENERATE(1, 2);
  void* warm_up[4];
  ::backtrace(warm_up, 4);  // loads what it needs
  // Objects that are made once per process are made here.
  SmallTraining undisturbed;
  undisturbed.build();
  undisturbed.open({.num_threads = 1});
  const float expected = undisturbed.all_steps();
  undisturbed.close();

  const std::int64_t calls = calls_of_a_life(threads);
  const char* only = std::getenv("DFLOW_FAILURE");
  const bool is_sample = std::getenv("DFLOW_EVERY_FAILURE") == nullptr;
  const std::int64_t step = is_sample ? calls / 400 + 1 : 1;
  const std::int64_t first = only != nullptr ? std::atoll(only) : 1 + threads % step;
  Calls left{first, step, only != nullptr ? first + 1 : calls};
  void* const shared = ::mmap(nullptr, sizeof left.first, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(shared != MAP_FAILED);
  std::int64_t& last = *static_cast<std::int64_t*>(shared);
  std::int64_t failures = 0;
  while (left.first < left.end) {
    last = left.first;
    const int outcome = outcome_of_lives(left, threads, expected, last);
    failures += (last - left.first) / step + (outcome == not_reached ? 0 : 1);
    if (outcome == not_reached) break;
    INFO("threads: " << threads << ", reproduce: DFLOW_FAILURE=" << last);
    if (outcome != fine) FAIL_CHECK(name_of(outcome));
    left.first = last + step;
  }
  ::munmap(shared, sizeof left.first);
  CHECK(failures > 0);
  std::cout << "count: " << failures << " of " << calls << " calls of operator new failed in turn, threads: " << threads
            << '\n';
}

#endif
