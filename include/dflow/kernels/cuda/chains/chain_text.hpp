#pragma once

#include <dflow/core/dtype.hpp>
#include <dflow/op/formula.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace dflow::cuda {

/// One elementwise op of a chain: what it computes, on elements of `type`.
struct ChainMember {
  const Formula* formula = nullptr;
  DType type = DType::invalid;
  DType makes = DType::invalid;
  std::vector<std::int32_t> reads;  ///< input i of the chain as i, the result of member m as inputs + m
};

/// Elementwise ops that one kernel computes: members in an order in which each comes behind those that it reads.
struct ChainForm {
  std::vector<DType> inputs;
  std::vector<ChainMember> members;
  std::vector<std::int32_t> gives;  ///< the members whose results are the outputs
  bool broadcasts = false;          ///< there is a kernel for inputs that are broadcast, too
};

inline constexpr const char* dense_chain = "chain_dense";
inline constexpr const char* broadcast_chain = "chain_broadcast";

/// CUDA C++ of the chain's kernels, `dense_chain` and, where it `broadcasts`, `broadcast_chain`: each thread reads one
/// element of each input and writes one of each output. It has no includes. What it computes has the bits of the ops'
/// own kernels, where both are compiled without contraction (`-fmad=false`).
///
/// Arguments are 64 bits each: how many elements, the inputs, the outputs; then of the first which inputs are one
/// element, a bit for each, of the second the rank, `max_broadcast_rank` extents, and as many strides for each input.
std::string chain_text(const ChainForm& form);

}  // namespace dflow::cuda
