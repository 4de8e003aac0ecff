#include "cuda/fake_driver.hpp"

#include "cuda/recorded_product.hpp"
#include "cuda/recorded_solver.hpp"
#include "cuda/recorded_transform.hpp"

#include "proof_device.hpp"

#include <dflow/base/str_cat.hpp>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>
#include <utility>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define DFLOW_FAKE_DRIVER_POISONS
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(DFLOW_FAKE_DRIVER_POISONS)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, bytes) static_cast<void>(address)
#define ASAN_UNPOISON_MEMORY_REGION(address, bytes) static_cast<void>(address)
#endif

namespace dflow::testing {

using namespace cuda;

namespace {

/// For each stream up to which of its operations something is ordered.
using FakeClock = std::map<std::uintptr_t, std::uint64_t>;

void join_clock(FakeClock& clock, const FakeClock& other) {
  for (const auto& [stream, seq] : other) clock[stream] = std::max(clock[stream], seq);
}

struct FakeUse {
  std::uintptr_t stream = 0;
  std::uint64_t seq = 0;
  bool is_before(const FakeClock& clock) const {
    const auto found = clock.find(stream);
    return found != clock.end() && found->second >= seq;
  }
};

struct FakeBlock {
  std::size_t bytes = 0;
  int device = -1;  ///< -1: pinned
  std::optional<FakeUse> write;
  std::vector<FakeUse> reads;
};

struct FakeOperation {
  std::uint64_t seq = 0;
  std::optional<FakeUse> waits_for;
  bool is_work = false;  ///< counts for `fail_work`
  std::vector<MemoryUse> uses;
  UniqueFunction<void()> run;
};

struct FakeStream {
  int device = 0;
  std::deque<FakeOperation> queue;
  std::uint64_t issued = 0;
  std::uint64_t done = 0;
  FakeClock clock;
  bool is_destroyed = false;
};

struct FakeEvent {
  FakeUse at;  ///< stream 0: never recorded
  FakeClock clock;
};

}  // namespace

struct FakeDriver::State {
  FakeDriverOptions options;
  mutable std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::unique_ptr<ProofAllocator>> memories;
  std::map<std::uintptr_t, FakeStream> streams;
  std::map<std::uintptr_t, FakeEvent> events;
  std::map<const std::byte*, FakeBlock> blocks;
  std::uintptr_t next_handle = 1;
  FakeClock host;
  std::vector<std::string> violations;
  std::map<std::string, std::uint64_t> launches;
  std::map<std::uintptr_t, ProductCall> plans;
  std::vector<ProductCall> products_made;
  std::uint64_t num_products = 0;
  std::unique_ptr<FakeConvolutions> cudnn;
  std::uint64_t num_sorts = 0;
  std::map<SolverKind, std::uint64_t> solver_calls;
  std::uint64_t calls = 0, works = 0;
  std::optional<std::pair<std::uint64_t, ErrorCode>> failing_call, failing_work;
  ErrorCode sticky = ErrorCode::ok;
  bool is_paused = false, stops = false, is_running = false;
  std::uint64_t random;
  std::thread thread;

  explicit State(FakeDriverOptions of) : options(of), random(of.seed * 2 + 1) {
    for (int d = 0; d < options.devices; ++d) {
      memories.push_back(std::make_unique<ProofAllocator>(options.memory_bytes));
    }
    thread = std::thread([this] { work(); });
  }

  /// The lock, and what the call begins with.
  ErrorCode enter(int device = 0) {
    const std::uint64_t call = calls++;
    if (sticky != ErrorCode::ok) return sticky;
    if (failing_call && failing_call->first == call) {
      const ErrorCode code = failing_call->second;
      failing_call.reset();
      if (is_sticky(code)) sticky = code;
      // From then on nothing runs, so that memory may go back at once.
      while (is_sticky(code) && is_running) {
        mutex.unlock();
        std::this_thread::yield();
        mutex.lock();
      }
      return code;
    }
    return device < 0 || device >= options.devices ? ErrorCode::invalid_device : ErrorCode::ok;
  }

  template <class T>
  T read(T State::*member) const {
    const std::lock_guard lock(mutex);
    return this->*member;
  }

  void violate(std::string what) { violations.push_back(std::move(what)); }

