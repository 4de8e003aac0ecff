#pragma once

#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/kernels/cuda/grid/emulated_grid.hpp>

#include <ucontext.h>

#include <algorithm>
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

namespace dflow::cuda {

struct EmulatedBlock::Fibre {
  static constexpr std::size_t stack_bytes = std::size_t{1} << 16;

  ucontext_t context{};
  std::unique_ptr<std::byte[]> stack;
  State* state = nullptr;
  std::uint32_t index = 0;
  bool ended = false;
  void* fake_stack = nullptr;
};

struct EmulatedBlock::State {
  FunctionRef<void(EmulatedBlock&, std::uint32_t)> body;
  std::vector<Fibre> fibres;
  ucontext_t scheduler{};
  void* scheduler_fake_stack = nullptr;
  const void* scheduler_stack = nullptr;
  std::size_t scheduler_stack_bytes = 0;
  Fibre* running = nullptr;
  std::vector<std::max_align_t> shared;
  std::size_t shared_bytes = 0;
  std::exception_ptr error;

  explicit State(FunctionRef<void(EmulatedBlock&, std::uint32_t)> of) : body(of) {}

  static void enter(unsigned low, unsigned high);
  void resume(Fibre& fibre);
  void leave(Fibre& fibre);
};

void EmulatedBlock::State::enter(unsigned low, unsigned high) {
  // makecontext() carries integers alone.
  const std::uintptr_t at = std::uintptr_t{low} | std::uintptr_t{high} << 32;
  auto& fibre = *reinterpret_cast<Fibre*>(at);  // NOLINT(performance-no-int-to-ptr)
  State& state = *fibre.state;
#if defined(DFLOW_FIBRES_TELL_ADDRESS_SANITIZER)
  __sanitizer_finish_switch_fiber(nullptr, &state.scheduler_stack, &state.scheduler_stack_bytes);
#endif
  try {
    EmulatedBlock block(state);
    state.body(block, fibre.index);
  } catch (...) {
    if (!state.error) state.error = std::current_exception();
  }
  fibre.ended = true;
  state.leave(fibre);
}

void EmulatedBlock::State::resume(Fibre& fibre) {
  running = &fibre;
#if defined(DFLOW_FIBRES_TELL_ADDRESS_SANITIZER)
  __sanitizer_start_switch_fiber(&scheduler_fake_stack, fibre.stack.get(), Fibre::stack_bytes);
#endif
  ::swapcontext(&scheduler, &fibre.context);
#if defined(DFLOW_FIBRES_TELL_ADDRESS_SANITIZER)
  __sanitizer_finish_switch_fiber(scheduler_fake_stack, nullptr, nullptr);
#endif
}

void EmulatedBlock::State::leave(Fibre& fibre) {
#if defined(DFLOW_FIBRES_TELL_ADDRESS_SANITIZER)
  __sanitizer_start_switch_fiber(fibre.ended ? nullptr : &fibre.fake_stack, scheduler_stack, scheduler_stack_bytes);
#endif
  ::swapcontext(&fibre.context, &scheduler);
#if defined(DFLOW_FIBRES_TELL_ADDRESS_SANITIZER)
  __sanitizer_finish_switch_fiber(fibre.fake_stack, &scheduler_stack, &scheduler_stack_bytes);
#endif
}

void EmulatedBlock::run(std::uint32_t threads, std::uint64_t order,
                        FunctionRef<void(EmulatedBlock&, std::uint32_t)> body) {
  State state(body);
  state.fibres.resize(threads);
  for (std::uint32_t t = 0; t < threads; ++t) {
    Fibre& fibre = state.fibres[t];
    fibre.stack = std::make_unique_for_overwrite<std::byte[]>(Fibre::stack_bytes);
    fibre.state = &state;
    fibre.index = t;
    ::getcontext(&fibre.context);
    fibre.context.uc_stack.ss_sp = fibre.stack.get();
    fibre.context.uc_stack.ss_size = Fibre::stack_bytes;
    fibre.context.uc_link = nullptr;
    const auto at = reinterpret_cast<std::uintptr_t>(&fibre);
    ::makecontext(&fibre.context, reinterpret_cast<void (*)()>(&State::enter), 2, static_cast<unsigned>(at),
                  static_cast<unsigned>(at >> 32));
  }
  const detail::GridOrder in_order(threads, order);
  for (;;) {
    std::uint32_t ended = 0;
    for (std::uint32_t i = 0; i < threads; ++i) {
      Fibre& fibre = state.fibres[in_order(i)];
      if (!fibre.ended) state.resume(fibre);
      ended += fibre.ended ? 1 : 0;
    }
    if (state.error || ended == threads) break;
    if (ended != 0) {
      state.error = std::make_exception_ptr(Error(
          Status::internal(str_cat(ended, " of ", threads, " threads of a block end while others wait at a barrier"))));
      break;
    }
  }
  // Fibres that have not ended keep nothing: a body holds trivial values alone.
  if (state.error) std::rethrow_exception(state.error);
}

void EmulatedBlock::barrier() { state_->leave(*state_->running); }

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
