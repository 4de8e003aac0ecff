#pragma once

#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/kernels/cuda/grid/emulated_grid.hpp>

#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define DFLOW_FIBRES_TELL_ADDRESS_SANITIZER
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(DFLOW_FIBRES_TELL_ADDRESS_SANITIZER)
#include <sanitizer/common_interface_defs.h>
#undef DFLOW_FIBRES_TELL_ADDRESS_SANITIZER
#define DFLOW_FIBRES_TELL_ADDRESS_SANITIZER 1
#endif
// AddressSanitizer forgets the borders of all frames at each longjmp, with a call of the kernel, though it has been
// told of both stacks. It leaves clang's own pair alone, which clang has for x86.
#if defined(DFLOW_FIBRES_TELL_ADDRESS_SANITIZER) && defined(__clang__) && defined(__x86_64__)
#define DFLOW_FIBRES_PLACE void* [5]
#define DFLOW_FIBRES_SET(place) __builtin_setjmp(place)
#define DFLOW_FIBRES_JUMP(place) __builtin_longjmp(place, 1)
#else
#define DFLOW_FIBRES_PLACE ::jmp_buf
#define DFLOW_FIBRES_SET(place) ::_setjmp(place)
#define DFLOW_FIBRES_JUMP(place) ::_longjmp(place, 1)
#endif

namespace dflow::cuda {

/// A stack on which bodies run, one after the other. Both sides change over by a jump that leaves the signal mask
/// alone: only the first begin of a fibre takes a call of the kernel.
struct EmulatedBlock::Fibre {
  static constexpr std::size_t stack_bytes = std::size_t{1} << 16;

  std::unique_ptr<std::byte[]> stack = std::make_unique_for_overwrite<std::byte[]>(stack_bytes);
  using Place = DFLOW_FIBRES_PLACE;
  Place inside{}, outside{};
  /// The context of the first `begin`. It is no local of enter(): AddressSanitizer would go on to watch the borders
  /// of that frame, which is left for ever.
  ucontext_t context{};
  bool has_begun = false;
  State* state = nullptr;  ///< of the body; null tells the fibre to end
  std::uint32_t index = 0;
  bool is_done = true;  ///< with its body
  // AddressSanitizer's knowledge of the stacks.
  void* inside_fake_stack = nullptr;
  void* outside_fake_stack = nullptr;
  const void* outside_stack = nullptr;
  std::size_t outside_bytes = 0;

  Fibre() = default;
  Fibre(const Fibre&) = delete;
  Fibre& operator=(const Fibre&) = delete;
  /// A body that waits at a barrier is left there.
  ~Fibre() {
    state = nullptr;
    if (has_begun && is_done) resume();
  }

  void begin(State& of, std::uint32_t thread) noexcept {
    state = &of;
    index = thread;
    is_done = false;
  }
  /// Goes on inside, until that leaves.
  [[gnu::noinline, gnu::no_sanitize_address]] void resume();
  /// Goes on outside, until that resumes.
  [[gnu::noinline, gnu::no_sanitize_address]] void leave(bool for_ever = false);

 private:
  [[noreturn, gnu::noinline, gnu::no_sanitize_address]] void enter();
  static void run_bodies(unsigned low, unsigned high);
  void run_body() noexcept;
};

struct EmulatedBlock::State {
  FunctionRef<void(EmulatedBlock&, std::uint32_t)> body;
  Fibre* running = nullptr;
  std::vector<std::max_align_t> shared;
  std::size_t shared_bytes = 0;
  std::exception_ptr error;