  FakeStream* stream_of(StreamHandle handle) {
    const auto found = streams.find(static_cast<std::uintptr_t>(handle));
    if (found == streams.end() || found->second.is_destroyed) {
      violate("a stream is used that there is not");
      return nullptr;
    }
    return &found->second;
  }
  FakeEvent* event_of(EventHandle handle) {
    const auto found = events.find(static_cast<std::uintptr_t>(handle));
    if (found == events.end()) {
      violate("an event is used that there is not");
      return nullptr;
    }
    return &found->second;
  }
  std::pair<const std::byte* const, FakeBlock>* block_of(const void* address) {
    auto after = blocks.upper_bound(static_cast<const std::byte*>(address));
    if (after == blocks.begin()) return nullptr;
    --after;
    return static_cast<const std::byte*>(address) < after->first + after->second.bytes ? &*after : nullptr;
  }

  /// What is no device memory, such as a shape in the host's, no work touches.
  std::vector<MemoryUse> uses_on(int device, std::span<const MemoryUse> uses) {
    std::vector<MemoryUse> used;
    for (const MemoryUse& use : uses) {
      const auto* block = block_of(use.block);
      if (block != nullptr && block->second.device == device) used.push_back(use);
    }
    return used;
  }

  ErrorCode push(StreamHandle handle, std::vector<MemoryUse> uses, UniqueFunction<void()> run, bool is_work,
                 const char* what) {
    FakeStream* stream = stream_of(handle);
    if (stream == nullptr) return ErrorCode::invalid_handle;
    FakeOperation operation;
    operation.seq = ++stream->issued;
    const auto id = static_cast<std::uintptr_t>(handle);
    const FakeUse now{id, operation.seq};
    join_clock(stream->clock, host);  // what the host has seen to be done comes before what it issues
    stream->clock[id] = operation.seq;
    for (const MemoryUse& use : uses) {
      auto* block = block_of(use.block);
      if (block == nullptr) {
        violate(str_cat(what, " uses memory that is not allocated"));
        continue;
      }
      const auto end = static_cast<const std::byte*>(use.block) + use.bytes;
      if (end > block->first + block->second.bytes) violate(str_cat(what, " uses memory beyond a block"));
      FakeBlock& of = block->second;
      if (of.write && !of.write->is_before(stream->clock)) {
        violate(str_cat(what, " ", use.writes ? "writes" : "reads",
                        " a block whose last write, on another stream, is not ordered before it"));
      }
      if (use.writes) {
        for (const FakeUse& read : of.reads) {
          if (!read.is_before(stream->clock))
            violate(str_cat(what, " writes a block that another stream may still read"));
        }
        of.write = now;
        of.reads.clear();
      } else {
        std::erase_if(of.reads, [&](const FakeUse& read) { return read.stream == id; });
        of.reads.push_back(now);
      }
    }
    operation.is_work = is_work;
    operation.uses = std::move(uses);
    operation.run = std::move(run);
    stream->queue.push_back(std::move(operation));
    changed.notify_all();
    return ErrorCode::ok;
  }

  void check_end_of(const FakeBlock& block, const FakeClock& clock, const char* what) {
    const auto is_open = [&](const FakeUse& use) { return !use.is_before(clock); };
    if ((block.write && is_open(*block.write)) || std::any_of(block.reads.begin(), block.reads.end(), is_open)) {
      violate(what);
    }
  }

  bool is_ready(const FakeStream& stream) const {
    if (stream.queue.empty()) return false;
    const auto& waits = stream.queue.front().waits_for;
    if (!waits) return true;
    const auto other = streams.find(waits->stream);
    return other == streams.end() || other->second.done >= waits->seq;
  }

  void work() {
    std::unique_lock lock(mutex);
    for (;;) {
      std::vector<std::uintptr_t> ready;
      if (!is_paused) {
        for (const auto& [id, stream] : streams) {
          if (is_ready(stream)) ready.push_back(id);
        }
      }
      if (ready.empty()) {
        if (stops) return;
        changed.wait(lock);
        continue;
      }
      random = random * 6364136223846793005u + 1442695040888963407u;
      const std::uintptr_t id = ready[(random >> 33) % ready.size()];
      FakeStream& stream = streams.at(id);
      FakeOperation operation = std::move(stream.queue.front());
      stream.queue.pop_front();
      if (operation.is_work && sticky == ErrorCode::ok && failing_work && failing_work->first == works++) {
        sticky = failing_work->second;
        failing_work.reset();
      }
      if (operation.run && sticky == ErrorCode::ok) {
        is_running = true;
        lock.unlock();
        if ((random >> 20) % 4 == 0) std::this_thread::yield();
        run(operation);
        lock.lock();
        is_running = false;
      }
      operation.run = nullptr;
      stream.done = operation.seq;
      if (stream.is_destroyed && stream.queue.empty()) streams.erase(id);
      changed.notify_all();
    }
  }

