#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/kernels/cuda/bodies/capture.hpp>
#include <dflow/kernels/cuda/cuda_step.hpp>

#include <cstring>
#include <utility>

namespace dflow::cuda {

CudaStep::~CudaStep() = default;

/// With the mutex held, if there is none.
void CudaStep::make_slot() {
  if (slot_.is_initialized()) return;
  AnyTensor slot(DType::uint8, {static_cast<std::int64_t>(sizeof(ErrorSlot))}, memory_.allocator());
  DeviceCore& core = memory_.core();
  core.require_ok(core.driver().fill(core.device(), slot.raw_data(), 0, slot.bytes(), core.compute()),
                  "clearing the errors of a step");
  slot_ = std::move(slot);
}

CudaStep::Note CudaStep::note(const KernelContext& context, Decode decode) {
  const std::lock_guard lock(mutex_);
  make_slot();
  noted_.push_back({std::move(decode), &context.node()});
  return {static_cast<ErrorSlot*>(slot_.raw_data()), static_cast<std::uint32_t>(noted_.size())};
}

Status CudaStep::decode(std::size_t kernel, const ErrorSlot& found) {
  const std::lock_guard lock(mutex_);
  return noted_[kernel].decode(found);
}

void CudaStep::take_errors_of(const std::shared_ptr<CudaStep>& captured) {
  // Nothing is noted in `captured` any more.
  if (captured->noted_.empty()) return;
  const std::lock_guard lock(mutex_);
  make_slot();
  const TakeErrorArgs args{static_cast<const ErrorSlot*>(std::as_const(captured->slot_).raw_data()),
                           static_cast<ErrorSlot*>(slot_.raw_data()), static_cast<std::uint32_t>(noted_.size())};
  for (std::size_t k = 0; k < captured->noted_.size(); ++k) {
    noted_.push_back(
        {[captured, k](const ErrorSlot& found) { return captured->decode(k, found); }, captured->noted_[k].node});
  }
  const MemoryUse uses[] = {{args.from, sizeof(ErrorSlot), false}, {args.to, sizeof(ErrorSlot), true}};
  DeviceCore& core = memory_.core();
  core.require_ok(
      core.driver().launch(core.device(), kernel_function<TakeErrorBody>(), {1, 32}, &args, uses, core.compute()),
      "taking the errors of a graph");
}

const ErrorSlot* CudaStep::noted() const {
  const std::lock_guard lock(mutex_);
  return slot_.is_initialized() ? static_cast<const ErrorSlot*>(slot_.raw_data()) : nullptr;
}

void CudaStep::check_at_end(const Node& node, std::shared_ptr<const void> subject, Check check) {
  const std::lock_guard lock(mutex_);
  for (Checked& each : checks_) {
    if (each.subject != subject) continue;
    each.check = std::move(check);
    each.node = &node;
    return;
  }
  checks_.push_back({std::move(subject), std::move(check), &node});
}

Status CudaStep::located(Status status, const Node& node) const {
  return std::move(status).with_node(node.op->name, node.name).with_device(device_name_).with_location(node.where);
}

Status CudaStep::found_in(const ErrorSlot& slot) {
  if (slot.kernel == 0) return Status();
  const std::lock_guard lock(mutex_);
  if (slot.kernel > noted_.size()) return Status::internal("a kernel notes an error as one that there is not");
  Noted& noted = noted_[slot.kernel - 1];
  return located(noted.decode(slot), *noted.node);
}

/// All checks are called, even if one of them throws.
Status CudaStep::status_of_check(const Checked& checked, ErrorCode work) const noexcept {
  try {
    Status status = checked.check(work);
    return status.ok() ? status : located(std::move(status), *checked.node);
  } catch (...) {
    return status_of_current_exception();
  }
}

Status CudaStep::status_from(ErrorCode code, const AnyTensor* slot) noexcept {
  try {
    Status status;
    if (code != ErrorCode::ok) {
      status = memory_.core().status_of(code, "the work of a step").with_device(device_name_);
    } else if (slot != nullptr) {
      ErrorSlot found;
      std::memcpy(&found, slot->raw_data(), sizeof(found));
      status = found_in(found);
    }
    std::vector<Checked> checks;
    {
      const std::lock_guard lock(mutex_);
      checks = checks_;
    }
    for (const Checked& each : checks) {
      const Status of_check = status_of_check(each, code);
      if (status.ok()) status = of_check;
    }
    return status;
  } catch (...) {
    return status_of_current_exception().with_device(device_name_);
  }
}

void CudaStep::status_async(StatusDone done) {
  AnyTensor slot;
  {
    const std::lock_guard lock(mutex_);
    slot = slot_;
  }
  const auto end = std::make_shared<StatusDone>(std::move(done));
  try {
    DeviceCore& core = memory_.core();
    if (slot.is_initialized()) {
      // Work issued later may write to the slot while this is read.
      AnyTensor now(slot.dtype(), slot.shape(), memory_.allocator());
      core.require_ok(core.driver().copy(core.device(), now.raw_data(), std::as_const(slot).raw_data(), slot.bytes(),
                                         CopyKind::on_device, core.compute()),
                      "copying the errors of a step");
      return memory_.read_back(
          now, [this, end](ErrorCode code, const AnyTensor& pinned) { (*end)(status_from(code, &pinned)); });
    }
    memory_.completions().after(memory_.completions().ticket(), core.compute(), nullptr,
                                [this, end](ErrorCode code) { (*end)(status_from(code, nullptr)); });
  } catch (...) {
    Status status = status_of_current_exception().with_device(device_name_);
    // Other devices may wait for work of a lost GPU.
    std::size_t free_bytes = 0, total_bytes = 0;
    const ErrorCode code = memory_.core().driver().memory_info(memory_.core().device(), free_bytes, total_bytes);
    (*end)(is_sticky(code) ? status_from(code, nullptr) : std::move(status));
  }
}

}  // namespace dflow::cuda
