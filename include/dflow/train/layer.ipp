#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/train/layer.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace dflow {

AnyVariable detail::find_variable(const LayerState& state, std::string_view name) {
  for (const LayerVariable& each : state.variables) {
    if (each.name == name) return each.variable;
  }
  throw_error(Status::not_found(str_cat("layer '", state.name, "' has no variable '", name, "'",
                                        state.variables.empty() ? ": variables are made at the first call" : "")));
}

Layer::Layer(std::string_view name) : state_(std::make_shared<detail::LayerState>()) { state_->name = name; }

std::vector<AnyVariable> Layer::variables() const {
  std::vector<AnyVariable> all;
  for (const detail::LayerVariable& each : state_->variables) all.push_back(each.variable);
  return all;
}

std::vector<AnyVariable> Layer::trainable_variables() const {
  std::vector<AnyVariable> trained;
  for (const detail::LayerVariable& each : state_->variables) {
    if (each.trainable) trained.push_back(each.variable);
  }
  return trained;
}

AnyVariable Layer::variable(std::string_view name) const { return detail::find_variable(*state_, name); }

}  // namespace dflow
