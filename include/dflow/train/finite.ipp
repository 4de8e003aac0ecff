#pragma once

#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/ops/reduction/reduce.hpp>
#include <dflow/ops/state/variable.hpp>
#include <dflow/train/finite.hpp>

#include <algorithm>
#include <complex>

namespace dflow::train {

NonFiniteVariables::NonFiniteVariables(GraphStore& graph) {
  const ScopeGuard outside = graph.enter(GraphStore::Scope{});
  const ScopeGuard names = enter_name_scope(graph, "finite");
  const std::vector<NodeId> trained = graph.collection("trainable_variables");
  for (const AnyVariable& variable : dflow::detail::variables_in(graph, "variables")) {
    if (!is_floating(variable.dtype())) continue;
    const ScopeGuard where_it_is = enter_colocation(graph, variable.handle().operation());
    const auto [x, axes] = dflow::detail::reduce_operands(variable.read_edge(), {}, false, Max::name, {});
    const bool is_trained = std::find(trained.begin(), trained.end(), variable.handle().node_id()) != trained.end();
    variables_.push_back({variable.name(), is_trained});
    are_initialized_.push_back(variable.is_initialized());
    extremes_.push_back(build<Max>({x, axes}));
    extremes_.push_back(build<Min>({x, axes}));
  }
}

std::vector<std::string> NonFiniteVariables::find(Session& session) const {
  std::vector<std::string> found;
  if (variables_.empty()) return found;
  std::vector<AnyTensor> are_initialized(are_initialized_.size());
  session.run_erased({}, nullptr, {}, are_initialized_, {}, are_initialized);
  std::vector<std::size_t> looked;
  std::vector<AnyOutput> edges;
  for (std::size_t i = 0; i < variables_.size(); ++i) {
    if (!are_initialized[i].as<bool>().scalar()) continue;
    looked.push_back(i);
    edges.insert(edges.end(), {extremes_[2 * i], extremes_[2 * i + 1]});
  }
  if (edges.empty()) return found;
  std::vector<AnyTensor> extremes(edges.size());
  session.run_erased({}, nullptr, {}, edges, {}, extremes);
  for (std::size_t k = 0; k < looked.size(); ++k) {
    const auto number = [](const AnyTensor& scalar) {
      return visit_dtype<FloatTypes>(scalar.dtype(),
                                     [&]<class T>() { return static_cast<double>(Tensor<T>::of(scalar).scalar()); });
    };
    const double largest = number(extremes[2 * k]), smallest = number(extremes[2 * k + 1]);
    if (largest < smallest) continue;  // no elements
    const Looked& variable = variables_[looked[k]];
    const bool is_finite = std::isfinite(largest) && std::isfinite(smallest);
    if (std::isnan(largest) || (variable.is_trained && !is_finite)) found.push_back(variable.name);
  }
  return found;
}

namespace detail {

std::string say_not_finite(std::span<const std::string> variables) {
  constexpr std::size_t most = 4;
  const std::size_t count = variables.size(), shown = count <= most + 1 ? count : most;
  if (count == 0) return "; all variables are finite";
  std::string text = count == 1 ? "; the variable " : "; the variables ";
  for (std::size_t i = 0; i < shown; ++i) {
    text += str_cat(i == 0 ? "" : i + 1 == count ? " and " : ", ", "'", variables[i], "'");
  }
  if (shown < count) text += str_cat(" and ", count - shown, " others");
  return text + (count == 1 ? " is not finite" : " are not finite");
}

std::string say_non_finite_variables(Session& session, GraphStore& graph) {
  try {
    return say_not_finite(NonFiniteVariables(graph).find(session));
  } catch (...) {
    return str_cat("; the variables could not be read: ", status_of_current_exception().to_string());
  }
}

std::string say_non_finite(std::string_view x, const AnyTensor& tensor) {
  const auto say = [&](double element, std::size_t at) {
    std::string text = str_cat("; ", x, " is ", element);
    if (tensor.rank() == 0) return text;
    const auto row = static_cast<std::int64_t>(at) / (tensor.num_elements() / tensor.dim(0));
    return text + str_cat(" in row ", row, " of ", tensor.dim(0));
  };
  const auto search = [&]<class T>() -> std::string {
    if constexpr (is_floating_element<T>) {
      const auto elements = tensor.span<T>();
      for (std::size_t i = 0; i < elements.size(); ++i) {
        if (const auto element = static_cast<double>(elements[i]); !std::isfinite(element)) return say(element, i);
      }
    } else if constexpr (is_complex_element<T>) {
      const auto elements = tensor.span<T>();
      for (std::size_t i = 0; i < elements.size(); ++i) {
        for (const auto part : {elements[i].real(), elements[i].imag()}) {
          if (!std::isfinite(part)) return say(static_cast<double>(part), i);
        }
      }
    }
    return {};
  };
  return is_element(tensor.dtype()) ? visit_dtype<AllTypes>(tensor.dtype(), search) : std::string();
}

void throw_not_finite(double loss, std::int64_t step, Session& session, const Graph& graph,
                      std::span<const AnyTensor* const> batch) {
  std::string text = str_cat("the loss is ", loss, " in step ", step), found;
  for (std::size_t i = 0; i < batch.size(); ++i) found += say_non_finite(str_cat("tensor ", i), *batch[i]);
  if (!batch.empty() && found.empty()) found = "; all tensors of the batch are finite";
  throw_error(Status::invalid_argument(text + found + say_non_finite_variables(session, *graph.store())));
}

}  // namespace detail

}  // namespace dflow::train
