#pragma once

#include <dflow/core/cancellation.hpp>

#include <stop_token>
#include <utility>

namespace dflow {

/// Cancels a source when stop is requested of a std::stop_token, as long as this object lives.
///
/// Thread safety: immutable after construction.
class StopTokenLink {
 public:
  StopTokenLink(std::stop_token token, CancellationSource source)
      : callback_(std::move(token), Cancel{std::move(source), cancelled("stop was requested")}) {}

 private:
  struct Cancel {
    CancellationSource source;
    Status status;  ///< made before, as nothing may be thrown when stop is requested
    void operator()() noexcept { source.cancel(std::move(status)); }
  };
  std::stop_callback<Cancel> callback_;
};

/// Requests stop of a std::stop_source when a token is cancelled, as long as the registration lives.
[[nodiscard]] inline CancellationRegistration request_stop_on_cancel(const CancellationToken& token,
                                                                     std::stop_source source) {
  return token.on_cancel([source = std::move(source)](const Status&) mutable { source.request_stop(); });
}

}  // namespace dflow
