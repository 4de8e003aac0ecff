#pragma once

#include <dflow/base/printable.hpp>
#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/core/permuted.hpp>
#include <dflow/core/tensor.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/io/checkpoint/parts/checkpoint_slice.hpp>
#include <dflow/op/conversion.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/ops/control/no_op.hpp>
#include <dflow/train/saving/weights.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>

namespace dflow::train {

namespace detail {

std::string described(const AnyTensor& tensor) {
  return str_cat(dtype_name(tensor.dtype()), tensor.shape().to_string());
}

std::string described(const AnyVariable& variable) {
  return str_cat("variable '", variable.name(), "' is ", dtype_name(variable.dtype()), variable.shape().to_string());
}

/// Why the variable cannot be set in the session, or nothing. Adds it to those that are set.
std::string problem_of(const AnyVariable& variable, const Session& session, std::set<NodeId>& is_set) {
  if (!variable.handle().is_of(session.graph())) return "a variable is empty or of another graph than the session's";
  if (is_set.insert(variable.handle().node_id()).second) return {};
  return str_cat("variable '", variable.name(), "' is there twice");
}

/// The part of a tensor that the variable holds: all of it, or its slice if it is a part of a partitioned variable.
/// Nothing if the shape does not fit.
std::optional<AnyTensor> fitting_part(const AnyVariable& variable, const AnyTensor& tensor) {
  if (variable.shape().is_compatible_with(tensor.shape())) return tensor;
  if (variable.slice().empty()) return std::nullopt;
  const CheckpointSlice slice = CheckpointSlice::parse(variable.slice());
  if (slice.whole != tensor.shape()) return std::nullopt;
  return slice.cut_from(tensor);
}

/// A hint for a tensor whose shape does not fit.
std::string_view layout_hint(const AnyVariable& variable, const AnyTensor& tensor, bool has_layout) {
  const auto fits = [&](std::span<const int> axes) {
    return fitting_part(variable, dflow::permuted(tensor, axes)).has_value();
  };
  if (has_layout) return fitting_part(variable, tensor) ? ": without its layout it fits" : "";
  if (tensor.rank() == 2 && fits(std::array{1, 0})) return ": transposed it fits, by layout::transposed()";
  if (tensor.rank() == 4 && fits(std::array{2, 3, 1, 0})) {
    return ": as [rows, columns, inputs, filters] it fits, by layout::pytorch_conv2d()";
  }
  return "";
}

/// Throws InvalidArgument for a number that becomes infinite.
AnyTensor converted_floats(const AnyTensor& tensor, DType dtype) {
  AnyTensor result(dtype, tensor.shape());
  visit_dtype<FloatTypes>(tensor.dtype(), [&]<class From>() {
    visit_dtype<FloatTypes>(dtype, [&]<class To>() {
      const std::span<const From> from = tensor.span<From>();
      const std::span<To> to = result.span<To>();
      for (std::size_t i = 0; i < from.size(); ++i) {
        to[i] = dflow::detail::converted<To>(from[i]);
        const auto before = static_cast<double>(from[i]), after = static_cast<double>(to[i]);
        if (std::isinf(after) && !std::isinf(before)) {
          throw_error(Status::invalid_argument(str_cat(before, " is too large for ", dtype_name(dtype))));
        }
      }
    });
  });
  return result;
}

/// One error of all problems, the code being that of the first.
[[noreturn]] void fail_together(std::string_view what, const std::vector<Status>& problems,
                                std::source_location where) {
  std::string text = str_cat(what, ": no variable was set");
  for (const Status& problem : problems) text += str_cat("\n  ", printable(problem.message()));
  throw_error(Status(problems.front().code(), std::move(text)).with_location(where));
}

/// The values of variables from their tensors, and what was wrong.
class WeightReader {
 public:
  WeightReader(const SavedTensors& from, const WeightOptions& options) : from_(from), options_(options) {}

