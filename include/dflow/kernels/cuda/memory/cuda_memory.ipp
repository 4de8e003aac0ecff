#pragma once

#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/kernels/cuda/memory/cuda_memory.hpp>

#include <cstring>
#include <utility>

namespace dflow::cuda {

namespace detail {

/// Work that is issued from now on runs after the copy. If that order cannot be issued, the destination block of the
/// copy is not given out again.
inline void order_after_copy(const DeviceCore& core, StreamHandle stream, const AnyTensor& block) {
  try {
    core.order(core.compute(), stream);
  } catch (...) {
    core.keep(std::make_shared<AnyTensor>(block));
    throw;
  }
}

}  // namespace detail

CudaMemory::CudaMemory(std::shared_ptr<DeviceCore> core, CudaAllocatorOptions options)
    : core_(std::move(core)),
      allocator_(std::make_shared<CudaAllocator>(core_, options)),
      pinned_(std::make_shared<PinnedAllocator>(core_->shared_driver())),
      pinned_pool_(std::make_shared<PoolAllocator>(pinned_)),
      completions_(std::make_unique<Completions>(core_)) {}

CudaMemory::~CudaMemory() {
  completions_ = nullptr;
  core_->end();
}

AnyTensor CudaMemory::in_pinned_memory(const AnyTensor& host) {
  if (pinned_->contains(host.raw_data())) return host;
  AnyTensor copy(host.dtype(), host.shape(), *pinned_pool_);
  std::memcpy(copy.raw_data(), host.raw_data(), host.bytes());
  return copy;
}

void CudaMemory::copy_in_async(const AnyTensor& host, CopyDone done) {
  AnyTensor here;
  try {
    here = AnyTensor(host.dtype(), host.shape(), *allocator_);
    if (here.bytes() != 0) {
      const auto source = std::make_shared<AnyTensor>(in_pinned_memory(host));
      Completions::Ticket ticket = completions_->ticket();
      // The block may have been used by work on the compute stream before.
      core_->order(core_->copies_in(), core_->compute());
      core_->require_ok(core_->driver().copy(core_->device(), here.raw_data(), source->raw_data(), here.bytes(),
                                             CopyKind::to_device, core_->copies_in()),
                        "copying to it");
      const StreamHandle stream = core_->copies_in();
      completions_->after(std::move(ticket), stream, source, [](ErrorCode) {});
      detail::order_after_copy(*core_, stream, here);
    }
  } catch (...) {
    return done(status_of_current_exception(), AnyTensor());
  }
  done(Status(), std::move(here));
}

void CudaMemory::read_back(const AnyTensor& block, UniqueFunction<void(ErrorCode, const AnyTensor& pinned)> take) {
  struct Ends {
    AnyTensor from, to;
  };
  const auto ends = std::make_shared<Ends>();
  ends->from = block;
  ends->to = AnyTensor(block.dtype(), block.shape(), *pinned_pool_);
  Completions::Ticket ticket = completions_->ticket();
  core_->order(core_->copies_out(), core_->compute());
  core_->require_ok(core_->driver().copy(core_->device(), ends->to.raw_data(), block.raw_data(), block.bytes(),
                                         CopyKind::to_host, core_->copies_out()),
                    "copying from it");
  completions_->after(std::move(ticket), core_->copies_out(), ends,
                      [to = ends->to, take = std::move(take)](ErrorCode code) mutable { take(code, to); });
}

void CudaMemory::copy_out_async(const AnyTensor& here, Allocator& allocator, CopyDone done) {
  AnyTensor host;
  // Shared, since `read_back` may throw after it was given away.
  const auto end = std::make_shared<CopyDone>(std::move(done));
  try {
    if (here.bytes() != 0) {
      const bool is_pinned = &allocator == pinned_pool_.get();
      if (!is_pinned) host = AnyTensor(here.dtype(), here.shape(), allocator);
      return read_back(here,
                       [core = core_, host = std::move(host), end](ErrorCode code, const AnyTensor& pinned) mutable {
                         if (code != ErrorCode::ok)
                           return (*end)(core->status_of(code, "copying from it"), AnyTensor());
                         if (!host.is_initialized()) {
                           host = pinned;
                         } else {
                           std::memcpy(host.raw_data(), pinned.raw_data(), pinned.bytes());
                         }
                         (*end)(Status(), std::move(host));
                       });
    }
    host = AnyTensor(here.dtype(), here.shape(), allocator);
  } catch (...) {
    return (*end)(status_of_current_exception(), AnyTensor());
  }
  (*end)(Status(), std::move(host));
}

void CudaMemory::copy_to_async(const AnyTensor& here, DeviceMemory& there, Allocator& host, CopyDone done) {
  auto* const to = dynamic_cast<CudaMemory*>(&there);
  if (to == nullptr || &to->core_->driver() != &core_->driver()) {
    return DeviceMemory::copy_to_async(here, there, host, std::move(done));
  }
  AnyTensor copy;
  try {
    copy = AnyTensor(here.dtype(), here.shape(), *to->allocator_);
    if (copy.bytes() != 0) {
      const auto source = std::make_shared<AnyTensor>(here);
      Completions::Ticket ticket = to->completions_->ticket();
      const StreamHandle stream = to->core_->copies_in();
      to->core_->order(stream, to->core_->compute());
      to->core_->order(stream, *core_, core_->compute());
      core_->require_ok(core_->driver().copy_peer(copy.raw_data(), to->core_->device(), here.raw_data(),
                                                  core_->device(), copy.bytes(), stream),
                        str_cat("copying to GPU ", to->core_->device()));
      to->completions_->after(std::move(ticket), stream, source, [](ErrorCode) {});
      detail::order_after_copy(*to->core_, stream, copy);
    }
  } catch (...) {
    return done(status_of_current_exception(), AnyTensor());
  }
  done(Status(), std::move(copy));
}

}  // namespace dflow::cuda
