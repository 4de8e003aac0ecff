#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <string_view>

#if defined(__linux__)
#include <pthread.h>
#endif

namespace dflow::detail {

/// Names a pool's thread "name/7" for debuggers, cut to the 15 characters that Linux keeps.
inline void name_this_thread([[maybe_unused]] std::string_view name, [[maybe_unused]] int number) noexcept {
#if defined(__linux__)
  char text[32] = "/";
  const char* digits_end = std::to_chars(text + 1, text + sizeof text - 1, number).ptr;
  const auto suffix = static_cast<std::size_t>(digits_end - text);
  char full[16] = {};
  const std::size_t prefix = std::min(name.size(), sizeof full - 1 - suffix);
  std::copy_n(name.data(), prefix, full);
  std::copy_n(text, suffix, full + prefix);
  ::pthread_setname_np(::pthread_self(), full);
#endif
}

}  // namespace dflow::detail
