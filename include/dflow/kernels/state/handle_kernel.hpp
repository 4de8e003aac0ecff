#pragma once

#include <dflow/kernels/contract/kernel.hpp>
#include <dflow/kernels/state/kept_resource.hpp>

#include <memory>
#include <string>

namespace dflow::detail {

/// Gives the resource of type `State` that its container holds now under the node's shared name, or its own: another
/// one after the container was reset. `Derived::make(name)` makes a resource; `Derived::is_same_kind(state)` says
/// whether an existing one will do.
///
/// Thread safety: const after construction; runs may be concurrent.
/// Errors: InvalidArgument for one of another kind.
template <class Derived, class O, class State>
class HandleKernel {
 public:
  explicit HandleKernel(const KernelInit& init)
      : name_(name_of(init.node)), handle_(container_of(init, init.node.attrs_as<O>().container)) {}

  double cost_ns(const KernelInit&) const { return 20; }
  void operator()(KernelContext& context) const {
    context.set_output(0, handle_.get([this](ResourceContainer& container) {
      const auto& derived = static_cast<const Derived&>(*this);
      const auto state = container.lookup_or_create<State>(name_, [&] { return derived.make(name_); });
      if (!derived.is_same_kind(*state)) {
        throw_error(Status::invalid_argument(str_cat("container '", container.name(), "' keeps ", state->debug_string(),
                                                     ", wanted ", derived.make(name_)->debug_string())));
      }
      return make_resource_handle(state);
    }));
  }

 private:
  static const std::string& name_of(const Node& node) {
    const std::string& shared = node.attrs_as<O>().shared_name;
    return shared.empty() ? node.name : shared;
  }

  const std::string name_;
  KeptResource<AnyTensor> handle_;
};

}  // namespace dflow::detail
