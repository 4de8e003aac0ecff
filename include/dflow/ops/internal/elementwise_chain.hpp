#pragma once

#include <dflow/op/build.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace dflow {

/// Elementwise nodes that hang together, as one: put in by the pass `chain`, in no table of ops, with a kernel on
/// devices that make kernels at run time. Members stand in an order in which each comes behind those that it reads.
struct ElementwiseChain : StandardOp<"_ElementwiseChain"> {
  struct Attrs {
    std::vector<std::string> ops;     ///< of the members
    std::vector<std::string> names;   ///< of the members' nodes
    std::vector<DType> types;         ///< the members' type arguments, one after the other
    std::vector<DType> makes;         ///< the element types of the members' results
    std::vector<std::int64_t> reads;  ///< of each member how many, and which: input i as i, member m's as inputs + m
    std::vector<std::int64_t> gives;  ///< the members whose results are the outputs
    std::vector<DType> Tin;
    std::vector<DType> Tout;
  };
  using Inputs = In<TypedList<"Tin">>;
  using Outputs = Out<TypedList<"Tout">>;
  static void infer(InferContext& context);
};

/// A chain takes no more than these: an argument list of a kernel is bounded, and so is what a thread holds at once.
inline constexpr int max_chain_inputs = 16;
inline constexpr int max_chain_outputs = 8;
inline constexpr int max_chain_members = 64;
/// Of the formulas of all members: a compiler takes its time for each.
inline constexpr std::int32_t max_chain_steps = 4096;

}  // namespace dflow