  /// With the memory open, of which AddressSanitizer lets it see what it said.
  void run(FakeOperation& operation) {
    std::vector<std::unique_ptr<ProofAllocator::Access>> open;
    for (const auto& memory : memories) open.push_back(std::make_unique<ProofAllocator::Access>(*memory));
    for (const MemoryUse& use : operation.uses) ASAN_UNPOISON_MEMORY_REGION(use.block, use.bytes);
    operation.run();
    for (const MemoryUse& use : operation.uses) {
      if (!is_pinned(use.block)) ASAN_POISON_MEMORY_REGION(use.block, use.bytes);
    }
  }
  bool is_pinned(const void* address) {
    const std::lock_guard lock(mutex);
    const auto* block = block_of(address);
    return block != nullptr && block->second.device < 0;
  }
};

FakeDriver::FakeDriver(FakeDriverOptions options) : state_(std::make_unique<State>(options)) {
  state_->cudnn = std::make_unique<FakeConvolutions>(*this);
}

FakeDriver::~FakeDriver() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stops = true;
    state_->is_paused = false;
    state_->changed.notify_all();
  }
  state_->thread.join();
}

std::vector<std::string> FakeDriver::violations() const { return state_->read(&State::violations); }

std::string FakeDriver::alive() const {
  const std::size_t convolutions = state_->cudnn->num_alive();
  const std::lock_guard lock(state_->mutex);
  std::size_t streams = 0, pinned = 0;
  for (const auto& [id, stream] : state_->streams) streams += stream.is_destroyed ? 0 : 1;
  for (const auto& [at, block] : state_->blocks) pinned += block.device < 0 ? 1 : 0;
  return str_cat(streams, " streams, ", state_->events.size(), " events, ", state_->blocks.size() - pinned, " blocks, ",
                 pinned, " pinned blocks, ", state_->plans.size() + convolutions, " plans");
}

bool FakeDriver::is_idle() const {
  const std::lock_guard lock(state_->mutex);
  if (state_->is_running) return false;
  for (const auto& [id, stream] : state_->streams) {
    if (!stream.queue.empty()) return false;
  }
  return true;
}

std::uint64_t FakeDriver::num_calls() const { return state_->read(&State::calls); }
std::map<std::string, std::uint64_t> FakeDriver::launches() const { return state_->read(&State::launches); }
std::vector<ProductCall> FakeDriver::products_made() const { return state_->read(&State::products_made); }
std::map<SolverKind, std::uint64_t> FakeDriver::solver_calls() const { return state_->read(&State::solver_calls); }
std::uint64_t FakeDriver::num_sorts() const { return state_->read(&State::num_sorts); }
std::uint64_t FakeDriver::num_products() const { return state_->read(&State::num_products); }

void FakeDriver::fail_call(std::uint64_t n, ErrorCode code) {
  const std::lock_guard lock(state_->mutex);
  state_->failing_call = {state_->calls + n, code};
}

void FakeDriver::fail_work(std::uint64_t n, ErrorCode code) {
  const std::lock_guard lock(state_->mutex);
  state_->works = 0;
  state_->failing_work = {n, code};
}

void FakeDriver::pause() {
  const std::lock_guard lock(state_->mutex);
  state_->is_paused = true;
}

void FakeDriver::resume() {
  const std::lock_guard lock(state_->mutex);
  state_->is_paused = false;
  state_->changed.notify_all();
}

ErrorCode FakeDriver::issue(int device, StreamHandle stream, std::span<const MemoryUse> uses,
                            UniqueFunction<void()> work) {
  const std::lock_guard lock(state_->mutex);
  if (const ErrorCode code = state_->enter(device); code != ErrorCode::ok) return code;
  return state_->push(stream, {uses.begin(), uses.end()}, std::move(work), true, "a library call");
}

ErrorCode FakeDriver::count_call(int device) {
  const std::lock_guard lock(state_->mutex);
  return state_->enter(device);
}

