#pragma once

#include <dflow/base/status.hpp>

/// The status of the Error that `f()` throws, or ok if it throws none.
template <class F> dflow::Status status_of(F&& f) {
  try {
    static_cast<void>(f());
  } catch (const dflow::Error& error) {
    return error.status();
  }
  return {};
}
