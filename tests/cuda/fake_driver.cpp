#include "cuda/fake_driver_state.hpp"

#include <cstring>
#include <utility>

namespace dflow::testing {

using namespace cuda;

FakeDriver::FakeDriver(FakeDriverOptions options) : state_(std::make_unique<State>(options)) {
  state_->cudnn = std::make_unique<FakeConvolutions>(*this);
  state_->nvrtc = std::make_unique<FakePrograms>(*this);
  state_->nccl = std::make_unique<FakeCollectives>(*this);
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
  const std::size_t of_libraries = state_->cudnn->num_alive() + state_->nvrtc->num_alive() + state_->nccl->num_alive();
  const std::lock_guard lock(state_->mutex);
  std::size_t streams = 0, pinned = 0;
  for (const auto& [id, stream] : state_->streams) streams += stream.is_destroyed ? 0 : 1;
  for (const auto& [at, block] : state_->blocks) pinned += block.device < 0 ? 1 : 0;
  return str_cat(streams, " streams, ", state_->events.size(), " events, ", state_->blocks.size() - pinned, " blocks, ",
                 pinned, " pinned blocks, ", state_->plans.size() + of_libraries + state_->graphs.size(), " plans");
}

bool FakeDriver::is_idle() const {
  const std::lock_guard lock(state_->mutex);
  if (state_->is_running) return false;
  for (const auto& [id, stream] : state_->streams) {
    if (!stream.queue.empty()) return false;
  }
  return true;
}

bool FakeDriver::is_lost() const {
  return is_sticky(state_->read(&State::sticky)) || !state_->read(&State::lost).empty();
}
std::uint64_t FakeDriver::num_calls() const { return state_->read(&State::calls); }
std::map<std::string, std::uint64_t> FakeDriver::launches() const { return state_->read(&State::launches); }
std::vector<ProductCall> FakeDriver::products_made() const { return state_->read(&State::products_made); }
std::map<SolverKind, std::uint64_t> FakeDriver::solver_calls() const { return state_->read(&State::solver_calls); }
std::uint64_t FakeDriver::num_graphs_launched() const { return state_->read(&State::num_graphs_launched); }
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

std::size_t FakeDriver::make_held_host_calls() {
  std::vector<UniqueFunction<void()>> calls;
  {
    const std::lock_guard lock(state_->mutex);
    calls.swap(state_->held_host_calls);
  }
  for (UniqueFunction<void()>& call : calls) call();
  return calls.size();
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

ErrorCode FakeDriver::issue_member(int device, StreamHandle stream, std::vector<MemoryUse> uses,
                                   const std::shared_ptr<FakeGroupCall>& together, UniqueFunction<void()> work) {
  const std::lock_guard lock(state_->mutex);
  if (const ErrorCode code = state_->enter(device); code != ErrorCode::ok) return code;
  for (const MemoryUse& use : uses) {
    const auto* block = state_->block_of(use.block);
    if (block == nullptr || block->second.device != device) state_->violate("a member's memory is not on its device");
  }
  FakeStream* const on = state_->stream_of(stream);
  if (on == nullptr) return ErrorCode::invalid_handle;
  if (on->device != device) state_->violate("a member is issued to a stream of another device");
  const ErrorCode code = state_->push(stream, std::move(uses), std::move(work), true, "a collective");
  if (code != ErrorCode::ok) return code;
  on->queue.back().together = together;
  together->streams.push_back(static_cast<std::uintptr_t>(stream));
  return code;
}

bool FakeDriver::end_group_calls(std::span<const std::shared_ptr<FakeGroupCall>> calls, bool aborts) {
  const std::lock_guard lock(state_->mutex);
  bool are_over = true;
  for (const std::shared_ptr<FakeGroupCall>& call : calls) {
    are_over &= call->is_over;
    call->is_over = true;
  }
  state_->changed.notify_all();
  return are_over || aborts || state_->sticky != ErrorCode::ok || !state_->lost.empty();
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
FakePrograms& FakeDriver::nvrtc() { return *state_->nvrtc; }
FakeCollectives& FakeDriver::nccl() { return *state_->nccl; }
cuda::Collectives* FakeDriver::collectives() noexcept {
  return state_->options.has_nccl ? state_->nccl.get() : nullptr;
}
cuda::Programs* FakeDriver::programs() noexcept { return state_->options.has_nvrtc ? state_->nvrtc.get() : nullptr; }
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
  if (of->capture != nullptr) state_->violate("a stream is destroyed that captures");
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
  if (on->capture != nullptr) {
    on->is_invalidated = true;
    return ErrorCode::capture_unsupported;
  }
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
  if (code != ErrorCode::ok) return code;
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

ErrorCode FakeDriver::wait_until_idle(int device, StreamHandle stream) noexcept {
  std::unique_lock lock(state_->mutex);
  if (const ErrorCode code = state_->enter(device); code != ErrorCode::ok) return code;
  const FakeStream* of = state_->stream_of(stream);
  if (of == nullptr) return ErrorCode::invalid_handle;
  if (of->capture != nullptr) state_->violate("the host waits for a stream that captures");
  state_->changed.wait(lock, [&] { return state_->sticky_of(device) != ErrorCode::ok || of->done == of->issued; });
  if (state_->sticky_of(device) != ErrorCode::ok) return state_->lost_code(device);
  join_clock(state_->host, of->clock);
  return ErrorCode::ok;
}

ErrorCode FakeDriver::allocate(int device, std::size_t bytes, StreamHandle stream, void*& block) noexcept {
  const std::lock_guard lock(state_->mutex);
  if (const ErrorCode code = state_->enter(device); code != ErrorCode::ok) return code;
  FakeStream* of = state_->stream_of(stream);
  if (of == nullptr) return ErrorCode::invalid_handle;
  if (of->capture != nullptr) state_->violate("memory is allocated by a graph");
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
  if (of->capture != nullptr) state_->violate("memory is freed by a graph");
  join_clock(of->clock, state_->host);
  if (state_->sticky_of(device) == ErrorCode::ok) {
    state_->check_end_of(found->second, of->clock, "a block is freed while another stream may use it");
  }
  const std::size_t bytes = found->second.bytes;
  state_->blocks.erase(found);
  ProofAllocator& memory = *state_->memories[static_cast<std::size_t>(device)];
  if (state_->sticky_of(device) != ErrorCode::ok) {
    memory.deallocate(block, bytes);
    return state_->sticky_of(device);
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
  if (state_->sticky == ErrorCode::ok && state_->lost.empty()) {
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
  if (FakeStream* to = state_->stream_of(stream); to != nullptr && to->capture != nullptr) {
    to->capture->launches.push_back(function.name);
  } else {
    ++state_->launches[function.name];
  }
  std::vector<std::max_align_t> copy((function.argument_bytes + sizeof(std::max_align_t) - 1) /
                                     sizeof(std::max_align_t));
  std::memcpy(static_cast<void*>(copy.data()), arguments, function.argument_bytes);
  std::vector<MemoryUse> used = state_->uses_on(device, uses);
  const std::uint64_t order = state_->random >> 40;
  std::shared_ptr<const void> program = function.entry == nullptr ? nullptr : state_->nvrtc->use_of(function);
  if (function.entry != nullptr && program == nullptr) state_->violate("a kernel is launched that was unloaded");
  return state_->push(
      stream, std::move(used),
      [emulate = function.emulate, shape, copy = std::move(copy), order, program = std::move(program)] {
        emulate(shape, copy.data(), order);
      },
      true, function.name);
}

ErrorCode FakeDriver::call_host(int device, StreamHandle stream, void (*function)(void* data), void* data) noexcept {
  const std::lock_guard lock(state_->mutex);
  if (const ErrorCode code = state_->enter(device); code != ErrorCode::ok) return code;
  if (state_->options.holds_host_calls) {
    state_->held_host_calls.push_back([=] { function(data); });
    return ErrorCode::ok;
  }
  return state_->push(
      stream, {}, [=] { function(data); }, false, "a call of the host");
}

ErrorCode FakeDriver::begin_capture(int device, StreamHandle stream) noexcept {
  const std::lock_guard lock(state_->mutex);
  if (const ErrorCode code = state_->enter(device); code != ErrorCode::ok) return code;
  FakeStream* of = state_->stream_of(stream);
  if (of == nullptr) return ErrorCode::invalid_handle;
  if (of->capture != nullptr) state_->violate("a stream captures twice");
  of->capture = std::make_shared<FakeGraph>();
  of->capture->device = device;
  of->capturer = std::this_thread::get_id();
  of->is_invalidated = false;
  return ErrorCode::ok;
}

ErrorCode FakeDriver::end_capture(int device, StreamHandle stream, GraphHandle* graph) noexcept {
  const std::lock_guard lock(state_->mutex);
  FakeStream* of = state_->stream_of(stream);
  if (of == nullptr || of->capture == nullptr) {
    state_->violate("a stream ends a capture that it has not begun");
    return ErrorCode::invalid_handle;
  }
  const std::shared_ptr<FakeGraph> captured = std::exchange(of->capture, nullptr);
  if (const ErrorCode code = state_->enter(device); code != ErrorCode::ok) return code;
  if (of->is_invalidated) return ErrorCode::capture_invalidated;
  if (graph == nullptr) return ErrorCode::ok;
  const std::uintptr_t handle = state_->next_handle++;
  state_->graphs.emplace(handle, captured);
  *graph = static_cast<GraphHandle>(handle);
  return ErrorCode::ok;
}

ErrorCode FakeDriver::launch_graph(int device, GraphHandle graph, StreamHandle stream) noexcept {
  const std::lock_guard lock(state_->mutex);
  if (const ErrorCode code = state_->enter(device); code != ErrorCode::ok) return code;
  const auto found = state_->graphs.find(static_cast<std::uintptr_t>(graph));
  if (found == state_->graphs.end() || found->second->device != device) {
    state_->violate("a graph is launched that there is not");
    return ErrorCode::invalid_handle;
  }
  const std::shared_ptr<FakeGraph>& of = found->second;
  for (const char* name : of->launches) ++state_->launches[name];
  ++state_->num_graphs_launched;
  ++of->num_pending;
  return state_->push(
      stream, of->uses,
      [of] {
        for (UniqueFunction<void()>& work : of->work) work();
        --of->num_pending;
      },
      true, "a graph");
}

ErrorCode FakeDriver::destroy_graph(int, GraphHandle graph) noexcept {
  const std::lock_guard lock(state_->mutex);
  ++state_->calls;
  const auto found = state_->graphs.find(static_cast<std::uintptr_t>(graph));
  if (found == state_->graphs.end()) {
    state_->violate("a graph is destroyed that there is not");
    return ErrorCode::invalid_handle;
  }
  if (state_->sticky == ErrorCode::ok && state_->lost.empty() && found->second->num_pending != 0) {
    state_->violate("a graph is destroyed while it runs");
  }
  state_->graphs.erase(found);
  return ErrorCode::ok;
}

}  // namespace dflow::testing
