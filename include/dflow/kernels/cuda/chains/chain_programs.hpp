#pragma once

#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/kernels/cuda/chains/chain_text.hpp>
#include <dflow/kernels/cuda/driver/programs.hpp>
#include <dflow/kernels/cuda/memory/library_plans.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace dflow::cuda {

/// The kernels of a chain, or the reason why there are none.
struct ChainProgram {
  ProgramHandle program = ProgramHandle::none;
  KernelFunction dense, broadcast;  ///< `broadcast` only if the text has it
  std::string refusal;

  bool is_made() const noexcept { return program != ProgramHandle::none; }
};

/// How chains become kernels: compiled and loaded once for each text. A refusal by NVRTC or the device is kept, too,
/// so that NVRTC is asked once. A lack of memory is an error instead, and is not kept.
struct ChainPlanning {
  struct Call {
    std::string text;
    bool broadcasts = false;

    friend bool operator<(const Call& a, const Call& b) { return a.text < b.text; }
  };
  enum class Handle : std::uintptr_t { none = 0 };  ///< the address of a ChainProgram

  static constexpr std::string_view doing = "making the kernel of a chain of elementwise ops";
  static constexpr bool may_decline = false;

  static const ChainProgram& program_of(Handle handle) noexcept {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): it was one
    return *reinterpret_cast<const ChainProgram*>(static_cast<std::uintptr_t>(handle));
  }
  static ErrorCode make(const DeviceCore& core, const Call& call, std::size_t, Handle& handle, std::size_t&) noexcept;
  static void destroy(const DeviceCore& core, Handle handle) noexcept;
};
using ChainPrograms = LibraryPlans<ChainPlanning>;

/// What a device has done with its chains. Only launches by a kernel itself count as runs: a launch that is captured
/// into a graph is counted when it is captured.
struct ChainCounts {
  std::uint64_t made = 0;        ///< nodes whose chain is one kernel
  std::uint64_t refused = 0;     ///< nodes whose members run one after the other, for want of a kernel
  std::uint64_t runs = 0;        ///< as one kernel
  std::uint64_t runs_apart = 0;  ///< member by member: the node was refused, or shapes were not the expected ones
  std::string refusal;           ///< the last one
};

/// Counts that.
///
/// Thread safety: all functions may be called from any thread.
class ChainCounter {
 public:
  void add_made() noexcept { made_.fetch_add(1, std::memory_order_relaxed); }
  void add_refused(std::string why) {
    refused_.fetch_add(1, std::memory_order_relaxed);
    const std::lock_guard lock(mutex_);
    refusal_ = std::move(why);
  }
  void add_run(bool is_one) noexcept { (is_one ? runs_ : runs_apart_).fetch_add(1, std::memory_order_relaxed); }
  ChainCounts counts() const {
    const std::lock_guard lock(mutex_);
    return {made_.load(), refused_.load(), runs_.load(), runs_apart_.load(), refusal_};
  }

 private:
  std::atomic<std::uint64_t> made_{0}, refused_{0}, runs_{0}, runs_apart_{0};
  mutable std::mutex mutex_;
  std::string refusal_;
};

}  // namespace dflow::cuda
