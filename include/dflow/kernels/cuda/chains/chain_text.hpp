#pragma once

#include <dflow/core/dtype.hpp>
#include <dflow/op/formula.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace dflow::cuda {

/// One elementwise op of a chain: its computation, on elements of `type`.
struct ChainMember {
  const Formula* formula = nullptr;
  DType type = DType::invalid;
  DType makes = DType::invalid;
  std::vector<std::int32_t> reads;  ///< input i of the chain as i, the result of member m as inputs + m
};

/// Elementwise ops that one kernel computes. Each member comes after the members that it reads.
struct ChainForm {
  std::vector<DType> inputs;
  std::vector<ChainMember> members;
  std::vector<std::int32_t> gives;  ///< the members that compute the outputs
  bool broadcasts = false;          ///< there is a kernel for inputs that are broadcast, too
};

inline constexpr const char* dense_chain = "chain_dense";
inline constexpr const char* broadcast_chain = "chain_broadcast";

/// CUDA C++ of the chain's kernels: `dense_chain` and, if the chain `broadcasts`, `broadcast_chain`. Each thread reads
/// one element of each input and writes one element of each output. The text has no includes. The results have the
/// bits of the ops' own kernels if both are compiled without contraction (`-fmad=false`).
///
/// Arguments are 64 bits each. First come the number of elements, the inputs and the outputs. `dense_chain` then takes
/// one bit for each input: whether it is one element. `broadcast_chain` takes the rank, `max_broadcast_rank` extents,
/// and as many strides for each input.
std::string chain_text(const ChainForm& form);

}  // namespace dflow::cuda
