#pragma once

#include <dflow/op/build.hpp>

#include <string>

namespace dflow {

// What holds replicas back that go at their own pace but not too far apart.
// `kernels/state/staleness_clock_state.hpp` says who waits for whom; `train/replicas/stale_sync_replicas.hpp` builds
// these. A member is a number that `StalenessClockJoin` has given: Aborted is for one that another process of its rank
// has taken the place of, that has been given up, or that was given by a clock which is gone.

/// Gives a handle to a clock.
struct StalenessClock : StatefulOp<"StalenessClock"> {
  static constexpr std::int64_t max_replicas = 1'000'000;

  struct Attrs {
    std::int64_t replicas = 1;
    std::int64_t staleness = 0;  ///< not negative
    std::string container = {};
    std::string shared_name = {};  ///< what it is kept under; the node's name where empty
  };
  using Inputs = In<>;
  using Outputs = Out<ResourceHandle>;
  static void infer(InferContext& context);
};

struct StalenessClockRankAttrs {
  std::int64_t rank = 0;  ///< of the replica, in [0, replicas)
};

/// The replica begins, where the slowest is: handle -> member [].
struct StalenessClockJoin : StatefulOp<"StalenessClockJoin"> {
  using Attrs = StalenessClockRankAttrs;
  using Inputs = In<ResourceHandle>;
  using Outputs = Out<std::int64_t>;
  static void infer(InferContext& context);
};

/// Waits until the member's next step may begin, and tells which it is: handle, member [] -> step []. Errors: Aborted;
/// DeadlineExceeded, naming replicas, if they were too late.
struct StalenessClockWait : StatefulOp<"StalenessClockWait"> {
  using Inputs = In<ResourceHandle, std::int64_t>;
  using Outputs = Out<std::int64_t>;
  static void infer(InferContext& context);
};

/// The member has finished its step: handle, member []. Errors: Aborted.
struct StalenessClockTick : StatefulOp<"StalenessClockTick"> {
  using Inputs = In<ResourceHandle, std::int64_t>;
  using Outputs = Out<>;
  static void infer(InferContext& context);
};

/// The replica ends, and the others wait for it no more; waits until who watches knows: handle.
struct StalenessClockLeave : StatefulOp<"StalenessClockLeave"> {
  using Attrs = StalenessClockRankAttrs;
  using Inputs = In<ResourceHandle>;
  using Outputs = Out<>;
  static void infer(InferContext& context);
};

/// Waits until other replicas than `known` have left or were given up, or all have, and tells who: handle, known [k] ->
/// ranks [n], both ascending. What is known holds for a clock that was started anew.
struct StalenessClockWatch : StatefulOp<"StalenessClockWatch"> {
  using Inputs = In<ResourceHandle, std::int32_t>;
  using Outputs = Out<std::int32_t>;
  static void infer(InferContext& context);
};

/// Gives up the slowest, if others wait for it and nothing has happened since the call that gave `since`: handle,
/// since [] -> now []. At first `since` is -1.
struct StalenessClockDropLate : StatefulOp<"StalenessClockDropLate"> {
  struct Attrs {
    /// Gives nobody up: this and those who wait end with DeadlineExceeded that names the slowest.
    bool fails = false;
  };
  using Inputs = In<ResourceHandle, std::int64_t>;
  using Outputs = Out<std::int64_t>;
  static void infer(InferContext& context);
};

}  // namespace dflow
