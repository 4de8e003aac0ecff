#pragma once

#include <dflow/core/savable_resource.hpp>
#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/kernels/state/kept_resource.hpp>
#include <dflow/kernels/state/node_stream.hpp>
#include <dflow/ops/checkpoint/resource_state.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dflow {

template <>
struct Kernel<RandomStreamHandle, Cpu> {
 public:
  explicit Kernel(const KernelInit& init)
      : attrs_(init.node.attrs_as<RandomStreamHandle>()),
        device_(init.device),
        handle_(detail::container_of(init, RandomStream::container_name)) {}

  double cost_ns(const KernelInit&) const { return 50; }
  void operator()(KernelContext& context) const {
    context.set_output(0, handle_.get([this](ResourceContainer& container) {
      return make_resource_handle(detail::stream_of_node(container, device_, attrs_.node,
                                                         static_cast<std::uint64_t>(attrs_.seed),
                                                         static_cast<std::uint64_t>(attrs_.seed2)));
    }));
  }

 private:
  const RandomStreamHandle::Attrs attrs_;
  const DeviceContext& device_;
  detail::KeptResource<AnyTensor> handle_;
};

template <>
struct Kernel<ReadResourceState, Cpu> {
  double cost_ns(const KernelInit&) const { return 200; }
  void operator()(KernelContext& context) const {
    const SavableResource& resource = context.resource<SavableResource>(0);
    std::vector<AnyTensor> state = resource.saved_state();
    bool fits = static_cast<int>(state.size()) == context.num_outputs();
    for (std::size_t i = 0; fits && i < state.size(); ++i) {
      fits = state[i].dtype() == context.output_dtype(static_cast<int>(i));
    }
    if (!fits) context.fail(str_cat("the state of ", resource.debug_string(), " has other element types"));
    for (std::size_t i = 0; i < state.size(); ++i) context.set_output(static_cast<int>(i), std::move(state[i]));
  }
};

template <>
struct Kernel<AssignResourceState, Cpu> {
  double cost_ns(const KernelInit&) const { return 200; }
  void operator()(KernelContext& context) const {
    std::vector<AnyTensor> state;
    state.reserve(static_cast<std::size_t>(context.num_inputs()));
    for (int i = 1; i < context.num_inputs(); ++i) state.push_back(context.input(i));
    context.resource<SavableResource>(0).restore_state(state);
  }
};

}  // namespace dflow
