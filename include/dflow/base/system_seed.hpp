#pragma once

#include <cstdint>

namespace dflow {

/// 64 bits that nobody can foresee, from the operating system. The library's only source of chance: what draws from it
/// is handed a function, and takes another one where a caller gives it.
///
/// Thread safety: may be called from any thread.
std::uint64_t system_seed();

}  // namespace dflow
