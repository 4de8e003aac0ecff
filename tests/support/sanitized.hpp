#pragma once

namespace dflow::testing {

/// Whether a sanitizer watches. All takes some ten times as long then, so a test repeats less often what shows the same
/// code to a sanitizer again; builds without one have the full counts.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool is_sanitized = true;
#else
inline constexpr bool is_sanitized = false;
#endif

}  // namespace dflow::testing
