#pragma once

#include <dflow/core/savable_resource.hpp>

namespace dflow {

/// A resource (a queue, an accumulator, a barrier) with users that wait for actions of other users.
///
/// Thread safety: as of SavableResource.
class AwaitedResource : public SavableResource {
 public:
  /// No container holds the resource any more, and nobody else will find it. Waiting calls are told `why`, now and
  /// from now on. A call that needs no waiting goes on.
  virtual void abandon(const Status& why) = 0;
};

}  // namespace dflow
