#pragma once

#include <dflow/op/build.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace dflow {

/// Connected elementwise nodes as one node. The pass `chain` puts it in; it is in no table of ops, and has a kernel on
/// devices that make kernels at run time. Each member stands behind the members that it reads.
struct ElementwiseChain : StandardOp<"_ElementwiseChain"> {
  struct Attrs {
    std::vector<std::string> ops;     ///< of the members
    std::vector<std::string> names;   ///< of the members' nodes
    std::vector<DType> types;         ///< the members' type arguments, one after the other
    std::vector<DType> makes;         ///< the element types of the members' results
    std::vector<std::int64_t> reads;  ///< for each member how many, and which: input i as i, member m's as inputs + m
    std::vector<std::int64_t> gives;  ///< the members whose results are the outputs
    std::vector<DType> Tin;
    std::vector<DType> Tout;
  };
  using Inputs = In<TypedList<"Tin">>;
  using Outputs = Out<TypedList<"Tout">>;
  static void infer(InferContext& context);
};

/// The limits of a chain: a kernel's argument list is bounded, and so are the values that a thread holds at once.
inline constexpr int max_chain_inputs = 16;
inline constexpr int max_chain_outputs = 8;
inline constexpr int max_chain_members = 64;
/// In the formulas of all members: a compiler takes its time for each step.
inline constexpr std::int32_t max_chain_steps = 4096;

}  // namespace dflow
