#pragma once

#include <dflow/base/config.hpp>

#include <cstdint>

namespace dflow {

/// While an object of this class lives, SIGTERM does not end the process: it is noted, so that a training loop can
/// save and end by itself. The first object installs the handler; the last object restores the previous handler.
///
/// Thread safety: all functions may be called from any thread.
/// Errors: Unavailable if the handler cannot be installed.
class TerminationSignal {
 public:
  TerminationSignal();
  ~TerminationSignal();
  TerminationSignal(const TerminationSignal&) = delete;
  TerminationSignal& operator=(const TerminationSignal&) = delete;

  /// Whether the signal has come since this object was made.
  bool has_come() const noexcept;

 private:
  std::uint64_t seen_;
};

}  // namespace dflow
