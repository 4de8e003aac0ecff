#pragma once

#include <dflow/kernels/contract/kernel.hpp>

namespace dflow {

void AsyncKernel::run(KernelContext&) const {
  throw_error(internal("an asynchronous kernel was run as a synchronous one"));
}

}  // namespace dflow
