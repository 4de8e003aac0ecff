#pragma once

#include <cstdint>

namespace dflow {

/// 64 bits that nobody can foresee, from the operating system. The library's only source of chance: code that draws
/// from it takes a function, and a caller may give it another one.
///
/// Thread safety: may be called from any thread.
std::uint64_t system_seed();

}  // namespace dflow
