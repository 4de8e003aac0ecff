#pragma once

#include <cstddef>
#include <cstdint>

namespace dflow::cuda {

/// How many blocks of how many threads run a kernel, in one dimension.
struct GridShape {
  std::uint32_t blocks = 1;
  std::uint32_t threads = 256;  ///< per block; a multiple of 32, at most 1024
};

/// The code of a kernel as a driver launches it: one for each body and its types, made where the body is instantiated.
///
/// Thread safety: immutable.
struct KernelFunction {
  const char* name = nullptr;
  /// The function that nvcc made of the body; null if a host compiler made none.
  const void* entry = nullptr;
  /// Runs the body on the host, block after block (`grid/emulated_grid.hpp`); null if nvcc compiled it. `order`
  /// chooses the order of blocks and threads.
  void (*emulate)(GridShape shape, const void* arguments, std::uint64_t order) = nullptr;
  std::uint32_t argument_bytes = 0;
};

/// The function of a body: declared everywhere, defined in the units that instantiate it (`grid/instantiate.hpp`). A
/// body that no unit instantiates is a link error.
template <class Body>
const KernelFunction& kernel_function();

/// Enough blocks for a loop over `n` elements, with `per_thread` elements for each thread, but no more than a few
/// times the number of blocks that a GPU runs at once.
constexpr GridShape grid_for(std::int64_t n, std::int64_t per_thread = 4) {
  constexpr std::int64_t threads = 256, most = 1 << 16;
  const std::int64_t blocks = (n + threads * per_thread - 1) / (threads * per_thread);
  return {static_cast<std::uint32_t>(blocks < 1 ? 1 : blocks > most ? most : blocks), threads};
}

}  // namespace dflow::cuda
