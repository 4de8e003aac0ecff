#include "op_runner.hpp"

#include <dflow/dflow.hpp>

#include "catch.hpp"

#include <cmath>
#include <iostream>
#include <map>
#include <random>
#include <set>

using namespace dflow;
using namespace dflow::testing;

namespace {

using Values = std::vector<AnyTensor>;

bool is_wanted(const std::vector<int>& positions, std::size_t i) {
  return positions.empty() || std::find(positions.begin(), positions.end(), static_cast<int>(i)) != positions.end();
}

Tensor<double> random_like(const AnyTensor& tensor, std::mt19937_64& random) {
  std::uniform_real_distribution<double> uniform(0.5, 1.5);
  Tensor<double> result(tensor.shape());
  for (double& value : result) value = (random() & 1) != 0 ? uniform(random) : -uniform(random);
  return result;
}

/// A sum with the size of its terms; rounding errors are relative to the size.
struct SumOfTerms {
  double value = 0, size = 0;
  SumOfTerms& operator+=(const SumOfTerms& b) {
    value += b.value, size += b.size;
    return *this;
  }
};

SumOfTerms dot(const AnyTensor& a, const AnyTensor& b) {
  SumOfTerms sum;
  for (std::size_t i = 0; i < a.span<double>().size(); ++i) {
    const double term = a.span<double>()[i] * b.span<double>()[i];
    sum += {term, std::abs(term)};
  }
  return sum;
}

/// A derivative by differences, and how far rounding may have moved it.
struct Difference {
  double value = 0, noise = 0;
};

/// Checks the gradients of one case at float64: along two random directions per input, and by single elements if there
/// are few. It compares directional derivatives by central differences (error O(h^4)) with the graph's gradient, and
/// does the same for the gradient itself.
class OpGradientCheck {
 public:
  OpGradientCheck(const OracleCase& oracle_case, std::uint64_t seed) : case_(oracle_case), random_(seed) {
    built_ = build_case(oracle_case, DType::float64, InputsAs::known_feeds);
    for (std::size_t i = 0; i < built_->inputs.size(); ++i) {
      const bool under_test = oracle_case.inputs[i].role != OracleTensor::Role::fixed;
      if (under_test && is_wanted(oracle_case.gradient_inputs, i) && built_->inputs[i].dtype() == DType::float64) {
        xs_.push_back(i);
      }
    }
    SessionOptions options;
    options.pool = std::make_shared<InlinePool>();
    session_ = std::make_unique<Session>(built_->graph, options);
    values_.resize(built_->feeds.size());
    for (std::size_t i = 0; i < values_.size(); ++i) values_[i] = built_->feeds[i].tensor;

    // f(x) = sum of y * w with fixed random w: its gradient is the op's gradient applied to w.
    const Values outputs = fetch(built_->outputs);
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      const bool under_test =
          o < oracle_case.outputs.size() && oracle_case.outputs[o].role != OracleTensor::Role::fixed;
      if (!under_test || !is_wanted(oracle_case.gradient_outputs, o) || outputs[o].dtype() != DType::float64) continue;
      ys_.push_back(built_->outputs[o]);
      weights_.push_back(random_like(outputs[o], random_));
      weight_edges_.push_back(detail::any_constant(*built_->graph.store(), weights_.back(), {}));
    }
  }

  bool has_something() const { return !xs_.empty() && !ys_.empty(); }

  std::string first_order() {
    gradient_edges_ = dense_gradients(ys_, weight_edges_);
    const Values gradients = fetch(gradient_edges_);
    for (std::size_t k = 0; k < xs_.size(); ++k) {
      const AnyTensor& x = values_[xs_[k]];
      if (!(gradients[k].shape() == x.shape())) {
        return str_cat("gradient ", xs_[k], " has shape ", gradients[k].shape().to_string(), " for ",
                       x.shape().to_string());
      }
      for (const Tensor<double>& direction : directions(x)) {
        const Difference numeric = directional(k, direction, [&] { return weighted_outputs(); });
        const std::string why = compare(dot(gradients[k], direction), numeric);
        if (!why.empty()) return str_cat("d/dx", xs_[k], ": ", why);
      }
    }
    return "";
  }

  /// g(x) = sum over inputs of dx * v is differentiated once more.
  std::string second_order() {
    const Values gradients = fetch(gradient_edges_);
    Values vs;
    std::vector<AnyOutput> v_edges;
    for (const AnyTensor& gradient : gradients) {
      vs.push_back(random_like(gradient, random_));
      v_edges.push_back(detail::any_constant(*built_->graph.store(), vs.back(), {}));
    }
    const std::vector<AnyOutput> second = dense_gradients(gradient_edges_, v_edges);
    const Values seconds = fetch(second);
    for (std::size_t k = 0; k < xs_.size(); ++k) {
      for (const Tensor<double>& direction : directions(values_[xs_[k]])) {
        const Difference numeric = directional(k, direction, [&] {
          const Values moved = fetch(gradient_edges_);
          SumOfTerms sum;
          for (std::size_t i = 0; i < moved.size(); ++i) sum += dot(moved[i], vs[i]);
          return sum;
        });
        const std::string why = compare(dot(seconds[k], direction), numeric);
        if (!why.empty()) return str_cat("d2/dx", xs_[k], ": ", why);
      }
    }
    return "";
  }

