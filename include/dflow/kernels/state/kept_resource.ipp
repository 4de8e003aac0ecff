#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/kernels/state/kept_resource.hpp>

namespace dflow {

std::shared_ptr<ResourceContainer> detail::container_of(const KernelInit& init, std::string_view name) {
  if (init.device.resources == nullptr) {
    throw_error(Status::failed_precondition(str_cat("device ", init.device.name, " keeps no resources")));
  }
  return init.device.resources->container(name);
}

}  // namespace dflow
