#pragma once

#include "cuda/fake_driver.hpp"

#include "support/proof_allocator.hpp"

#include <dflow/base/str_cat.hpp>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

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

/// For each stream, its last operation that something is ordered after.
using FakeClock = std::map<std::uintptr_t, std::uint64_t>;

inline void join_clock(FakeClock& clock, const FakeClock& other) {
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
  std::shared_ptr<FakeGroupCall> together;  ///< null: it is this stream's alone
  bool is_work = false;                     ///< counts for `fail_work`
  std::vector<cuda::MemoryUse> uses;
  UniqueFunction<void()> run;
  std::vector<std::pair<std::uintptr_t, std::uint64_t>> members = {};  ///< of other streams, which it is part of, too
};

/// The work that was issued to a stream that captured, in order.
struct FakeGraph {
  std::vector<cuda::MemoryUse> uses;
  std::vector<UniqueFunction<void()>> work;
  std::vector<const char*> launches;
  int device = 0;
  std::atomic<int> num_pending{0};  ///< launches that have not run
};

struct FakeStream {
  std::shared_ptr<FakeGraph> capture;
  std::thread::id capturer;
  bool is_invalidated = false;
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
  std::map<std::uintptr_t, std::shared_ptr<FakeGraph>> graphs;
  std::uint64_t num_graphs_launched = 0;
  std::map<std::uintptr_t, cuda::ProductCall> plans;
  std::vector<cuda::ProductCall> products_made;
  std::uint64_t num_products = 0;
  std::unique_ptr<FakeConvolutions> cudnn;
  std::unique_ptr<FakePrograms> nvrtc;
  std::unique_ptr<FakeCollectives> nccl;
  std::uint64_t num_sorts = 0;
  std::map<cuda::SolverKind, std::uint64_t> solver_calls;
  std::uint64_t calls = 0, works = 0;
  std::optional<std::pair<std::uint64_t, cuda::ErrorCode>> failing_call, failing_work;
  cuda::ErrorCode sticky = cuda::ErrorCode::ok;  ///< of all devices
  std::map<int, cuda::ErrorCode> lost;           ///< devices that are alone with theirs
  std::vector<UniqueFunction<void()>> held_host_calls;
  bool is_paused = false, stops = false, is_running = false;
  std::uint64_t random;
  std::thread thread;

  explicit State(FakeDriverOptions of) : options(of), random(of.seed * 2 + 1) {
    for (int d = 0; d < options.devices; ++d) {
      memories.push_back(std::make_unique<ProofAllocator>(options.memory_bytes));
    }
    thread = std::thread([this] { work(); });
  }

  cuda::ErrorCode sticky_of(int device) const {
    const auto found = lost.find(device);
    return found == lost.end() ? sticky : found->second;
  }
  void stick(int device, cuda::ErrorCode code) { (options.loses_one ? lost[device] : sticky) = code; }

  /// What a call on a lost device ends with. From then on nothing runs, so that memory may go back at once.
  cuda::ErrorCode lost_code(int device) {
    while (is_running) {
      mutex.unlock();
      std::this_thread::yield();
      mutex.lock();
    }
    return sticky_of(device);
  }

  /// The beginning of each call; the caller holds the lock.
  cuda::ErrorCode enter(int device = 0) {
    const std::uint64_t call = calls++;
    if (failing_call && failing_call->first == call && sticky_of(device) == cuda::ErrorCode::ok) {
      const cuda::ErrorCode code = failing_call->second;
      failing_call.reset();
      if (!cuda::is_sticky(code)) return code;
      stick(device, code);
    }
    if (sticky_of(device) != cuda::ErrorCode::ok) return lost_code(device);
    return device < 0 || device >= options.devices ? cuda::ErrorCode::invalid_device : cuda::ErrorCode::ok;
  }

  template <class T>
  T read(T State::*member) const {
    const std::lock_guard lock(mutex);
    return this->*member;
  }

  void violate(std::string what) { violations.push_back(std::move(what)); }

