#pragma once

#include <dflow/base/config.hpp>

#include <cstdint>

namespace dflow::train {

/// While one lives, SIGTERM ends the process no more: it is noted, so that a training loop can save and end by itself.
/// The first one installs the handler, the last one puts back what was there before.
///
/// Thread safety: all functions may be called from any thread.
/// Errors: Unavailable if the handler cannot be installed.
class TerminationSignal {
 public:
  TerminationSignal();
  ~TerminationSignal();
  TerminationSignal(const TerminationSignal&) = delete;
  TerminationSignal& operator=(const TerminationSignal&) = delete;

  /// Whether the signal has come since this was made.
  bool has_come() const noexcept;

 private:
  std::uint64_t seen_;
};

}  // namespace dflow::train
