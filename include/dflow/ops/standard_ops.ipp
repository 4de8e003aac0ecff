#pragma once

#include <dflow/ops/standard_ops.hpp>

namespace dflow {

namespace detail {

template <class List>
struct StandardTable;
template <class... Ops>
struct StandardTable<TypeList<Ops...>> {
  using Sorted = SortedOps<typename Concatenated<typename WithDerivatives<Ops>::type...>::type>;
  static constexpr OpTable table{Sorted::ops};
};

}  // namespace detail

const OpTable& standard_op_table() noexcept { return detail::StandardTable<StandardOps>::table; }

}  // namespace dflow