void FakeDriver::report(std::string violation) {
  const std::lock_guard lock(state_->mutex);
  state_->violate(std::move(violation));
}

const FakeConvolutions& FakeDriver::cudnn() const { return *state_->cudnn; }
cuda::Convolutions* FakeDriver::convolutions() noexcept {
  return state_->options.has_cudnn ? state_->cudnn.get() : nullptr;
}

ErrorCode FakeDriver::count_devices(int& count) noexcept {
  const std::lock_guard lock(state_->mutex);
  count = 0;
  if (state_->options.driver_version < state_->options.runtime_version) return ErrorCode::insufficient_driver;
  if (state_->options.devices == 0) return ErrorCode::no_device;
  const ErrorCode code = state_->enter();
  if (code == ErrorCode::ok) count = state_->options.devices;
  return code;
}

ErrorCode FakeDriver::versions(int& driver, int& runtime) noexcept {
  driver = state_->options.driver_version;
  runtime = state_->options.runtime_version;
  return ErrorCode::ok;
}

ErrorCode FakeDriver::properties(int device, DeviceProperties& properties) noexcept {
  const std::lock_guard lock(state_->mutex);
  if (const ErrorCode code = state_->enter(device); code != ErrorCode::ok) return code;
  properties = {"a GPU that is none", 9, 0, 4, state_->options.memory_bytes};
  return ErrorCode::ok;
}

ErrorCode FakeDriver::memory_info(int device, std::size_t& free_bytes, std::size_t& total_bytes) noexcept {
  const std::lock_guard lock(state_->mutex);
  if (const ErrorCode code = state_->enter(device); code != ErrorCode::ok) return code;
  total_bytes = state_->options.memory_bytes;
  free_bytes = total_bytes - state_->memories[static_cast<std::size_t>(device)]->stats().bytes_in_use;
  return ErrorCode::ok;
}

ErrorCode FakeDriver::create_stream(int device, StreamHandle& stream) noexcept {
  const std::lock_guard lock(state_->mutex);
  if (const ErrorCode code = state_->enter(device); code != ErrorCode::ok) return code;
  const std::uintptr_t handle = state_->next_handle++;
  state_->streams[handle].device = device;
  stream = static_cast<StreamHandle>(handle);
  return ErrorCode::ok;
}

ErrorCode FakeDriver::destroy_stream(int, StreamHandle stream) noexcept {
  const std::lock_guard lock(state_->mutex);
  FakeStream* of = state_->stream_of(stream);
  if (of == nullptr) return ErrorCode::invalid_handle;
  of->is_destroyed = true;
  if (of->queue.empty() && !state_->is_running) state_->streams.erase(static_cast<std::uintptr_t>(stream));
  return ErrorCode::ok;
}

ErrorCode FakeDriver::create_event(int device, EventHandle& event) noexcept {
  const std::lock_guard lock(state_->mutex);
  if (const ErrorCode code = state_->enter(device); code != ErrorCode::ok) return code;
  const std::uintptr_t handle = state_->next_handle++;
  state_->events[handle];
  event = static_cast<EventHandle>(handle);
  return ErrorCode::ok;
}

ErrorCode FakeDriver::destroy_event(int, EventHandle event) noexcept {
  const std::lock_guard lock(state_->mutex);
  if (state_->event_of(event) == nullptr) return ErrorCode::invalid_handle;
  state_->events.erase(static_cast<std::uintptr_t>(event));
  return ErrorCode::ok;
}

ErrorCode FakeDriver::record(int device, EventHandle event, StreamHandle stream) noexcept {
  const std::lock_guard lock(state_->mutex);
  if (const ErrorCode code = state_->enter(device); code != ErrorCode::ok) return code;
  FakeEvent* of = state_->event_of(event);
  FakeStream* on = state_->stream_of(stream);
  if (of == nullptr || on == nullptr) return ErrorCode::invalid_handle;
  if (on->device != device) state_->violate("an event is recorded on a stream of another device");
  of->at = {static_cast<std::uintptr_t>(stream), on->issued};
  of->clock = on->clock;
  return ErrorCode::ok;
}

