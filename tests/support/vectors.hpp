// Tensors of rank 1 from the values of a test.
#pragma once

#include <dflow/core/tensor.hpp>

#include <cstdint>
#include <vector>

namespace dflow::testing {

template <class T>
Tensor<T> vector_of(const std::vector<T>& values) {
  return Tensor<T>({static_cast<std::int64_t>(values.size())}, values);
}

}  // namespace dflow::testing
