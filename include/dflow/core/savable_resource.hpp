#pragma once

#include <dflow/core/any_tensor.hpp>
#include <dflow/core/resource.hpp>

#include <span>
#include <vector>

namespace dflow {

/// A resource that checkpoints hold: all that decides how it goes on, as tensors. What was given one's state goes on as
/// the other would have.
///
/// Thread safety: as Resource; the state is one moment's.
class SavableResource : public Resource {
 public:
  /// Tensors of the caller's own, as many and of the same element types for all resources that are declared alike.
  virtual std::vector<AnyTensor> saved_state() const = 0;
  /// Errors: InvalidArgument for what is no state of such a resource, which keeps its own.
  virtual void restore_state(std::span<const AnyTensor> state) = 0;
};

}  // namespace dflow
