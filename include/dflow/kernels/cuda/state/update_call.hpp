#pragma once

#include <dflow/kernels/cuda/bodies/updates.hpp>
#include <dflow/kernels/cuda/cuda.hpp>

#include <cstddef>
#include <initializer_list>

namespace dflow::cuda {

/// A tensor of the same value in a block of its own, which the compute stream fills. Throws the driver's error.
AnyTensor copy_of(const KernelContext& context, const AnyTensor& x);

/// The inputs of an update that are scalars.
class FactorInputs {
 public:
  constexpr FactorInputs(std::initializer_list<int> inputs = {}) {
    for (const int input : inputs) inputs_[size_++] = input;
  }

  constexpr const int* begin() const noexcept { return inputs_; }
  constexpr const int* end() const noexcept { return inputs_ + size_; }
  constexpr std::size_t size() const noexcept { return size_; }

 private:
  int inputs_[UpdateArgs::max_factors] = {};
  std::size_t size_ = 0;
};

/// An update of the variables behind the first inputs, which have the shape of input `gradient`.
struct VariableUpdateCall {
  int num_variables = 1;
  int gradient = 1;
  FactorInputs factors = {};
  bool use_nesterov = false;
};

constexpr VariableUpdateCall with_nesterov(VariableUpdateCall call, bool use_nesterov) {
  call.use_nesterov = use_nesterov;
  return call;
}

inline constexpr VariableUpdateCall assign_update_call{};
inline constexpr VariableUpdateCall gradient_descent_call{.gradient = 2, .factors = {1}};
inline constexpr VariableUpdateCall momentum_call{.num_variables = 2, .gradient = 3, .factors = {2, 4}};
inline constexpr VariableUpdateCall adam_call{.num_variables = 3, .gradient = 9, .factors = {3, 4, 5, 6, 7, 8}};

}  // namespace dflow::cuda
