#pragma once

#include <dflow/kernels/state/node_stream.hpp>

namespace dflow {

detail::NodeStream::NodeStream(const KernelInit& init, std::int64_t seed, std::int64_t seed2)
    : node_name_(init.node.name),
      seed_(static_cast<std::uint64_t>(seed)),
      seed2_(static_cast<std::uint64_t>(seed2)),
      device_(init.device),
      stream_(container_of(init, RandomStream::container_name)) {}

std::shared_ptr<RandomStream> detail::stream_of_node(ResourceContainer& container, const DeviceContext& device,
                                                     const std::string& node_name, std::uint64_t seed,
                                                     std::uint64_t seed2) {
  return container.lookup_or_create<RandomStream>(RandomStream::key(node_name, seed, seed2), [&] {
    const bool is_seeded = seed != 0 || seed2 != 0;
    const std::uint64_t first = is_seeded ? seed : device.draw_seed(), second = is_seeded ? seed2 : device.draw_seed();
    return std::make_shared<RandomStream>(node_name, first, second);
  });
}

std::shared_ptr<RandomStream> detail::NodeStream::stream() const {
  return stream_.get(
      [this](ResourceContainer& container) { return stream_of_node(container, device_, node_name_, seed_, seed2_); });
}

}  // namespace dflow
