#pragma once

#include <dflow/base/checked.hpp>
#include <dflow/ops/state/variable.hpp>
#include <dflow/train/replicas/replica_device.hpp>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

namespace dflow::train {

namespace detail {

/// The bytes of a variable, as far as its shape tells.
DFLOW_INLINE std::uint64_t variable_bytes(const Node& variable) {
  const PartialShape& shape = variable.attrs_as<VariableOp>().shape;
  const std::uint64_t elements =
      shape.is_fully_defined() ? static_cast<std::uint64_t>(shape.to_shape().num_elements()) : 1;
  return elements * size_of(variable.types[0]);
}

}  // namespace detail

DFLOW_INLINE DeviceFunction replica_device(int num_ps, std::string own_task, const ReplicaDeviceOptions& options) {
  if (num_ps < 0) throw_error(invalid_argument(str_cat("replica_device: ", num_ps, " parameter servers")));
  const DeviceName own = DeviceName::parse(own_task);
  if (own.is_empty()) throw_error(invalid_argument("replica_device: the own task's name is empty"));
  struct Load {
    std::vector<std::uint64_t> bytes;  // by task
    std::size_t next = 0;
  };
  const auto load = std::make_shared<Load>();
  load->bytes.resize(static_cast<std::size_t>(num_ps));
  return [load, own = own.to_string(), job = std::string(options.ps_job),
          placement = options.placement](const Node& node) {
    if (node.op->role != OpRole::variable || load->bytes.empty()) return own;
    const bool by_size = placement == VariablePlacement::by_size;
    const auto least = std::min_element(load->bytes.begin(), load->bytes.end());
    const std::size_t task =
        by_size ? static_cast<std::size_t>(least - load->bytes.begin()) : load->next++ % load->bytes.size();
    load->bytes[task] += detail::variable_bytes(node);
    return str_cat("/job:", job, "/task:", task);
  };
}

}  // namespace dflow::train
