#pragma once

#include <dflow/autodiff/gradients.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/ops/array/constant.hpp>
#include <dflow/session/check_gradients.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace dflow {

namespace detail {

/// Calls `f.template operator()<T>()` with a floating or complex type of elements.
template <class F>
void with_differentiable(DType dtype, F&& f) {
  for_each_type<concat_t<FloatTypes, ComplexTypes>>([&]<class T>() {
    if (dtype == dtype_of<T>) f.template operator()<T>();
  });
}

inline std::complex<double> element_of(const AnyTensor& tensor, std::int64_t i) {
  std::complex<double> value;
  with_differentiable(tensor.dtype(), [&]<class T>() {
    const T element = Tensor<T>::of(tensor).data()[i];
    if constexpr (is_complex_element<T>) {
      value = {static_cast<double>(element.real()), static_cast<double>(element.imag())};
    } else {
      value = static_cast<double>(element);
    }
  });
  return value;
}
inline void set_element(AnyTensor& tensor, std::int64_t i, std::complex<double> value) {
  with_differentiable(tensor.dtype(), [&]<class T>() {
    T& element = Tensor<T>::of(tensor).data()[i];
    if constexpr (is_complex_element<T>) {
      element = T(static_cast<typename T::value_type>(value.real()), static_cast<typename T::value_type>(value.imag()));
    } else {
      element = static_cast<T>(value.real());
    }
  });
}

/// The step size and the tolerance for the least precise element type.
struct CheckPrecision {
  double delta, tolerance;
};
CheckPrecision check_precision(DType dtype) {
  if (dtype == DType::float64 || dtype == DType::complex128) return {1e-5, 1e-5};
  if (dtype == DType::float16) return {0x1p-4, 0.1};
  if (dtype == DType::bfloat16) return {0x1p-4, 0.3};
  return {0x1p-10, 1e-2};
}

class GradientChecker {
 public:
  GradientChecker(Session& session, const AnyOutput& y, const std::vector<Feed>& xs,
                  const GradientCheckOptions& options)
      : session_(session), y_(y), xs_(xs), options_(options), fed_(xs) {
    if (xs.empty()) reject("there is no x");
    require_differentiable(y, "y");
    CheckPrecision precision = check_precision(y.dtype());
    for (std::size_t i = 0; i < xs.size(); ++i) {
      require_differentiable(xs[i].output, str_cat("x ", i));
      const CheckPrecision own = check_precision(xs[i].output.dtype());
      precision = {std::max(precision.delta, own.delta), std::max(precision.tolerance, own.tolerance)};
    }
    delta_ = options.delta.value_or(precision.delta);
    check_.tolerance = options.tolerance.value_or(precision.tolerance);
    if (!(delta_ > 0) || !(check_.tolerance >= 0)) {
      reject(str_cat("a delta of ", delta_, " and a tolerance of ", check_.tolerance));
    }
    fed_.insert(fed_.end(), options.feeds.begin(), options.feeds.end());
  }

  GradientCheck run() {
    draw_weights(value_of_y());
    const std::vector<AnyTensor> gradients = gradients_of_graph();
    for (std::size_t k = 0; k < xs_.size(); ++k) {
      const AnyTensor& x = xs_[k].tensor;
      fed_[k].tensor = x.deep_copy();
      for (std::int64_t i = 0; i < x.num_elements(); ++i) compare(k, i, element_of(gradients[k], i));
      fed_[k].tensor = x;
    }
    return std::move(check_);
  }

 private:
  [[noreturn]] void reject(const std::string& why) const {
    throw_error(Status::invalid_argument(str_cat("check_gradients: ", why)).with_location(options_.where));
  }
  void require_differentiable(const AnyOutput& edge, const std::string& what) const {
    if (!edge.is_valid()) reject(what + " is an empty Output");
    if (is_floating(edge.dtype()) || is_complex(edge.dtype())) return;
    reject(str_cat(what, ", '", edge.name(), "', has elements of ", dtype_name(edge.dtype())));
  }