  void add(const Weight& weight) {
    std::vector<AnyTensor> tensors;
    bool is_whole = true;
    for (const std::string& name : weight.names.names()) {
      const std::optional<AnyTensor> tensor = read(name);
      is_whole = is_whole && tensor;
      if (tensor) tensors.push_back(*tensor);
    }
    if (!is_whole) return;
    try {
      values_.push_back({weight.variable, value_of(weight, tensors)});
    } catch (const Error& error) {
      problems_.push_back(error.status());
      return;
    }
    for (const std::string& name : weight.names.names()) {
      if (std::ranges::find(report_.loaded, name) == report_.loaded.end()) report_.loaded.push_back(name);
    }
  }

  void note_problem(Status problem) { problems_.push_back(std::move(problem)); }

  /// Errors: all that was wrong.
  std::vector<VariableValue> finish(std::source_location where) {
    for (const std::string& name : from_.names()) {
      if (!tensors_.contains(name)) report_.unused.push_back(name);
    }
    if (!options_.allows_unused) {
      for (const std::string& name : report_.unused) {
        problems_.push_back(Status::invalid_argument(str_cat("tensor '", name, "' is not used")));
      }
    } else if (!options_.allows_missing && !report_.missing.empty() && !report_.unused.empty()) {
      problems_.push_back(Status::not_found(unused_names()));
    }
    if (!problems_.empty()) fail_together(str_cat("load_weights from '", from_.source(), "'"), problems_, where);
    tensors_.clear();
    return std::move(values_);
  }
  WeightReport& report() noexcept { return report_; }

 private:
  /// Each tensor is read once. Nothing if it cannot be read.
  std::optional<AnyTensor> read(const std::string& name) {
    const auto [at, is_new] = tensors_.try_emplace(name);
    if (!is_new) return at->second;
    if (!from_.find(name)) {
      report_.missing.push_back(name);
      if (!options_.allows_missing) problems_.push_back(Status::not_found(str_cat("there is no tensor '", name, "'")));
      return std::nullopt;
    }
    try {
      at->second = from_.read(name);
    } catch (const Error& error) {
      problems_.push_back(error.status());
    }
    return at->second;
  }

  /// A line about tensors whose names may be those that are missing.
  std::string unused_names() const {
    constexpr std::size_t most = 8;
    std::string text = "tensors that are not used: ";
    for (std::size_t i = 0; i < std::min(most, report_.unused.size()); ++i) {
      text += str_cat(i == 0 ? "'" : ", '", report_.unused[i], "'");
    }
    return report_.unused.size() > most ? str_cat(text, " and ", report_.unused.size() - most, " others") : text;
  }

  /// Why elements of `from` cannot be elements of a variable of type `to`, or nothing.
  std::string_view problem_of_types(DType from, DType to) const {
    if (from == to) return "";
    if (!is_floating(from) || !is_floating(to)) return "the element types differ";
    return options_.converts_floats ? "" : "WeightOptions::converts_floats would convert it";
  }

  /// Errors: InvalidArgument that names tensors and variable.
  AnyTensor value_of(const Weight& weight, std::span<const AnyTensor> tensors) const {
    const AnyVariable& variable = weight.variable;
    std::string facts;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      facts += str_cat("tensor '", weight.names.names()[i], "' is ", described(tensors[i]), ", ");
    }
    const auto fail = [&](std::string_view hint) {
      throw_error(Status::invalid_argument(str_cat(facts, described(variable), hint)));
    };
    if (tensors.empty()) fail(": no tensor is named for it");
    if (tensors.size() != 1 && !weight.layout) fail(": several tensors need a layout");
    AnyTensor value = tensors.front();
    try {
      if (weight.layout) value = weight.layout(tensors);
    } catch (const Error& error) {
      fail(str_cat(": ", error.status().message()));
    }
    if (weight.layout) facts += str_cat("by its layout ", described(value), ", ");
    const std::string_view type_problem = problem_of_types(value.dtype(), variable.dtype());
    const std::optional<AnyTensor> part = fitting_part(variable, value);
    if (!part) {
      const std::string_view hint = layout_hint(variable, tensors.front(), weight.layout != nullptr);
      fail(hint.empty() || type_problem.empty() ? std::string(hint) : str_cat(hint, ", and ", type_problem));
    }
    if (!type_problem.empty()) fail(str_cat(": ", type_problem));
    if (part->dtype() == variable.dtype()) return *part;
    try {
      return converted_floats(*part, variable.dtype());
    } catch (const Error& error) {
      fail(str_cat(": ", error.status().message()));
      throw;
    }
  }

