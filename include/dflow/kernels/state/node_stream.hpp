#pragma once

#include <dflow/kernels/contract/kernel.hpp>
#include <dflow/kernels/state/kept_resource.hpp>
#include <dflow/state/random_stream.hpp>

#include <cstdint>
#include <memory>
#include <string>

namespace dflow {

namespace detail {

/// The stream of a random node in a device's container. If it is not there, it is made with the node's seeds, or, if
/// both are 0, with seeds that the device draws.
std::shared_ptr<RandomStream> stream_of_node(ResourceContainer& container, const DeviceContext& device,
                                             const std::string& node_name, std::uint64_t seed, std::uint64_t seed2);

/// A random node's way to its stream.
///
/// Thread safety: safe.
class NodeStream {
 public:
  NodeStream(const KernelInit& init, std::int64_t seed, std::int64_t seed2);

  PhiloxStream reserve(std::int64_t num_values) const { return stream()->reserve(num_values); }
  PhiloxStream reserve_groups(std::uint64_t num_groups) const { return stream()->reserve_groups(num_groups); }

 private:
  std::shared_ptr<RandomStream> stream() const;

  const std::string node_name_;
  const std::uint64_t seed_, seed2_;
  const DeviceContext& device_;
  KeptResource<std::shared_ptr<RandomStream>> stream_;
};

}  // namespace detail

}  // namespace dflow
