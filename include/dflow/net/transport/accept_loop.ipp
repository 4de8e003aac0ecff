#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/net/transport/accept_loop.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <utility>

namespace dflow::net {

AcceptLoop::AcceptLoop(std::unique_ptr<Listener> listener, Options options, Admit admit)
    : listener_(std::move(listener)), options_(std::move(options)), admit_(std::move(admit)) {}

struct AcceptLoop::Accept {
  std::unique_ptr<Stream> stream;
  std::atomic<bool> has_ended{false};  ///< what throws may have dropped the completion too, which tells of that
};

void AcceptLoop::accept_next() noexcept {
  std::shared_ptr<Accept> accept;
  try {
    accept = std::make_shared<Accept>();
    listener_->accept(accept->stream, [weak = weak_from_this(), accept](Status status) {
      const std::shared_ptr<AcceptLoop> self = weak.lock();
      if (self == nullptr || status.code() == Code::cancelled || accept->has_ended.exchange(true)) return;
      try {
        if (status.ok()) self->admit_(std::move(accept->stream));
      } catch (...) {
        status = status_of_current_exception();
      }
      if (status.ok()) return self->accept_next();
      self->accept_later(status);
    });
  } catch (...) {
    if (accept == nullptr || !accept->has_ended.exchange(true)) accept_later(status_of_current_exception());
  }
}

void AcceptLoop::accept_later(const Status& why) noexcept {
  try {
    options_.log(str_cat(options_.what, " could not be accepted: ", why.to_string()));
  } catch (...) {  // what it says is lost
  }
  try {
    options_.clock->schedule_after(std::chrono::milliseconds(100), [weak = weak_from_this()] {
      if (const std::shared_ptr<AcceptLoop> self = weak.lock()) self->accept_next();
    });
  } catch (...) {  // without memory twice in a row: nobody is let in any more
  }
}

}  // namespace dflow::net
