#pragma once

#include <dflow/op/build.hpp>

#include <string>

namespace dflow {

// The place where replicas that train together meet after each step. `state/token_barrier_state.hpp` says
// which caller is told what; `train/replicas/sync_replicas.hpp` builds the ops.

/// Gives a handle to a barrier. The barrier is closed until it is opened.
struct TokenBarrier : StatefulOp<"TokenBarrier"> {
  static constexpr std::int64_t max_replicas = 1'000'000;

  struct Attrs {
    std::int64_t replicas = 1;
    std::int64_t aggregate = 1;  ///< the number of arrivals that end a step; 1 to `replicas`
    std::string container = {};
    std::string shared_name = {};  ///< the resource's name; if empty, the node's name
  };
  using Inputs = In<>;
  using Outputs = Out<ResourceHandle>;
  static void infer(InferContext& context);
};

struct TokenBarrierRankAttrs {
  std::int64_t rank = 0;  ///< of the replica, in [0, replicas)
};

/// `leader`, a number that no other leader has, leads from now on, and begins with `step`: handle, step [], leader [],
/// left [k]. All arrivals are forgotten, and waiting replicas do the step again. `left` lists the replicas that have
/// left, as far as the leader knows.
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

/// Waits until the current step is another step than `local_step`, at which the replica has arrived, and gives the
/// current step: handle, local_step [] -> step []. Errors: DeadlineExceeded, naming replicas, if they were too late;
/// OutOfRange when the training has ended.
struct TokenBarrierWait : StatefulOp<"TokenBarrierWait"> {
  using Attrs = TokenBarrierRankAttrs;
  using Inputs = In<ResourceHandle, std::int64_t>;
  using Outputs = Out<std::int64_t>;
  static void infer(InferContext& context);
};

// An op of a leader, from here on, is AlreadyExists if another leader has opened the barrier since.

/// Waits until enough replicas have arrived, or until a replica has left and the leader was not told: handle, leader
/// [], has_heard [] -> arrived [m], left [n], ranks, ascending. `arrived` is empty if not enough replicas have arrived.
/// `has_heard` says whether the leader has got what its last call gave. Errors: OutOfRange when all replicas have left;
/// AlreadyExists also when another call collects.
struct TokenBarrierCollect : StatefulOp<"TokenBarrierCollect"> {
  using Inputs = In<ResourceHandle, std::int64_t, bool>;
  using Outputs = Out<std::int32_t, std::int32_t>;
  static void infer(InferContext& context);
};

/// `step` begins, and replicas that wait for it go on: handle, step [], leader [].
struct TokenBarrierAdvance : StatefulOp<"TokenBarrierAdvance"> {
  using Inputs = In<ResourceHandle, std::int64_t, std::int64_t>;
  using Outputs = Out<>;
  static void infer(InferContext& context);
};

/// The replica ends, and the others go on without it; waits until the leader knows: handle. The chief of replicas that
/// nobody has led yet ends the training of all by `ends_all`: waits until all others have left, or were told
/// OutOfRange by `TokenBarrierWait`.
struct TokenBarrierLeave : StatefulOp<"TokenBarrierLeave"> {
  struct Attrs {
    std::int64_t rank = 0;  ///< of the replica, in [0, replicas)
    bool for_good = false;  ///< it has left, also if this fails before the leader knows
    bool ends_all = false;  ///< if nobody leads; else as `for_good`
  };
  using Inputs = In<ResourceHandle>;
  using Outputs = Out<>;
  static void infer(InferContext& context);
};

/// Gives up missing replicas until they arrive: handle, leader [] -> ranks [k] of the replicas, ascending.
struct TokenBarrierDropMissing : StatefulOp<"TokenBarrierDropMissing"> {
  struct Attrs {
    /// "missing": all of them, if any replica has arrived; "lost": those whose processes hold no place
    /// (`TokenBarrierHold`), if no replica has arrived; "none": gives up nobody, and lists the missing ones.
    std::string gives_up = "missing";
  };
  using Inputs = In<ResourceHandle, std::int64_t>;
  using Outputs = Out<std::int32_t>;
  static void infer(InferContext& context);
};

/// Holds a place at the barrier until the step that runs it is cancelled, as when its client is lost: handle, leader
/// []. A leader's step also ends when the barrier is closed. If a leader's step is cancelled before that, the barrier
/// is closed as by `TokenBarrierClose` with "lost".
struct TokenBarrierHold : StatefulOp<"TokenBarrierHold"> {
  struct Attrs {
    std::int64_t rank = -1;  ///< of the replica; -1: the leader's place
  };
  using Inputs = In<ResourceHandle, std::int64_t>;
  using Outputs = Out<>;
  static void infer(InferContext& context);
};

/// Ends all waiting, until the barrier is opened again: handle, leader [].
struct TokenBarrierClose : StatefulOp<"TokenBarrierClose"> {
  struct Attrs {
    /// "late": with DeadlineExceeded that names the replicas that have not arrived; "done": with OutOfRange, for the
    /// last step has been done; "stopped": with OutOfRange, for the leader was told to stop; "lost": with Aborted, for
    /// the leader has failed.
    std::string reason = "done";
  };
  using Inputs = In<ResourceHandle, std::int64_t>;
  using Outputs = Out<>;
  static void infer(InferContext& context);
};

}  // namespace dflow
