#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/kernels/cuda/memory/device_core.hpp>

#include <utility>

namespace dflow::cuda {

DeviceCore::DeviceCore(std::shared_ptr<Driver> driver, int device) : driver_(std::move(driver)), device_(device) {
  const auto create = [&](StreamHandle& stream) {
    require_ok(driver_->create_stream(device_, stream), "creating a stream");
  };
  try {
    create(compute_);
    create(copies_in_);
    create(copies_out_);
  } catch (...) {
    destroy();
    throw;
  }
}

DeviceCore::~DeviceCore() { destroy(); }

void DeviceCore::destroy() noexcept {
  for (const EventHandle event : events_) driver_->destroy_event(device_, event);
  for (const StreamHandle stream : {copies_out_, copies_in_, compute_}) {
    if (stream != StreamHandle::none) driver_->destroy_stream(device_, stream);
  }
}

Status DeviceCore::status_of(ErrorCode code, std::string_view doing) const {
  return cuda::status_of(code, str_cat("GPU ", device_, ": ", doing));
}

void DeviceCore::require_ok(ErrorCode code, std::string_view doing) const {
  if (code != ErrorCode::ok) [[unlikely]]
    throw_error(status_of(code, doing));
}

void DeviceCore::order(StreamHandle later, const DeviceCore& of, StreamHandle earlier) const {
  const EventHandle event = of.take_event();
  ErrorCode code = of.driver_->record(of.device_, event, earlier);
  if (code == ErrorCode::ok) code = driver_->wait(device_, later, event);
  of.give_back(event);
  require_ok(code, "ordering two streams");
}

EventHandle DeviceCore::take_event() const {
  if (capturing() != nullptr)
    throw_error(Status::unimplemented("work that is captured cannot be ordered with that of other streams"));
  {
    const std::lock_guard lock(mutex_);
    if (!events_.empty()) {
      const EventHandle event = events_.back();
      events_.pop_back();
      return event;
    }
  }
  EventHandle event = EventHandle::none;
  require_ok(driver_->create_event(device_, event), "creating an event");
  return event;
}

void DeviceCore::give_back(EventHandle event) const noexcept {
  try {
    const std::lock_guard lock(mutex_);
    events_.push_back(event);
  } catch (...) {  // no memory to note it in
    driver_->destroy_event(device_, event);
  }
}

void DeviceCore::keep(std::shared_ptr<void> what) const {
  {
    const std::lock_guard lock(mutex_);
    if (!has_ended_) return kept_.push_back(std::move(what));
  }
  wait_until_idle();
}

void DeviceCore::end() const noexcept {
  std::vector<std::shared_ptr<void>> kept;
  {
    const std::lock_guard lock(mutex_);
    kept.swap(kept_);
    has_ended_ = true;
  }
  // A device that is lost runs nothing any more.
  if (!kept.empty()) wait_until_idle();
}

void DeviceCore::wait_until_idle() const noexcept {
  for (const StreamHandle stream : {copies_in_, compute_, copies_out_}) driver_->wait_until_idle(device_, stream);
}

}  // namespace dflow::cuda