 private:
  std::vector<AnyOutput> dense_gradients(const std::vector<AnyOutput>& ys, const std::vector<AnyOutput>& grad_ys) {
    std::vector<AnyOutput> x_edges, result;
    for (const std::size_t i : xs_) x_edges.push_back(built_->inputs[i]);
    GradientOptions options;
    options.grad_ys = grad_ys;
    const std::vector<Gradient> all = dflow::gradients(ys, x_edges, options);
    for (std::size_t i = 0; i < all.size(); ++i) result.push_back(densify(all[i], x_edges[i]));
    return result;
  }

  Values fetch(const std::vector<AnyOutput>& edges) {
    std::vector<Feed> feeds;
    for (std::size_t i = 0; i < values_.size(); ++i) feeds.emplace_back(built_->feeds[i].output, values_[i]);
    Values results(edges.size());
    session_->run_erased({}, nullptr, feeds, edges, {}, results);
    return results;
  }

  SumOfTerms weighted_outputs() {
    const Values outputs = fetch(ys_);
    SumOfTerms sum;
    for (std::size_t o = 0; o < outputs.size(); ++o) sum += dot(outputs[o], weights_[o]);
    return sum;
  }

  std::vector<Tensor<double>> directions(const AnyTensor& x) {
    std::vector<Tensor<double>> result;
    if (x.num_elements() == 0) return result;
    if (x.num_elements() > 1) result.push_back(random_like(x, random_));
    result.push_back(random_like(x, random_));
    if (x.num_elements() > 4) return result;
    for (std::int64_t i = 0; i < x.num_elements(); ++i) {
      Tensor<double> unit = Tensor<double>::zeros(x.shape());
      unit.data()[i] = 1;
      result.push_back(unit);
    }
    return result;
  }

  template <class F>
  Difference directional(std::size_t k, const Tensor<double>& direction, F&& f) {
    const AnyTensor x = values_[xs_[k]];
    constexpr double h = 0x1p-12, epsilon = 0x1p-52;
    double size = 0, largest = 0;
    for (const double value : Tensor<double>(x)) largest = std::max(largest, std::abs(value));
    const auto moved = [&](double step) {
      Tensor<double> y = Tensor<double>(x).copy();
      for (std::size_t i = 0; i < y.span().size(); ++i) y.span()[i] += step * direction.span()[i];
      values_[xs_[k]] = y;
      const SumOfTerms sum = f();
      size = std::max(size, sum.size);
      return sum.value;
    };
    const double near = moved(h) - moved(-h), far = moved(2 * h) - moved(-2 * h);
    values_[xs_[k]] = x;
    const double value = (8 * near - far) / (12 * h);
    // The function is computed with some roundings, and at points that are rounded.
    return {value, epsilon / h * (16 * size + largest * std::abs(value))};
  }

  std::string compare(const SumOfTerms& graph, const Difference& numeric) const {
    const double error = std::abs(graph.value - numeric.value);
    const double bound = case_.tolerance_scale * (1e-8 * std::abs(numeric.value) + numeric.noise + 1e-12);
    if (std::isfinite(graph.value) && std::isfinite(numeric.value) && error <= bound) return "";
    return str_cat(graph.value, " in the graph, ", numeric.value, " by differences, which may be wrong by ", bound);
  }

  const OracleCase& case_;
  std::mt19937_64 random_;
  std::unique_ptr<BuiltCase> built_;
  std::unique_ptr<Session> session_;
  std::vector<std::size_t> xs_;
  std::vector<AnyOutput> ys_, weight_edges_, gradient_edges_;
  std::vector<Tensor<double>> weights_;
  Values values_;
};

}  // namespace

TEST_CASE("gradients agree with finite differences, first and second order", "[ops]") {
  std::set<std::string> ops, without_second;
  std::map<std::string, int> failures;
  int first = 0, second = 0;
  const auto fail = [&](const OracleCase& oracle_case, const std::string& why) {
    if (++failures[oracle_case.op] <= 3) std::cout << "  " << oracle_case.title(DType::float64) << ": " << why << '\n';
  };
  for (const OracleCase& oracle_case : oracle_cases()) {
    const bool in_double =
        std::find(oracle_case.types.begin(), oracle_case.types.end(), DType::float64) != oracle_case.types.end();
    const OpDef* op = standard_op_table().find(oracle_case.op);
    if (!oracle_case.gradient || !in_double) continue;
    if (op != nullptr && (op->gradient == nullptr || op->gradient_stops)) continue;
    try {
      OpGradientCheck check(oracle_case, 17);
      if (!check.has_something()) continue;
      ops.insert(oracle_case.op);
      ++first;
      if (const std::string why = check.first_order(); !why.empty()) {
        fail(oracle_case, why);
        continue;
      }
      try {
        ++second;
        if (const std::string why = check.second_order(); !why.empty()) fail(oracle_case, why);
      } catch (const Error& error) {
        if (error.code() != Code::unimplemented) throw;
        --second;
        without_second.insert(oracle_case.op + " (" + std::string(error.status().op()) + ")");
      }
    } catch (const std::exception& error) {
      fail(oracle_case, error.what());
    }
  }
  int failed = 0;
  for (const auto& [op, count] : failures) failed += count;
  std::cout << "count: " << ops.size() << " ops, " << first << " first-order and " << second
            << " second-order gradient checks, " << failed << " failed\n";
  for (const std::string& op : without_second) std::cout << "  no second order: " << op << '\n';
  CHECK(failed == 0);
  CHECK(ops.size() >= 50);
}
