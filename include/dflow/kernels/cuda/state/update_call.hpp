#pragma once

#include <dflow/kernels/cuda/bodies/updates.hpp>
#include <dflow/kernels/cuda/cuda.hpp>
#include <dflow/ops/state/update.hpp>

namespace dflow::cuda {

/// A tensor of the same value in a block of its own, which the compute stream fills. Throws the driver's error.
AnyTensor copy_of(const KernelContext& context, const AnyTensor& x);

/// An update of the variables behind the first inputs, which have the shape of the gradient.
struct VariableUpdateCall {
  dflow::detail::UpdateInputs inputs = {};
  bool use_nesterov = false;
};

/// The call of an op `O` that updates variables.
template <class O>
constexpr VariableUpdateCall update_call(const typename O::Attrs& attrs) {
  if constexpr (requires { O::update; }) {
    return {O::update, dflow::detail::uses_nesterov<O>(attrs)};
  } else {
    return {};  // variable = Op(variable, value)
  }
}

}  // namespace dflow::cuda
