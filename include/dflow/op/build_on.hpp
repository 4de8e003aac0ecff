#pragma once

#include <dflow/op/build.hpp>

#include <initializer_list>
#include <string_view>
#include <utility>

namespace dflow::detail {

/// A node that gives a handle waits for nothing: the nodes that use the handle do.
[[nodiscard]] ScopeGuard enter_without_control_inputs(GraphStore& graph);

/// The scope of ops on a resource, which are placed where the resource is. Errors: InvalidArgument, naming the op, if
/// the handle is empty or its graph is gone.
[[nodiscard]] ScopeGuard enter_beside(const AnyOutput& handle, std::string_view op, const At& at);

/// Builds an op on a resource, whose handle is the first input, where the resource is. Errors: as `enter_beside` and
/// `build`.
template <OpType O>
BuiltNode build_on(std::initializer_list<AnyOutput> inputs, typename O::Attrs attrs, const At& at,
                   const TypeArgs& types = {}) {
  const ScopeGuard beside = enter_beside(*inputs.begin(), O::name, at);
  return build<O>(inputs, std::move(attrs), at, types);
}

}  // namespace dflow::detail
