#pragma once

#include <dflow/base/config.hpp>
#include <dflow/base/cpu_features.hpp>

#include <cstdint>

namespace dflow::cpu {

class KernelCache;

/// The library that computes products and convolutions.
enum class CpuBackend : std::uint8_t {
  automatic,  ///< the faster one in measurements of the size
  builtin,    ///< the loops of this folder
  onednn,     ///< oneDNN; the same as builtin where it is not compiled in or does not know the element type
};

/// True when the library was compiled with oneDNN.
[[nodiscard]] bool has_onednn() noexcept;

/// Options of a routine; the defaults are the fastest.
struct CpuOptions {
  CpuBackend backend = CpuBackend::automatic;
  /// Upper bound on the instructions used: the highest level is taken that this allows, that the processor has and that
  /// the library holds loops for. Header-only programs hold one set of loops, compiled with their own flags.
  CpuLevel max_level = CpuLevel::x86_64_v4;
  /// The same bits for any number of threads, even if that costs time (oneDNN).
  bool reproducible = false;
  /// Scratch memory and oneDNN primitives that outlive the call; null means they are made and released in each call.
  KernelCache* cache = nullptr;
};

}  // namespace dflow::cpu
