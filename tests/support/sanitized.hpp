#pragma once

namespace dflow::testing {

/// Whether a sanitizer watches. All code then takes some ten times as long. A test therefore repeats less often the
/// runs that show the same code to a sanitizer again; builds without a sanitizer have the full counts.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool is_sanitized = true;
#else
inline constexpr bool is_sanitized = false;
#endif

}  // namespace dflow::testing
