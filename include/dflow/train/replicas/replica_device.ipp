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
std::uint64_t variable_bytes(const Node& variable) {
  const PartialShape& shape = variable.attrs_as<VariableOp>().shape;
  const std::uint64_t elements =
      shape.is_fully_defined() ? static_cast<std::uint64_t>(shape.to_shape().num_elements()) : 1;
  return elements * size_of(variable.types[0]);
}

}  // namespace detail

DeviceFunction replica_device(int num_ps, std::string own_task, const ReplicaDeviceOptions& options) {
  if (num_ps < 0) throw_error(Status::invalid_argument(str_cat("replica_device: ", num_ps, " parameter servers")));
  const DeviceName own = DeviceName::parse(own_task);
  if (own.is_empty()) throw_error(Status::invalid_argument("replica_device: the own task's name is empty"));
  struct Load {
    std::vector<std::uint64_t> bytes;  // by task, of those that were chosen
    std::size_t next = 0;

    std::size_t least_loaded(std::size_t tasks) const {
      const auto least = std::min_element(bytes.begin(), bytes.end());
      return bytes.size() < tasks && (least == bytes.end() || *least > 0)
                 ? bytes.size()
                 : static_cast<std::size_t>(least - bytes.begin());
    }
  };
  const auto load = std::make_shared<Load>();
  return [load, tasks = static_cast<std::size_t>(num_ps), own = own.to_string(), job = std::string(options.ps_job),
          placement = options.placement](const Node& node) {
    if (node.op->role != OpRole::variable || tasks == 0) return own;
    const bool by_size = placement == VariablePlacement::by_size;
    const std::size_t task = by_size ? load->least_loaded(tasks) : load->next++ % tasks;
    if (task >= load->bytes.size()) load->bytes.resize(task + 1);
    load->bytes[task] += detail::variable_bytes(node);
    return str_cat("/job:", job, "/task:", task);
  };
}

}  // namespace dflow::train
