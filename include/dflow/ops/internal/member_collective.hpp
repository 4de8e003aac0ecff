#pragma once

#include <dflow/op/build.hpp>
#include <dflow/ops/internal/collective_kind.hpp>

#include <cstdint>
#include <string>

namespace dflow {

/// One device's part in a collective that devices compute together: put in by `expand_collectives`, a node on each of
/// them, in no table of ops. In the list is the member's value; of a broadcast the first member's alone.
struct MemberCollective : StatefulOp<"_MemberCollective", AllTypes> {
  struct Attrs {
    CollectiveKind kind = CollectiveKind::sum;
    std::string collective;  ///< the node that the members replace, the same for all members
    std::int64_t member = 0;
    std::int64_t members = 1;
  };
  using Inputs = In<List<T>>;
  static void infer(InferContext& context);
};

}  // namespace dflow
