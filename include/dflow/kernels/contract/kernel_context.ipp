#pragma once

#include <dflow/kernels/contract/kernel_context.hpp>

#include <utility>

namespace dflow {

AnyTensor& KernelContext::forward_or_allocate(int i, int o, const Shape& shape) {
  const AnyTensor& x = input(i);
  if (owns_input(i) && x.dtype() == output_dtype(o) && x.num_elements() == shape.num_elements()) {
    AnyTensor& slot = output(o);
    slot = x.reshaped(shape);
    return slot;
  }
  return allocate_output(o, shape);
}

ResourceContainer& StepResources::container() {
  if (ResourceContainer* made = container_.load(std::memory_order_acquire)) return *made;
  auto fresh = std::make_unique<ResourceContainer>("step");
  ResourceContainer* expected = nullptr;
  if (container_.compare_exchange_strong(expected, fresh.get(), std::memory_order_acq_rel)) return *fresh.release();
  return *expected;
}

void KernelContext::set_output_dead(int i) {
  if (step_->dead == nullptr) throw_error(Status::internal("a step without branches was given a dead tensor"));
  output(i).reset();
  step_->dead->slots[wiring_->first_output + i] = 1;
  step_->dead->any.store(true, std::memory_order_relaxed);
}

void KernelContext::fail(std::string message) const { throw_error(Status::invalid_argument(std::move(message))); }

// A handle is a scalar of element type `resource`. Its bytes are a shared_ptr, owned by the buffer that borrows them.

AnyTensor make_resource_handle(std::shared_ptr<Resource> resource) {
  auto held = std::make_unique<std::shared_ptr<Resource>>(std::move(resource));
  AnyTensor handle =
      AnyTensor::adopt(DType::resource, Shape{}, held.get(), sizeof *held, [owned = held.get()] { delete owned; });
  static_cast<void>(held.release());
  return handle;
}

Resource* resource_of(const AnyTensor& handle) noexcept {
  if (handle.dtype() != DType::resource || handle.raw_data() == nullptr) return nullptr;
  return static_cast<const std::shared_ptr<Resource>*>(handle.raw_data())->get();
}

void KernelContext::reject_scalar(int i) const {
  fail(str_cat("input ", i, " has shape ", input(i).shape().to_string(), ", wanted a scalar"));
}

void KernelContext::reject_resource(int i) const {
  const Resource* found = resource_of(i);
  fail(str_cat("input ", i, " is a handle to ", found == nullptr ? "nothing" : found->debug_string(),
               ", which this op does not work on"));
}

}  // namespace dflow