ErrorCode FakeDriver::wait(int device, StreamHandle stream, EventHandle event) noexcept {
  const std::lock_guard lock(state_->mutex);
  if (const ErrorCode code = state_->enter(device); code != ErrorCode::ok) return code;
  FakeEvent* of = state_->event_of(event);
  FakeStream* on = state_->stream_of(stream);
  if (of == nullptr || on == nullptr) return ErrorCode::invalid_handle;
  if (of->at.stream == 0) return ErrorCode::ok;
  const ErrorCode code = state_->push(stream, {}, nullptr, false, "a wait");
  on->queue.back().waits_for = of->at;
  join_clock(on->clock, of->clock);
  return code;
}

ErrorCode FakeDriver::query(int device, EventHandle event) noexcept {
  const std::lock_guard lock(state_->mutex);
  if (const ErrorCode code = state_->enter(device); code != ErrorCode::ok) return code;
  FakeEvent* of = state_->event_of(event);
  if (of == nullptr) return ErrorCode::invalid_handle;
  const auto stream = state_->streams.find(of->at.stream);
  if (stream != state_->streams.end() && stream->second.done < of->at.seq) return ErrorCode::not_ready;
  join_clock(state_->host, of->clock);
  return ErrorCode::ok;
}

ErrorCode FakeDriver::wait_until_idle(int device) noexcept {
  std::unique_lock lock(state_->mutex);
  if (const ErrorCode code = state_->enter(device); code != ErrorCode::ok) return code;
  const auto is_idle = [&] {
    for (const auto& [id, stream] : state_->streams) {
      if (stream.device == device && stream.done < stream.issued) return false;
    }
    return true;
  };
  state_->changed.wait(lock, [&] { return state_->sticky != ErrorCode::ok || is_idle(); });
  for (const auto& [id, stream] : state_->streams) {
    if (stream.device == device) join_clock(state_->host, stream.clock);
  }
  return state_->sticky;
}

ErrorCode FakeDriver::allocate(int device, std::size_t bytes, StreamHandle stream, void*& block) noexcept {
  const std::lock_guard lock(state_->mutex);
  if (const ErrorCode code = state_->enter(device); code != ErrorCode::ok) return code;
  FakeStream* of = state_->stream_of(stream);
  if (of == nullptr) return ErrorCode::invalid_handle;
  try {
    block = state_->memories[static_cast<std::size_t>(device)]->allocate(bytes);
  } catch (const Error&) {
    return ErrorCode::out_of_memory;
  }
  // As if it had been written there: other streams wait for this one.
  FakeBlock made{bytes, device, std::nullopt, {}};
  made.write = FakeUse{static_cast<std::uintptr_t>(stream), ++of->issued};
  of->clock[static_cast<std::uintptr_t>(stream)] = of->issued;
  FakeOperation nothing;
  nothing.seq = of->issued;
  of->queue.push_back(std::move(nothing));
  state_->changed.notify_all();
  state_->blocks[static_cast<const std::byte*>(block)] = made;
  ASAN_POISON_MEMORY_REGION(block, bytes);
  return ErrorCode::ok;
}

ErrorCode FakeDriver::free(int device, void* block, StreamHandle stream) noexcept {
  const std::lock_guard lock(state_->mutex);
  ++state_->calls;
  FakeStream* of = state_->stream_of(stream);
  const auto found = state_->blocks.find(static_cast<const std::byte*>(block));
  if (of == nullptr || found == state_->blocks.end() || found->second.device != device) {
    state_->violate("a block is freed that there is not");
    return ErrorCode::invalid_value;
  }
  join_clock(of->clock, state_->host);
  if (state_->sticky == ErrorCode::ok) {
    state_->check_end_of(found->second, of->clock, "a block is freed while another stream may use it");
  }
  const std::size_t bytes = found->second.bytes;
  state_->blocks.erase(found);
  ProofAllocator& memory = *state_->memories[static_cast<std::size_t>(device)];
  if (state_->sticky != ErrorCode::ok) {
    memory.deallocate(block, bytes);
    return state_->sticky;
  }
  return state_->push(
      stream, {}, [&memory, block, bytes] { memory.deallocate(block, bytes); }, false, "a free");
}

ErrorCode FakeDriver::allocate_pinned(std::size_t bytes, void*& block) noexcept {
  const std::lock_guard lock(state_->mutex);
  if (const ErrorCode code = state_->enter(); code != ErrorCode::ok) return code;
  block = ::operator new(bytes, std::align_val_t{4096});
  state_->blocks[static_cast<const std::byte*>(block)] = FakeBlock{bytes, -1, std::nullopt, {}};
  return ErrorCode::ok;
}

