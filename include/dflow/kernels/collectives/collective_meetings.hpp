#pragma once

#include <dflow/base/function_ref.hpp>
#include <dflow/kernels/contract/kernel.hpp>

#include <cstddef>
#include <memory>
#include <span>

namespace dflow {

/// Where the kernels of the members of a collective (`MemberCollective`) meet, in each step, call and iteration apart.
/// No thread waits: the last one to come computes for all.
///
/// A step that ends otherwise, by an error, a deadline or a stop token, ends the meetings of its members with that
/// status, and nothing of them is left. If a member's value is dead, so are all results.
///
/// Thread safety: all functions may be called from any thread.
class CollectiveMeetings {
 public:
  /// Computes the outputs of all members, in their order, from their inputs. What it throws ends them all.
  using Compute = FunctionRef<void(std::span<KernelContext* const> members)>;

  CollectiveMeetings();
  CollectiveMeetings(const CollectiveMeetings&) = delete;
  CollectiveMeetings& operator=(const CollectiveMeetings&) = delete;
  ~CollectiveMeetings();

  /// A member has come. `compute` is called before this returns, or never; `done` once, from any thread, no lock being
  /// held.
  void arrive(KernelContext& context, AsyncKernel::Done done, Compute compute);
  /// Meetings that somebody has come to and that have not ended.
  std::size_t size() const;

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace dflow
