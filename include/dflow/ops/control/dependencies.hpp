#pragma once

#include <dflow/graph/graph.hpp>
#include <dflow/ops/array/like.hpp>
#include <dflow/ops/control/no_op.hpp>

#include <initializer_list>
#include <span>
#include <tuple>

namespace dflow {

namespace detail {
AnyOutput any_with_dependencies(std::span<const Operation> operations, const AnyOutput& x, const At& at);
}  // namespace detail

/// x, available once all of `operations` have run.
///
/// ```cpp
/// auto after = df::with_dependencies({update}, loss);
/// ```
/// Errors: InvalidArgument if an operation belongs to another graph.
template <AllowedFor<Identity> T>
Output<T> with_dependencies(std::initializer_list<Operation> operations, const Output<T>& x, const At& at = {}) {
  return Output<T>::unchecked(detail::any_with_dependencies({operations.begin(), operations.size()}, x, at));
}

/// The edges themselves, each available once all are.
///
/// Errors: InvalidArgument if the edges belong to different graphs.
template <class... Ts>
  requires(sizeof...(Ts) > 0 && (AllowedFor<Ts, Identity> && ...))
std::tuple<Output<Ts>...> tuple(const Output<Ts>&... edges) {
  const Operation all = group({edges.operation()...});
  return {Output<Ts>::unchecked(detail::any_with_dependencies({&all, 1}, edges, {}))...};
}

}  // namespace dflow
