// The error that a call throws, as a value to check.
#pragma once

#include <dflow/base/status.hpp>

#include "catch.hpp"

#include <string>
#include <string_view>

/// The status of the Error that `f()` throws, or ok if it throws none.
template <class F>
dflow::Status status_of(F&& f) {
  try {
    static_cast<void>(f());
  } catch (const dflow::Error& error) {
    return error.status();
  }
  return {};
}

/// Its code, or ok.
template <class F>
dflow::Code code_of(F&& f) {
  return status_of(f).code();
}

/// The text of the Error that `f()` throws. Its code must be `code`.
template <class F>
std::string error_of(F&& f, dflow::Code code = dflow::Code::invalid_argument) {
  try {
    static_cast<void>(f());
  } catch (const dflow::Error& error) {
    CHECK(error.code() == code);
    return error.what();
  }
  return "no error";
}

[[nodiscard]] inline bool mentions(const dflow::Status& status, std::string_view text) {
  return status.to_string().find(text) != std::string::npos;
}

[[nodiscard]] inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}
