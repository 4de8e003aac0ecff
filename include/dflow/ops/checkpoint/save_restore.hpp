#pragma once

#include <dflow/op/build.hpp>

#include <cstdint>
#include <vector>

namespace dflow {

// Tensors to files and back, as io/checkpoint/ keeps them (docs/checkpoint-format.md), with TensorFlow's names. The
// task that runs a node reads and writes in a thread of its own: training goes on meanwhile.

/// Writes one shard of a checkpoint: prefix (a scalar), tensor_names [n], shape_and_slices [n], n tensors. The shard
/// becomes part of a checkpoint when `MergeV2Checkpoints` is given the same prefix.
///
/// A slice is "" for a whole tensor. Otherwise it is the shape of the whole and one range for each dimension, the part
/// that the tensor holds: "4 3 0,2:-" is rows 0 and 1 of [4, 3].
///
/// Errors of a step: InvalidArgument for names, slices and tensors that do not fit together; errors of the file
/// system; ResourceExhausted for a full disk. Files that an error may leave behind are part of no checkpoint.
struct SaveV2 : StatefulOp<"SaveV2"> {
  struct Attrs {
    std::vector<DType> dtypes;
    std::int64_t shard = 0;  ///< in [0, num_shards)
    std::int64_t num_shards = 1;
  };
  using Inputs = In<std::string, std::string, std::string, TypedList<"dtypes">>;
  using Outputs = Out<>;
  static void infer(InferContext& context);
};

/// Reads tensors of a checkpoint, which may be TensorFlow's: prefix (a scalar), tensor_names [n], shape_and_slices [n]
/// as in `SaveV2`.
///
/// Errors of a step: NotFound for a missing checkpoint or tensor, naming it; InvalidArgument for another element
/// type or shape than wanted; DataLoss for a damaged file; errors of the file system.
struct RestoreV2 : StatefulOp<"RestoreV2"> {
  struct Attrs {
    std::vector<DType> dtypes;
    /// Each tensor must fit its shape; none: any shape.
    std::vector<PartialShape> shapes;
  };
  using Inputs = In<std::string, std::string, std::string>;
  using Outputs = Out<TypedList<"dtypes">>;
  static void infer(InferContext& context);
};

/// Makes one checkpoint of written shards: checkpoint_prefixes (one, or any number), destination_prefix (a scalar), in
/// the same directory.
///
/// Errors of a step: NotFound for a missing shard; InvalidArgument for shards that do not belong together;
/// AlreadyExists; DataLoss; errors of the file system.
struct MergeV2Checkpoints : StatefulOp<"MergeV2Checkpoints"> {
  struct Attrs {
    /// A checkpoint of that name is replaced: readers find the old or the new checkpoint, also after a loss of power.
    bool replace = false;
  };
  using Inputs = In<std::string, std::string>;
  using Outputs = Out<>;
  static void infer(InferContext& context);
};

}  // namespace dflow
