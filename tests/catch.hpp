// One include for Catch2 2.13 and Catch2 3; with both, Catch::Approx and Catch::Matchers are there.
#pragma once

// An exception that an assertion does not expect ends the test case, so that each assertion needs no handler of its
// own.
#define CATCH_CONFIG_FAST_COMPILE

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#define CATCH_CONFIG_ENABLE_ALL_STRINGMAKERS
#include <catch2/catch.hpp>

namespace Catch {
using Detail::Approx;
}  // namespace Catch
#endif