ErrorCode FakeDriver::free_pinned(void* block) noexcept {
  const std::lock_guard lock(state_->mutex);
  ++state_->calls;
  const auto found = state_->blocks.find(static_cast<const std::byte*>(block));
  if (found == state_->blocks.end() || found->second.device >= 0) {
    state_->violate("pinned memory is freed that there is not");
    return ErrorCode::invalid_value;
  }
  if (state_->sticky == ErrorCode::ok) {
    state_->check_end_of(found->second, state_->host, "pinned memory is freed before its copy is known to be done");
  }
  state_->blocks.erase(found);
  ::operator delete(block, std::align_val_t{4096});
  return ErrorCode::ok;
}

ErrorCode FakeDriver::copy(int device, void* to, const void* from, std::size_t bytes, CopyKind kind,
                           StreamHandle stream) noexcept {
  const std::lock_guard lock(state_->mutex);
  if (const ErrorCode code = state_->enter(device); code != ErrorCode::ok) return code;
  const void* host = kind == CopyKind::to_device ? from : kind == CopyKind::to_host ? to : nullptr;
  if (host != nullptr) {
    const auto* block = state_->block_of(host);
    if (block == nullptr || block->second.device >= 0) state_->violate("a copy's host end is not pinned memory");
  }
  return state_->push(
      stream, {{from, bytes, false}, {to, bytes, true}}, [=] { std::memcpy(to, from, bytes); }, true, "a copy");
}

ErrorCode FakeDriver::copy_peer(void* to, int to_device, const void* from, int from_device, std::size_t bytes,
                                StreamHandle stream) noexcept {
  const std::lock_guard lock(state_->mutex);
  if (const ErrorCode code = state_->enter(to_device); code != ErrorCode::ok) return code;
  for (const auto& [end, device] : {std::pair<const void*, int>(to, to_device), {from, from_device}}) {
    const auto* block = state_->block_of(end);
    if (block == nullptr || block->second.device != device)
      state_->violate("a copy's end is not on the device it names");
  }
  return state_->push(
      stream, {{from, bytes, false}, {to, bytes, true}}, [=] { std::memcpy(to, from, bytes); }, true,
      "a copy between devices");
}

ErrorCode FakeDriver::fill(int device, void* to, int byte, std::size_t bytes, StreamHandle stream) noexcept {
  const std::lock_guard lock(state_->mutex);
  if (const ErrorCode code = state_->enter(device); code != ErrorCode::ok) return code;
  return state_->push(
      stream, {{to, bytes, true}}, [=] { std::memset(to, byte, bytes); }, true, "a fill");
}

ErrorCode FakeDriver::launch(int device, const KernelFunction& function, GridShape shape, const void* arguments,
                             std::span<const MemoryUse> uses, StreamHandle stream) noexcept {
  const std::lock_guard lock(state_->mutex);
  if (const ErrorCode code = state_->enter(device); code != ErrorCode::ok) return code;
  if (function.emulate == nullptr) return ErrorCode::no_kernel_image;
  if (shape.blocks == 0 || shape.threads == 0 || shape.threads > 1024 || shape.threads % 32 != 0) {
    return ErrorCode::invalid_value;
  }
  ++state_->launches[function.name];
  std::vector<std::max_align_t> copy((function.argument_bytes + sizeof(std::max_align_t) - 1) /
                                     sizeof(std::max_align_t));
  std::memcpy(static_cast<void*>(copy.data()), arguments, function.argument_bytes);
  std::vector<MemoryUse> used = state_->uses_on(device, uses);
  const std::uint64_t order = state_->random >> 40;
  return state_->push(
      stream, std::move(used),
      [emulate = function.emulate, shape, copy = std::move(copy), order] { emulate(shape, copy.data(), order); }, true,
      function.name);
}

ErrorCode FakeDriver::call_host(int device, StreamHandle stream, void (*function)(void* data), void* data) noexcept {
  const std::lock_guard lock(state_->mutex);
  if (const ErrorCode code = state_->enter(device); code != ErrorCode::ok) return code;
  return state_->push(
      stream, {}, [=] { function(data); }, false, "a call of the host");
}

