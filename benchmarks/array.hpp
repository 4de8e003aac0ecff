#pragma once

#include <dflow/core/tensor.hpp>

#include <cstdint>

namespace dflow::bench {

/// An array in memory as tensors have it, for both sides of a comparison; copies are copies of the numbers.
template <class T>
class Array {
 public:
  explicit Array(std::int64_t n) : numbers_(Tensor<T>::zeros({n})) {}
  Array(const Array& other) : numbers_(other.numbers_.deep_copy()) {}
  T* data() { return numbers_.data(); }
  const T* data() const { return numbers_.data(); }
  std::int64_t size() const { return numbers_.num_elements(); }

 private:
  Tensor<T> numbers_;
};

}  // namespace dflow::bench
