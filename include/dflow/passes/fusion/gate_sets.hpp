#pragma once

#include <dflow/graph/step_graph.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

namespace dflow::detail {

/// Sets of the gates that nodes of a step wait for, each known by a number: small sets, and one for all sets of more
/// than `max_size`.
class GateSets {
 public:
  using Id = std::int32_t;
  static constexpr Id none = 0, many = -1;
  static constexpr std::size_t max_size = 16;

  Id only(StepEndpoint gate) { return number_of({{gate.node.value(), gate.index}}); }

  Id join(Id a, Id b) {
    if (a == b || b == none) return a;
    if (a == none) return b;
    if (a == many || b == many) return many;
    const auto [found, is_new] = joined_.try_emplace(std::minmax(a, b), many);
    if (!is_new) return found->second;
    const Set& left = *sets_[static_cast<std::size_t>(a)];
    const Set& right = *sets_[static_cast<std::size_t>(b)];
    Set both;
    std::set_union(left.begin(), left.end(), right.begin(), right.end(), std::back_inserter(both));
    if (both.size() <= max_size) found->second = number_of(std::move(both));
    return found->second;
  }

 private:
  using Set = std::vector<std::pair<std::int32_t, std::int32_t>>;

  Id number_of(Set set) {
    const auto [found, is_new] = numbers_.try_emplace(std::move(set), static_cast<Id>(sets_.size()));
    if (is_new) sets_.push_back(&found->first);
    return found->second;
  }

  std::map<Set, Id> numbers_;
  std::vector<const Set*> sets_{nullptr};  ///< by number; the first is empty
  std::map<std::pair<Id, Id>, Id> joined_;
};

}  // namespace dflow::detail
