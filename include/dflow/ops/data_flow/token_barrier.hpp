#pragma once

#include <dflow/op/build.hpp>

#include <string>

namespace dflow {

// Where replicas that train together meet after each step. `kernels/state/token_barrier_state.hpp` says who is told
// what; `train/replicas/sync_replicas.hpp` builds these.

/// Gives a handle to a barrier. It is closed until it is opened.
struct TokenBarrier : StatefulOp<"TokenBarrier"> {
  static constexpr std::int64_t max_replicas = 1'000'000;

  struct Attrs {
    std::int64_t replicas = 1;
    std::int64_t aggregate = 1;  ///< so many arrivals end a step; 1 to `replicas`
    std::string container = {};
    std::string shared_name = {};  ///< what it is kept under; the node's name where empty
  };
  using Inputs = In<>;
  using Outputs = Out<ResourceHandle>;
  static void infer(InferContext& context);
};

struct TokenBarrierRankAttrs {
  std::int64_t rank = 0;  ///< of the replica, in [0, replicas)
};

/// `leader`, a number of its own, leads, and begins with `step`: handle, step [], leader [], left [k]. What has arrived
/// is forgotten, and those who wait do the step again. The replicas `left` have left, as far as the leader knows.
struct TokenBarrierOpen : StatefulOp<"TokenBarrierOpen"> {
  using Inputs = In<ResourceHandle, std::int64_t, std::int64_t, std::int32_t>;
  using Outputs = Out<>;
  static void infer(InferContext& context);
};

/// The replica has done its part of `local_step`: handle, local_step [].
struct TokenBarrierArrive : StatefulOp<"TokenBarrierArrive"> {
  using Attrs = TokenBarrierRankAttrs;
  using Inputs = In<ResourceHandle, std::int64_t>;
  using Outputs = Out<>;
  static void infer(InferContext& context);
};

/// Waits until the current step is another one than `local_step`, at which the replica has arrived, and tells it:
/// handle, local_step [] -> step []. Errors: DeadlineExceeded, naming replicas, if they were too late; OutOfRange when
/// the last step has been done.
struct TokenBarrierWait : StatefulOp<"TokenBarrierWait"> {
  using Attrs = TokenBarrierRankAttrs;
  using Inputs = In<ResourceHandle, std::int64_t>;
  using Outputs = Out<std::int64_t>;
  static void infer(InferContext& context);
};

// What a leader does is AlreadyExists when somebody else has opened the barrier since.

/// Waits until enough replicas have arrived, or one has left of which the leader was not told: handle, leader [] ->
/// arrived [m], left [n], ranks, ascending; `arrived` is empty where there are not enough. Errors: OutOfRange when all
/// have left; AlreadyExists also when somebody else collects.
struct TokenBarrierCollect : StatefulOp<"TokenBarrierCollect"> {
  using Inputs = In<ResourceHandle, std::int64_t>;
  using Outputs = Out<std::int32_t, std::int32_t>;
  static void infer(InferContext& context);
};

/// `step` begins, and those who wait for it go on: handle, step [], leader [].
struct TokenBarrierAdvance : StatefulOp<"TokenBarrierAdvance"> {
  using Inputs = In<ResourceHandle, std::int64_t, std::int64_t>;
  using Outputs = Out<>;
  static void infer(InferContext& context);
};

/// The replica ends, and the others go on without it; waits until who leads knows: handle.
struct TokenBarrierLeave : StatefulOp<"TokenBarrierLeave"> {
  using Attrs = TokenBarrierRankAttrs;
  using Inputs = In<ResourceHandle>;
  using Outputs = Out<>;
  static void infer(InferContext& context);
};

/// The others go on without those who have not arrived, if anybody has, until they arrive: handle, leader [] -> ranks
/// [k], ascending.
struct TokenBarrierDropMissing : StatefulOp<"TokenBarrierDropMissing"> {
  using Inputs = In<ResourceHandle, std::int64_t>;
  using Outputs = Out<std::int32_t>;
  static void infer(InferContext& context);
};

/// Ends all waiting, until the barrier is opened again: handle, leader [].
struct TokenBarrierClose : StatefulOp<"TokenBarrierClose"> {
  struct Attrs {
    /// "late": with DeadlineExceeded that names those who have not arrived; "done": with OutOfRange, for the last step
    /// has been done; "lost": with Aborted, for who led has failed.
    std::string reason = "done";
  };
  using Inputs = In<ResourceHandle, std::int64_t>;
  using Outputs = Out<>;
  static void infer(InferContext& context);
};

}  // namespace dflow