  AnyTensor value_of_y() {
    AnyTensor value;
    session_.run_erased({}, nullptr, fed_, {&y_, 1}, {}, {&value, 1});
    return value;
  }
  /// Weights differ from each other and from 0: errors of two elements do not cancel.
  void draw_weights(const AnyTensor& y) {
    weights_ = AnyTensor(y.dtype(), y.shape());
    for (std::int64_t i = 0; i < y.num_elements(); ++i) {
      const auto at = static_cast<double>(i);
      set_element(weights_, i, {0.75 + 0.5 * std::sin(1.7 * at + 1), 0.5 * std::cos(2.3 * at)});
    }
  }
  std::vector<AnyTensor> gradients_of_graph() {
    GraphStore& graph = *y_.graph();
    const ScopeGuard place = enter_place(graph, options_.where);
    std::vector<AnyOutput> edges;
    edges.reserve(xs_.size());
    for (const Feed& x : xs_) edges.push_back(x.output);
    const AnyOutput weights = any_constant(graph, weights_, {});
    const std::vector<Gradient> all =
        gradients({&y_, 1}, edges, {.grad_ys = {&weights, 1}, .stop_gradients = edges, .where = options_.where});
    for (std::size_t i = 0; i < edges.size(); ++i) edges[i] = densify(all[i], edges[i]);
    std::vector<AnyTensor> values(edges.size());
    session_.run_erased({}, nullptr, fed_, edges, {}, values);
    return values;
  }

  /// The real part of the sum of y's elements, each times the conjugate of its weight: the function that grad_ys
  /// differentiates.
  double weighted_sum() {
    const AnyTensor y = value_of_y();
    if (y.shape() != weights_.shape())
      reject(str_cat("y has another shape when an x is moved: ", y.shape().to_string()));
    double sum = 0;
    for (std::int64_t i = 0; i < y.num_elements(); ++i)
      sum += (element_of(y, i) * std::conj(element_of(weights_, i))).real();
    return sum;
  }
  /// The difference quotient, over the distance that the element really moves, as rounded to its type.
  double difference(AnyTensor& x, std::int64_t i, std::complex<double> direction) {
    const std::complex<double> at = element_of(x, i);
    set_element(x, i, at + delta_ * direction);
    const std::complex<double> more = element_of(x, i);
    const double above = weighted_sum();
    set_element(x, i, at - delta_ * direction);
    const std::complex<double> less = element_of(x, i);
    const double below = weighted_sum();
    set_element(x, i, at);
    return (above - below) / std::abs(more - less);
  }
  void compare(std::size_t k, std::int64_t i, std::complex<double> gradient) {
    AnyTensor& x = fed_[k].tensor;
    std::complex<double> differences = difference(x, i, 1.0);
    if (is_complex(x.dtype())) differences += std::complex<double>(0, difference(x, i, {0, 1}));
    double error = std::abs(gradient - differences) / std::max(1.0, std::abs(differences));
    if (!std::isfinite(error)) error = std::numeric_limits<double>::infinity();
    const bool is_first = check_.name.empty();
    if (!is_first && error <= check_.max_error) return;
    check_.max_error = error;
    check_.input = k;
    check_.name = xs_[k].output.name();
    check_.gradient = gradient;
    check_.difference = differences;
    check_.index.assign(static_cast<std::size_t>(x.rank()), 0);
    for (int d = x.rank() - 1; d >= 0; --d) {
      check_.index[static_cast<std::size_t>(d)] = i % x.dim(d);
      i /= x.dim(d);
    }
  }

  Session& session_;
  const AnyOutput y_;
  const std::vector<Feed>& xs_;
  const GradientCheckOptions& options_;
  std::vector<Feed> fed_;
  double delta_ = 0;
  AnyTensor weights_;
  GradientCheck check_;
};

}  // namespace detail

std::string GradientCheck::to_string() const {
  const auto text = [](std::complex<double> value) {
    return value.imag() == 0 ? str_cat(value.real()) : str_cat("(", value.real(), ",", value.imag(), ")");
  };
  if (name.empty()) return "the xs have no elements";
  std::string at;
  for (const std::int64_t i : index) at += str_cat(at.empty() ? "" : ",", i);
  return str_cat(is_ok() ? "ok" : "wrong", ": the largest error is ", max_error, ", ", is_ok() ? "within" : "more than",
                 " the allowed ", tolerance, " (x '", name, "' at [", at, "]: ", text(gradient), " by the graph, ",
                 text(difference), " by differences)");
}

GradientCheck check_gradients(Session& session, const AnyOutput& y, const std::vector<Feed>& xs,
                              const GradientCheckOptions& options) {
  return detail::GradientChecker(session, y, xs, options).run();
}

}  // namespace dflow
