#pragma once

#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/train/fitting/history.hpp>

namespace dflow::train {

double EpochResult::value(std::string_view name) const {
  if (const auto at = values.find(name); at != values.end()) return at->second;
  std::string known;
  for (const auto& each : values) known += (known.empty() ? "'" : ", '") + each.first + "'";
  throw_error(Status::not_found(
      str_cat("epoch ", epoch, " has no value '", name, "'; it has ", known.empty() ? "none" : known)));
}

double History::last(std::string_view name) const {
  if (epochs.empty()) throw_error(Status::not_found(str_cat("there is no epoch with a value '", name, "'")));
  return epochs.back().value(name);
}

}  // namespace dflow::train