  explicit State(FunctionRef<void(EmulatedBlock&, std::uint32_t)> of) : body(of) {}
};

void EmulatedBlock::Fibre::resume() {
#if defined(DFLOW_FIBRES_TELL_ADDRESS_SANITIZER)
  __sanitizer_start_switch_fiber(&outside_fake_stack, stack.get(), stack_bytes);
#endif
  if (DFLOW_FIBRES_SET(outside) == 0) enter();
#if defined(DFLOW_FIBRES_TELL_ADDRESS_SANITIZER)
  __sanitizer_finish_switch_fiber(outside_fake_stack, nullptr, nullptr);
#endif
}

void EmulatedBlock::Fibre::leave([[maybe_unused]] bool for_ever) {
#if defined(DFLOW_FIBRES_TELL_ADDRESS_SANITIZER)
  __sanitizer_start_switch_fiber(for_ever ? nullptr : &inside_fake_stack, outside_stack, outside_bytes);
#endif
  if (DFLOW_FIBRES_SET(inside) == 0) DFLOW_FIBRES_JUMP(outside);
#if defined(DFLOW_FIBRES_TELL_ADDRESS_SANITIZER)
  __sanitizer_finish_switch_fiber(inside_fake_stack, &outside_stack, &outside_bytes);
#endif
}

void EmulatedBlock::Fibre::enter() {
  if (has_begun) DFLOW_FIBRES_JUMP(inside);
  has_begun = true;
  ::getcontext(&context);
  context.uc_stack.ss_sp = stack.get();
  context.uc_stack.ss_size = stack_bytes;
  context.uc_link = nullptr;
  const auto at = reinterpret_cast<std::uintptr_t>(this);
  ::makecontext(&context, reinterpret_cast<void (*)()>(&Fibre::run_bodies), 2, static_cast<unsigned>(at),
                static_cast<unsigned>(at >> 32));
  ::setcontext(&context);
  std::abort();  // it returns only if the context is none
}

void EmulatedBlock::Fibre::run_bodies(unsigned low, unsigned high) {
  // makecontext() carries integers alone.
  const std::uintptr_t at = std::uintptr_t{low} | std::uintptr_t{high} << 32;
  auto& fibre = *reinterpret_cast<Fibre*>(at);  // NOLINT(performance-no-int-to-ptr)
#if defined(DFLOW_FIBRES_TELL_ADDRESS_SANITIZER)
  __sanitizer_finish_switch_fiber(nullptr, &fibre.outside_stack, &fibre.outside_bytes);
#endif
  while (fibre.state != nullptr) {
    fibre.run_body();
    fibre.leave();
  }
  fibre.leave(true);
}

void EmulatedBlock::Fibre::run_body() noexcept {
  try {
    EmulatedBlock block(*state);
    state->body(block, index);
  } catch (...) {
    if (!state->error) state->error = std::current_exception();
  }
  is_done = true;
}

void EmulatedBlock::run(std::uint32_t threads, std::uint64_t order,
                        FunctionRef<void(EmulatedBlock&, std::uint32_t)> body) {
  // For the next block: as many as the largest has had threads that waited at once, 1,024 at most, with 64 KiB each.
  thread_local std::vector<std::unique_ptr<Fibre>> idle;
  State state(body);
  std::vector<std::unique_ptr<Fibre>> fibres(threads);
  const detail::GridOrder in_order(threads, order);
  for (std::uint32_t ended = 0; ended < threads && !state.error;) {
    for (std::uint32_t i = 0; i < threads; ++i) {
      std::unique_ptr<Fibre>& fibre = fibres[in_order(i)];
      if (!fibre) {
        if (idle.empty()) idle.push_back(std::make_unique<Fibre>());
        fibre = std::move(idle.back());
        idle.pop_back();
        fibre->begin(state, in_order(i));
      }
      state.running = fibre.get();
      fibre->resume();
      if (!fibre->is_done) continue;
      ++ended;
      idle.push_back(std::move(fibre));
    }
    if (!state.error && ended != 0 && ended != threads) {
      state.error = std::make_exception_ptr(Error(
          Status::internal(str_cat(ended, " of ", threads, " threads of a block end while others wait at a barrier"))));
    }
  }
  // Fibres that have not ended keep nothing: a body holds trivial values alone.
  if (state.error) std::rethrow_exception(state.error);
}

void EmulatedBlock::barrier() { state_->running->leave(); }

void* EmulatedBlock::shared(std::size_t bytes) {
  if (state_->shared_bytes == 0) {
    state_->shared.resize((bytes + sizeof(std::max_align_t) - 1) / sizeof(std::max_align_t));
    std::memset(static_cast<void*>(state_->shared.data()), 0xa5, bytes);
    state_->shared_bytes = bytes;
  }
  if (state_->shared_bytes != bytes) throw_error(Status::internal("a kernel asks for two sizes of shared memory"));
  return state_->shared.data();
}

}  // namespace dflow::cuda

#undef DFLOW_FIBRES_TELL_ADDRESS_SANITIZER
#undef DFLOW_FIBRES_PLACE
#undef DFLOW_FIBRES_SET
#undef DFLOW_FIBRES_JUMP
