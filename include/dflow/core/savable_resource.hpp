#pragma once

#include <dflow/core/any_tensor.hpp>
#include <dflow/core/resource.hpp>

#include <span>
#include <vector>

namespace dflow {

/// A resource that checkpoints hold: its state, as tensors, decides how it goes on. If a resource is given the state
/// of another one, it goes on as the other would have.
///
/// Thread safety: as Resource; the state is one moment's.
class SavableResource : public Resource {
 public:
  /// Tensors of the caller's own, as many and of the same element types for all resources that are declared alike.
  virtual std::vector<AnyTensor> saved_state() const = 0;
  /// Errors: InvalidArgument if `state` is not the state of a resource of this kind; the resource then keeps its own
  /// state.
  virtual void restore_state(std::span<const AnyTensor> state) = 0;
};

}  // namespace dflow
