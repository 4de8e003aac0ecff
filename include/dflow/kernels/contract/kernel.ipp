#pragma once

#include <dflow/kernels/contract/kernel.hpp>

namespace dflow {

void AsyncKernel::run(KernelContext&) const {
  throw_error(Status::internal("an asynchronous kernel was run as a synchronous one"));
}

}  // namespace dflow
