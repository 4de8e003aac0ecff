#pragma once

#include <dflow/op/build.hpp>

#include <string>

namespace dflow {

// A clock holds back replicas that go at their own pace, so that they are not too far apart.
// `state/staleness_clock_state.hpp` says which replica waits for another;
// `train/replicas/stale_sync_replicas.hpp` builds the ops. A member is a number that `StalenessClockJoin` has given.
// The error is Aborted for a member that another process of its rank has replaced, that has been given up, or that was
// given by a clock which is gone.

/// Gives a handle to a clock.
struct StalenessClock : StatefulOp<"StalenessClock"> {
  static constexpr std::int64_t max_replicas = 1'000'000;

  struct Attrs {
    std::int64_t replicas = 1;
    std::int64_t staleness = 0;  ///< not negative
    std::string container = {};
    std::string shared_name = {};  ///< the resource's name; if empty, the node's name
  };
  using Inputs = In<>;
  using Outputs = Out<ResourceHandle>;
  static void infer(InferContext& context);
};

struct StalenessClockRankAttrs {
  std::int64_t rank = 0;  ///< of the replica, in [0, replicas)
};

/// The replica begins at the step of the slowest replica: handle -> member []. If the leader is lost, waits until
/// somebody leads. If it `only_awaits`, the replica does not begin: waits until somebody leads, and gives -1. Errors of
/// that: OutOfRange when the chief was told to stop before it led.
struct StalenessClockJoin : StatefulOp<"StalenessClockJoin"> {
  struct Attrs {
    std::int64_t rank = 0;  ///< of the replica, in [0, replicas)
    bool only_awaits = false;
  };
  using Inputs = In<ResourceHandle>;
  using Outputs = Out<std::int64_t>;
  static void infer(InferContext& context);
};

/// The replica leads, until the step that runs this is cancelled, as when its client is lost: handle. If its replica
/// has not left by then, replicas that wait for others get Aborted. Errors: AlreadyExists when another one leads.
struct StalenessClockLead : StatefulOp<"StalenessClockLead"> {
  using Attrs = StalenessClockRankAttrs;
  using Inputs = In<ResourceHandle>;
  using Outputs = Out<>;
  static void infer(InferContext& context);
};

/// Waits until the member's next step may begin, and gives this step: handle, member [] -> step []. Errors: Aborted;
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

/// The replica ends, and the others do not wait for it any more; waits until the leader knows, if there is one: handle.
/// The chief, if nobody leads, tells replicas that wait for a leader OutOfRange by `ends_all`: waits until all others
/// have begun, have left or were told.
struct StalenessClockLeave : StatefulOp<"StalenessClockLeave"> {
  struct Attrs {
    std::int64_t rank = 0;  ///< of the replica, in [0, replicas)
    bool ends_all = false;
  };
  using Inputs = In<ResourceHandle>;
  using Outputs = Out<>;
  static void infer(InferContext& context);
};

/// Waits until the ranks of replicas that have left, or were given up, differ from `known`, or are all ranks; gives
/// the ranks: handle, known [k] -> ranks [n], both ascending. A clock that was started anew takes the known replicas
/// as left.
struct StalenessClockWatch : StatefulOp<"StalenessClockWatch"> {
  using Inputs = In<ResourceHandle, std::int32_t>;
  using Outputs = Out<std::int32_t>;
  static void infer(InferContext& context);
};

/// Gives up the slowest replica, if others wait for it and nothing has happened since the call that gave `since`:
/// handle, since [] -> now []. `since` is -1 at first.
struct StalenessClockDropLate : StatefulOp<"StalenessClockDropLate"> {
  struct Attrs {
    /// No replica is given up: this call and all waiting calls end with DeadlineExceeded that names the slowest
    /// replicas.
    bool fails = false;
    bool only_names = false;  ///< no replica is given up: this call alone ends so
  };
  using Inputs = In<ResourceHandle, std::int64_t>;
  using Outputs = Out<std::int64_t>;
  static void infer(InferContext& context);
};

}  // namespace dflow
