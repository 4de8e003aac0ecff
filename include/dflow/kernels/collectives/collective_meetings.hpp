#pragma once

#include <dflow/base/function_ref.hpp>
#include <dflow/kernels/contract/kernel.hpp>

#include <cstddef>
#include <memory>
#include <span>

namespace dflow {

/// The place where the members of a collective (`MemberCollective`) meet. Each step, call and iteration has its own
/// meeting. No thread waits: the last kernel to come computes for all.
///
/// If a step ends by an error, a deadline or a stop token, its members' meetings end with that status, and nothing of
/// them is left. If a member's value is dead, all results are dead.
///
/// Thread safety: all functions may be called from any thread.
class CollectiveMeetings {
 public:
  /// Computes the outputs of all members, in their order, from their inputs. If it throws, all members end with the
  /// error.
  using Compute = FunctionRef<void(std::span<KernelContext* const> members)>;

  CollectiveMeetings();
  CollectiveMeetings(const CollectiveMeetings&) = delete;
  CollectiveMeetings& operator=(const CollectiveMeetings&) = delete;
  ~CollectiveMeetings();

  /// A member has come. `compute` is called before this returns, or never; `done` once, from any thread, no lock being
  /// held.
  void arrive(KernelContext& context, AsyncKernel::Done done, Compute compute);
  /// The number of meetings that have begun and not ended.
  std::size_t size() const;

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace dflow
