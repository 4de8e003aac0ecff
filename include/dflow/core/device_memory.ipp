#pragma once

#include <dflow/core/device_memory.hpp>

#include <utility>

namespace dflow {

DeviceMemory::~DeviceMemory() = default;

void DeviceMemory::copy_to_async(const AnyTensor& here, DeviceMemory& there, Allocator& host, CopyDone done) {
  copy_out_async(here, host, [&there, done = std::move(done)](Status status, AnyTensor on_host) mutable {
    if (!status.ok()) return done(std::move(status), AnyTensor());
    there.copy_in_async(on_host, std::move(done));
  });
}

void copy_across_async(const AnyTensor& tensor, DeviceMemory* from, DeviceMemory* to, Allocator& host,
                       DeviceMemory::CopyDone done) {
  // Handles and strings are objects of the host wherever they are used.
  if (from == to || !tensor.is_initialized() || is_handle(tensor.dtype()) || tensor.dtype() == DType::string) {
    return done(Status(), tensor);
  }
  if (from == nullptr) return to->copy_in_async(tensor, std::move(done));
  if (to == nullptr) return from->copy_out_async(tensor, host, std::move(done));
  from->copy_to_async(tensor, *to, host, std::move(done));
}

}  // namespace dflow