  FakeStream* stream_of(cuda::StreamHandle handle) {
    const auto found = streams.find(static_cast<std::uintptr_t>(handle));
    if (found == streams.end() || found->second.is_destroyed) {
      violate("a stream is used that there is not");
      return nullptr;
    }
    return &found->second;
  }
  FakeEvent* event_of(cuda::EventHandle handle) {
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

  /// The uses of device memory. Work touches no other memory, for example a shape in the host's memory.
  std::vector<cuda::MemoryUse> uses_on(int device, std::span<const cuda::MemoryUse> uses) {
    std::vector<cuda::MemoryUse> used;
    for (const cuda::MemoryUse& use : uses) {
      const auto* block = block_of(use.block);
      if (block != nullptr && block->second.device == device) used.push_back(use);
    }
    return used;
  }

  cuda::ErrorCode push(cuda::StreamHandle handle, std::vector<cuda::MemoryUse> uses, UniqueFunction<void()> run,
                       bool is_work, const char* what) {
    FakeStream* stream = stream_of(handle);
    if (stream == nullptr) return cuda::ErrorCode::invalid_handle;
    if (stream->capture != nullptr) return capture(*stream, uses, std::move(run), is_work, what);
    FakeOperation operation;
    operation.seq = ++stream->issued;
    const auto id = static_cast<std::uintptr_t>(handle);
    const FakeUse now{id, operation.seq};
    join_clock(stream->clock, host);  // what the host has seen to be done comes before what it issues
    stream->clock[id] = operation.seq;
    for (const cuda::MemoryUse& use : uses) {
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
    return cuda::ErrorCode::ok;
  }

  cuda::ErrorCode capture(FakeStream& stream, const std::vector<cuda::MemoryUse>& uses, UniqueFunction<void()> run,
                          bool is_work, const char* what) {
    if (stream.capturer != std::this_thread::get_id()) violate(str_cat(what, " comes from a thread that captures not"));
    for (const cuda::MemoryUse& use : uses) {
      const auto* block = block_of(use.block);
      if (block == nullptr || block->second.device < 0) violate(str_cat(what, " in a graph uses memory of the host"));
    }
    if (!is_work) {
      stream.is_invalidated = true;
      return cuda::ErrorCode::capture_unsupported;
    }
    FakeGraph& graph = *stream.capture;
    graph.uses.insert(graph.uses.end(), uses.begin(), uses.end());
    graph.work.push_back(std::move(run));
    return cuda::ErrorCode::ok;
  }

  void check_end_of(const FakeBlock& block, const FakeClock& clock, const char* what) {
    const auto is_open = [&](const FakeUse& use) { return !use.is_before(clock); };
    if ((block.write && is_open(*block.write)) || std::any_of(block.reads.begin(), block.reads.end(), is_open)) {
      violate(what);
    }
  }

  bool is_ready(const FakeStream& stream) const {
    if (stream.queue.empty()) return false;
    if (lost.contains(stream.device)) return true;  // and runs nothing
    if (stream.queue.front().together != nullptr) return is_ready(stream.queue.front().together);
    const auto& waits = stream.queue.front().waits_for;
    if (!waits) return true;
    const auto other = streams.find(waits->stream);
    return other == streams.end() || other->second.done >= waits->seq;
  }

  /// True if all streams have come to the call.
  bool is_ready(const std::shared_ptr<FakeGroupCall>& together) const {
    if (together->is_over || sticky != cuda::ErrorCode::ok) return true;
    return together->streams.size() == together->num_members &&
           std::all_of(together->streams.begin(), together->streams.end(), [&](std::uintptr_t id) {
             const auto stream = streams.find(id);
             return stream != streams.end() && !stream->second.queue.empty() &&
                    stream->second.queue.front().together == together;
           });
  }
  /// Ends the calls of streams that wait for each other for ever: all members of the calls have been issued.
  bool break_deadlock() {
    if (!lost.empty()) return false;  // somebody is to end what waits for them
    std::vector<std::shared_ptr<FakeGroupCall>> waiting;
    for (const auto& [id, stream] : streams) {
      if (stream.queue.empty()) continue;
      const auto& together = stream.queue.front().together;
      if (together == nullptr) continue;
      if (together->streams.size() < together->num_members) return false;  // may go on yet
      waiting.push_back(together);
    }
    if (waiting.empty()) return false;
    violate("streams wait for each other for ever");
    for (const auto& together : waiting) together->is_over = true;
    return true;
  }
  /// The members' operations at the head of the other streams become part of the operation of the stream `id`.
  void gather_members(FakeOperation& operation, std::uintptr_t id) {
    operation.together->is_over = true;
    for (const std::uintptr_t other : operation.together->streams) {
      if (other == id) continue;
      FakeStream& stream = streams.at(other);
      FakeOperation member = std::move(stream.queue.front());
      stream.queue.pop_front();
      operation.uses.insert(operation.uses.end(), member.uses.begin(), member.uses.end());
      if (member.run) operation.run = std::move(member.run);
      operation.members.emplace_back(other, member.seq);
    }
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
        if (!is_paused && break_deadlock()) continue;
        changed.wait(lock);
        continue;
      }
      random = random * 6364136223846793005u + 1442695040888963407u;
      const std::uintptr_t id = ready[(random >> 33) % ready.size()];
      FakeStream& stream = streams.at(id);
      FakeOperation operation = std::move(stream.queue.front());
      stream.queue.pop_front();
      if (operation.together != nullptr && !operation.together->is_over &&
          sticky_of(stream.device) == cuda::ErrorCode::ok) {
        gather_members(operation, id);
      } else if (operation.together != nullptr) {
        operation.run = nullptr;
      }
      if (operation.is_work && sticky_of(stream.device) == cuda::ErrorCode::ok && failing_work &&
          failing_work->first == works++) {
        stick(stream.device, failing_work->second);
        failing_work.reset();
      }
      if (operation.run && sticky_of(stream.device) == cuda::ErrorCode::ok) {
        is_running = true;
        lock.unlock();
        if ((random >> 20) % 4 == 0) std::this_thread::yield();
        run(operation);
        lock.lock();
        is_running = false;
      }
      operation.run = nullptr;
      stream.done = operation.seq;
      for (const auto& [other, seq] : operation.members) {
        FakeStream& of_member = streams.at(other);
        of_member.done = seq;
        if (of_member.is_destroyed && of_member.queue.empty()) streams.erase(other);
      }
      if (stream.is_destroyed && stream.queue.empty()) streams.erase(id);
      changed.notify_all();
    }
  }

  /// Runs with the memory open. AddressSanitizer lets the operation see only the memory that it declared.
  void run(FakeOperation& operation) {
    std::vector<std::unique_ptr<ProofAllocator::Access>> open;
    for (const auto& memory : memories) open.push_back(std::make_unique<ProofAllocator::Access>(*memory));
    for (const cuda::MemoryUse& use : operation.uses) ASAN_UNPOISON_MEMORY_REGION(use.block, use.bytes);
    operation.run();
    for (const cuda::MemoryUse& use : operation.uses) {
      if (!is_pinned(use.block)) ASAN_POISON_MEMORY_REGION(use.block, use.bytes);
    }
  }
  bool is_pinned(const void* address) {
    const std::lock_guard lock(mutex);
    const auto* block = block_of(address);
    return block != nullptr && block->second.device < 0;
  }
};

}  // namespace dflow::testing
