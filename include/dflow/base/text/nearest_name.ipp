#pragma once

#include <dflow/base/text/nearest_name.hpp>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

namespace dflow {

namespace detail {

/// The least number of characters to put in, take out or change that makes `a` into `b`.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({changed, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

}  // namespace detail

NearestName::NearestName(std::string_view wanted) noexcept
    : wanted_(wanted), within_(std::min<std::size_t>(3, wanted.size())) {
  constexpr std::size_t longest = 100;
  if (wanted.size() > longest) within_ = 0;
}

void NearestName::consider(std::string_view name) {
  if (name.size() + within_ <= wanted_.size() || wanted_.size() + within_ <= name.size()) return;
  const std::size_t distance = detail::edit_distance(wanted_, name);
  if (distance >= within_) return;
  within_ = distance;
  nearest_ = name;
}

}  // namespace dflow
