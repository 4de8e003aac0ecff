#pragma once

#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/io/checkpoint/parts/missing_tensor.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace dflow::detail {

void reject_missing_tensor(std::string_view what, std::string_view name, const std::vector<std::string>& names) {
  constexpr std::size_t most = 8;
  std::string text = str_cat(what, " has no tensor '", name, "'");
  for (std::size_t i = 0; i < std::min(names.size(), most); ++i) {
    text += str_cat(i == 0 ? ", only '" : ", '", names[i], "'");
  }
  if (names.size() > most) text += str_cat(" and ", names.size() - most, " others");
  throw_error(Status::not_found(std::move(text)));
}

}  // namespace dflow::detail
