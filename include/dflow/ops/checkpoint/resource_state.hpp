#pragma once

#include <dflow/op/build.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace dflow {

/// A handle to the stream of a random node, on the device that this node runs on. If the random node has not run yet,
/// the stream is made as the random node would make it.
struct RandomStreamHandle : StatefulOp<"RandomStreamHandle"> {
  struct Attrs {
    std::string node;  ///< the random node's name
    std::int64_t seed = 0;
    std::int64_t seed2 = 0;
  };
  using Inputs = In<>;
  using Outputs = Out<ResourceHandle>;
  static void infer(InferContext& context);
};

/// The state of a resource that can be saved (core/savable_resource.hpp).
/// Errors of a step: InvalidArgument for a resource of another kind, or with a state of other element types.
struct ReadResourceState : StatefulOp<"ReadResourceState"> {
  struct Attrs {
    std::vector<DType> dtypes;
  };
  using Inputs = In<ResourceHandle>;
  using Outputs = Out<TypedList<"dtypes">>;
  static void infer(InferContext& context);
};

/// Gives a resource a state that was read from a resource of its kind.
/// Errors of a step: InvalidArgument, and the resource keeps its own state.
struct AssignResourceState : StatefulOp<"AssignResourceState"> {
  struct Attrs {
    std::vector<DType> dtypes;
  };
  using Inputs = In<ResourceHandle, TypedList<"dtypes">>;
  using Outputs = Out<>;
  static void infer(InferContext& context);
};

}  // namespace dflow