  const SavedTensors& from_;
  const WeightOptions& options_;
  std::map<std::string, std::optional<AnyTensor>, std::less<>> tensors_;  ///< those that are named, once looked for
  std::vector<VariableValue> values_;
  std::vector<Status> problems_;
  WeightReport report_;
};

/// Precondition: the values fit.
void assign_checked(Session& session, std::span<const VariableValue> values, std::source_location where) {
  if (values.empty()) return;
  GraphStore& graph = *values.front().variable.handle().graph();
  const ScopeGuard outside = graph.enter(GraphStore::Scope{});
  const ScopeGuard place = enter_place(graph, where);
  const ScopeGuard names = enter_name_scope(graph, "assign");
  std::vector<Operation> assigns;
  std::vector<Feed> feeds;
  for (const auto& [variable, value] : values) {
    const AnyOutput fed = dflow::detail::any_placeholder(graph, value.dtype(), value.shape(), {});
    assigns.push_back(variable.assign(fed));
    feeds.emplace_back(fed, value);
  }
  const Operation all = dflow::detail::no_op_after(graph, assigns, {.name = "all"});
  session.run_erased({}, nullptr, feeds, {}, std::span(&all, 1), {});
}

}  // namespace detail

void assign(Session& session, const std::vector<VariableValue>& values, std::source_location where) {
  std::vector<VariableValue> checked;
  std::vector<Status> problems;
  std::set<NodeId> is_set;
  for (const auto& [variable, value] : values) {
    std::string problem = detail::problem_of(variable, session, is_set);
    std::optional<AnyTensor> part;
    if (problem.empty() && value.dtype() == variable.dtype()) part = detail::fitting_part(variable, value);
    if (part) {
      checked.push_back({variable, *std::move(part)});
      continue;
    }
    if (problem.empty()) {
      problem = str_cat(detail::described(variable), ", and its value ", detail::described(value));
    }
    problems.push_back(Status::invalid_argument(std::move(problem)));
  }
  if (!problems.empty()) detail::fail_together("assign", problems, where);
  detail::assign_checked(session, checked, where);
}

WeightReport load_weights(Session& session, const SavedTensors& from, const std::vector<Weight>& weights,
                          const WeightOptions& options, std::source_location where) {
  detail::WeightReader reader(from, options);
  std::set<NodeId> is_set;
  for (const Weight& weight : weights) {
    std::string problem = detail::problem_of(weight.variable, session, is_set);
    if (problem.empty()) {
      reader.add(weight);
    } else {
      reader.note_problem(Status::invalid_argument(std::move(problem)));
    }
  }
  const std::vector<VariableValue> values = reader.finish(where);
  detail::assign_checked(session, values, where);
  WeightReport report = std::move(reader.report());
  if (weights.empty()) return report;
  is_set.clear();
  for (const VariableValue& each : values) is_set.insert(each.variable.handle().node_id());
  GraphStore& graph = *weights.front().variable.handle().graph();
  for (const AnyVariable& variable : dflow::detail::variables_in(graph, "trainable_variables")) {
    if (!is_set.contains(variable.handle().node_id())) report.kept.push_back(variable.name());
  }
  return report;
}

}  // namespace dflow::train
