#pragma once

#include <dflow/core/any_tensor.hpp>

#include <string>

namespace dflow {

/// A tensor as files of several tensors hold it.
///
/// Thread safety: a value type; the tensor is a handle.
struct NamedTensor {
  std::string name;
  AnyTensor tensor;
};

}  // namespace dflow
