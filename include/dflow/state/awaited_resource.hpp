#pragma once

#include <dflow/core/savable_resource.hpp>

namespace dflow {

/// A resource whose users wait for what others do with it: a queue, an accumulator, a barrier.
///
/// Thread safety: as of SavableResource.
class AwaitedResource : public SavableResource {
 public:
  /// No container has it any more, so that nobody else will find it: those who wait are told `why`, now and from now
  /// on. What needs no waiting goes on.
  virtual void abandon(const Status& why) = 0;
};

}  // namespace dflow