ErrorCode FakeDriver::make_product_plan(int device, const ProductCall& call, std::size_t max_workspace_bytes,
                                        ProductPlanHandle& plan, std::size_t& workspace_bytes) noexcept {
  const std::lock_guard lock(state_->mutex);
  if (const ErrorCode code = state_->enter(device); code != ErrorCode::ok) return code;
  if (const std::string wrong = what_is_wrong_with(call); !wrong.empty()) {
    state_->violate(str_cat("a product: ", wrong));
    return ErrorCode::invalid_value;
  }
  const std::uintptr_t handle = state_->next_handle++;
  state_->plans.emplace(handle, call);
  state_->products_made.push_back(call);
  plan = static_cast<ProductPlanHandle>(handle);
  // Some want none.
  workspace_bytes = handle % 3 == 0 ? 0 : std::min<std::size_t>(max_workspace_bytes, 512 * (handle % 5 + 1));
  return ErrorCode::ok;
}

ErrorCode FakeDriver::destroy_product_plan(int, ProductPlanHandle plan) noexcept {
  const std::lock_guard lock(state_->mutex);
  ++state_->calls;
  if (state_->plans.erase(static_cast<std::uintptr_t>(plan)) == 1) return ErrorCode::ok;
  state_->violate("a plan of a product is destroyed that there is not");
  return ErrorCode::invalid_value;
}

bool is_said(const MemoryUse& touched, std::span<const MemoryUse> uses) {
  return std::any_of(uses.begin(), uses.end(), [&](const MemoryUse& use) {
    const auto* const begin = static_cast<const std::byte*>(use.block);
    const auto* const of = static_cast<const std::byte*>(touched.block);
    return of >= begin && of + touched.bytes <= begin + use.bytes && (use.writes || !touched.writes);
  });
}

ErrorCode FakeDriver::run_product(int device, ProductPlanHandle plan, const ProductOperands& operands,
                                  std::span<const MemoryUse> uses, StreamHandle stream) noexcept {
  const std::lock_guard lock(state_->mutex);
  if (const ErrorCode code = state_->enter(device); code != ErrorCode::ok) return code;
  const auto found = state_->plans.find(static_cast<std::uintptr_t>(plan));
  if (found == state_->plans.end()) {
    state_->violate("a product is computed by a plan that there is not");
    return ErrorCode::invalid_handle;
  }
  const ProductCall& call = found->second;
  ++state_->num_products;
  for (const auto& [data, bytes, writes] : memory_of(call, operands)) {
    if (!is_said({data, bytes, writes}, uses)) state_->violate("a product touches memory that was not said of it");
    if (reinterpret_cast<std::uintptr_t>(data) % static_cast<std::uintptr_t>(call.alignment_bytes) != 0) {
      state_->violate("an operand of a product is not aligned as its plan says");
    }
  }
  std::vector<MemoryUse> used = state_->uses_on(device, uses);
  return state_->push(
      stream, std::move(used), [call, operands] { compute_product(call, operands); }, true, "a product");
}

ErrorCode FakeDriver::sort_workspace(int device, std::int64_t count, std::int32_t key_bits,
                                     std::size_t& bytes) noexcept {
  const std::lock_guard lock(state_->mutex);
  if (const ErrorCode code = state_->enter(device); code != ErrorCode::ok) return code;
  if (count < 1 || key_bits < 1 || key_bits > 64) state_->violate("a sort of nothing");
  bytes = 256 + static_cast<std::size_t>(count) * 3;
  return ErrorCode::ok;
}

ErrorCode FakeDriver::sort_pairs(int device, const SortCall& call, void* workspace, std::size_t workspace_bytes,
                                 std::span<const MemoryUse> uses, StreamHandle stream) noexcept {
  const std::lock_guard lock(state_->mutex);
  if (const ErrorCode code = state_->enter(device); code != ErrorCode::ok) return code;
  ++state_->num_sorts;
  const auto count = static_cast<std::size_t>(call.count);
  if (workspace_bytes < 256 + count * 3) state_->violate("a sort has less memory than it takes");
  for (const MemoryUse& touched :
       {MemoryUse{call.keys, 8 * count, false}, MemoryUse{call.values, 8 * count, false},
        MemoryUse{call.sorted_keys, 8 * count, true}, MemoryUse{call.sorted_values, 8 * count, true},
        MemoryUse{workspace, workspace_bytes, true}}) {
    if (!is_said(touched, uses)) state_->violate("a sort touches memory that was not said of it");
  }
  std::vector<MemoryUse> used = state_->uses_on(device, uses);
  const auto sort = [call, workspace, workspace_bytes] {
    std::memset(workspace, 0xA5, workspace_bytes);
    std::vector<std::size_t> order(static_cast<std::size_t>(call.count));
    std::iota(order.begin(), order.end(), std::size_t{0});
    // The library looks at no other bits.
    const std::uint64_t mask = call.key_bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << call.key_bits) - 1;
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return (call.keys[a] & mask) < (call.keys[b] & mask); });
    for (std::size_t i = 0; i < order.size(); ++i) {
      call.sorted_keys[i] = call.keys[order[i]];
      call.sorted_values[i] = call.values[order[i]];
    }
  };
  return state_->push(stream, std::move(used), sort, true, "a sort");
}

ErrorCode FakeDriver::solver_workspace(int device, const SolverCall& call, const SolverOperands& operands,
                                       std::size_t& bytes) noexcept {
  const std::lock_guard lock(state_->mutex);
  if (const ErrorCode code = state_->enter(device); code != ErrorCode::ok) return code;
  for (const MemoryUse& touched : memory_of(call, operands)) {
    if (touched.block == nullptr) state_->violate("the memory of a decomposition is asked for without an operand");
  }
  if (const std::string wrong = what_is_wrong_with(call); !wrong.empty()) {
    state_->violate(str_cat("a decomposition: ", wrong));
  }
  bytes = workspace_of(call);
  return ErrorCode::ok;
}

ErrorCode FakeDriver::run_solver(int device, const SolverCall& call, const SolverOperands& operands,
                                 std::span<const MemoryUse> uses, StreamHandle stream) noexcept {
  const std::lock_guard lock(state_->mutex);
  if (const ErrorCode code = state_->enter(device); code != ErrorCode::ok) return code;
  ++state_->solver_calls[call.kind];
  if (const std::string wrong = what_is_wrong_with(call); !wrong.empty()) {
    state_->violate(str_cat("a decomposition: ", wrong));
  }
  if (operands.workspace_bytes < workspace_of(call)) state_->violate("a decomposition has less memory than it takes");
  for (const MemoryUse& touched : memory_of(call, operands)) {
    if (!is_said(touched, uses)) state_->violate("a decomposition touches memory that was not said of it");
  }
  std::vector<MemoryUse> used = state_->uses_on(device, uses);
  return state_->push(
      stream, std::move(used), [call, operands] { compute_solver(call, operands); }, true, "a decomposition");
}

ErrorCode FakeDriver::transform_workspace(int device, const TransformCall& call, std::size_t& bytes) noexcept {
  const std::lock_guard lock(state_->mutex);
  if (const ErrorCode code = state_->enter(device); code != ErrorCode::ok) return code;
  if (const std::string wrong = what_is_wrong_with(call); !wrong.empty()) {
    state_->violate(str_cat("a transform: ", wrong));
  }
  bytes = workspace_of(call);
  return ErrorCode::ok;
}

ErrorCode FakeDriver::run_transform(int device, const TransformCall& call, void* from, void* to, void* workspace,
                                    std::size_t workspace_bytes, std::span<const MemoryUse> uses,
                                    StreamHandle stream) noexcept {
  const std::lock_guard lock(state_->mutex);
  if (const ErrorCode code = state_->enter(device); code != ErrorCode::ok) return code;
  if (const std::string wrong = what_is_wrong_with(call); !wrong.empty()) {
    state_->violate(str_cat("a transform: ", wrong));
  }
  if (workspace_bytes < workspace_of(call)) state_->violate("a transform has less memory than it takes");
  std::vector<MemoryUse> touched = memory_of(call, from, to);
  if (workspace_bytes != 0) touched.push_back({workspace, workspace_bytes, true});
  for (const MemoryUse& each : touched) {
    if (!is_said(each, uses)) state_->violate("a transform touches memory that was not said of it");
  }
  std::vector<MemoryUse> used = state_->uses_on(device, uses);
  const auto transform = [call, from, to, workspace, workspace_bytes] {
    if (workspace_bytes != 0) std::memset(workspace, 0xA5, workspace_bytes);
    compute_transform(call, from, to);
  };
  return state_->push(stream, std::move(used), transform, true, "a transform");
}

}  // namespace dflow::testing
