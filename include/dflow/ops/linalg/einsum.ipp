#pragma once

#include <dflow/graph/graph_store.hpp>
#include <dflow/op/expr.hpp>
#include <dflow/ops/array/concat.hpp>
#include <dflow/ops/array/index_list.hpp>
#include <dflow/ops/array/like.hpp>
#include <dflow/ops/array/reshape.hpp>
#include <dflow/ops/array/slice.hpp>
#include <dflow/ops/array/transpose.hpp>
#include <dflow/ops/control/check.hpp>
#include <dflow/ops/linalg/band.hpp>
#include <dflow/ops/linalg/einsum.hpp>
#include <dflow/ops/math/binary.hpp>
#include <dflow/ops/math/matmul.hpp>
#include <dflow/ops/reduction/reduce.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dflow {

namespace detail {

/// A dimension: a letter, or below 0 the place of a dimension of `...`, -1 the last one.
using EinsumLabel = int;
using EinsumLabels = std::vector<EinsumLabel>;

/// The letters of a term, with `ellipsis` where "..." stands.
struct EinsumTerm {
  static constexpr EinsumLabel ellipsis = 0;
  EinsumLabels letters;
  bool has_ellipsis() const { return std::find(letters.begin(), letters.end(), ellipsis) != letters.end(); }
};

class EinsumError {
 public:
  EinsumError(std::string_view equation, const At& at) : equation_(equation), at_(at) {}
  [[noreturn]] void fail(const std::string& message) const {
    throw_error(Status::invalid_argument(str_cat("einsum \"", equation_, "\": ", message)).with_location(at_.where));
  }

 private:
  std::string_view equation_;
  const At& at_;
};

/// The equation's terms, and that of the output if it has one.
struct EinsumEquation {
  std::vector<EinsumTerm> inputs{EinsumTerm()};
  std::optional<EinsumTerm> output;

  EinsumEquation(std::string_view text, const EinsumError& error) {
    for (std::size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      EinsumTerm& term = output ? *output : inputs.back();
      if (c == ' ') continue;
      if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
        if (output && std::find(term.letters.begin(), term.letters.end(), c) != term.letters.end()) {
          error.fail(str_cat("position ", i, ": the output has '", c, "' twice"));
        }
        term.letters.push_back(c);
      } else if (text.substr(i, 3) == "...") {
        if (term.has_ellipsis()) error.fail(str_cat("position ", i, ": a second ... in a term"));
        term.letters.push_back(EinsumTerm::ellipsis);
        i += 2;
      } else if (c == ',' && !output) {
        inputs.emplace_back();
      } else if (text.substr(i, 2) == "->" && !output) {
        output.emplace();
        ++i;
      } else {
        error.fail(str_cat("position ", i, ": '", c, "' is not expected here"));
      }
    }
  }
};

/// A tensor with a label for each dimension.
struct EinsumOperand {
  AnyOutput x;
  EinsumLabels labels;

  bool has(EinsumLabel label) const { return std::find(labels.begin(), labels.end(), label) != labels.end(); }
  int axis_of(EinsumLabel label) const {
    return static_cast<int>(std::find(labels.begin(), labels.end(), label) - labels.begin());
  }
  /// Precondition: the rank is known, or all labels are letters.
  std::int64_t extent(int axis) const { return x.shape().has_rank() ? x.shape()[axis] : dynamic; }

  /// The dimensions in the order of `order`, which names each label once.
  void transpose_to(const EinsumLabels& order) {
    if (order == labels) return;
    std::vector<std::int64_t> perm;
    for (const EinsumLabel label : order) perm.push_back(axis_of(label));
    x = any_transpose(x, perm, {});
    labels = order;
  }
  void sum_over(const EinsumLabels& summed) {
    if (summed.empty()) return;
    std::vector<std::int64_t> axes;
    for (const EinsumLabel label : summed) axes.push_back(axis_of(label));
    x = build<Sum>({x, int32_constant(*x.graph(), axes)});
    for (const EinsumLabel label : summed) labels.erase(labels.begin() + axis_of(label));
  }
};

/// A shape of extents that are known or edges.
class EinsumShape {
 public:
  /// The dimensions [begin, end) of x, one by one or as one.
  void append(const EinsumOperand& of, int begin, int end, bool as_one) {
    if (!as_one) {
      for (int i = begin; i < end; ++i) append(of, i, i + 1, true);
      return;
    }
    std::int64_t product = 1;
    for (int i = begin; i < end; ++i) {
      const std::int64_t extent = of.extent(i);
      if (extent == dynamic) product = dynamic;
      if (product != dynamic) product *= extent;
    }
    known_.push_back(product);
    if (product != dynamic) {
      edges_.push_back(int32_constant(*of.x.graph(), std::array<std::int64_t, 1>{product}));
      return;
    }
    const AnyOutput extents = any_slice(shape_of(of.x), {begin}, {end - begin}, {});
    edges_.push_back(end - begin == 1
                         ? extents
                         : AnyOutput(build<Prod>({extents, int32_constant(*of.x.graph(), 0)}, {.keep_dims = true})));
  }
  AnyOutput reshape(const AnyOutput& x) const {
    if (std::find(known_.begin(), known_.end(), dynamic) == known_.end()) return any_reshape(x, known_, {});
    return build<Reshape>({x, any_concat(0, edges_)});
  }

 private:
  std::vector<std::int64_t> known_;
  std::vector<AnyOutput> edges_;
};

/// Dimensions of one letter become one: the diagonal along both.
void take_diagonals(EinsumOperand& operand, const EinsumError& error) {
  for (std::size_t i = 0; i < operand.labels.size();) {
    const EinsumLabel label = operand.labels[i];
    const auto second =
        std::find(operand.labels.begin() + static_cast<std::ptrdiff_t>(i) + 1, operand.labels.end(), label);
    if (second == operand.labels.end()) {
      ++i;
      continue;
    }
    const int rank = static_cast<int>(operand.labels.size()), b = static_cast<int>(second - operand.labels.begin());
    const std::int64_t m = operand.extent(static_cast<int>(i)), n = operand.extent(b);
    if (m != dynamic && n != dynamic && m != n) {
      error.fail(str_cat("label '", static_cast<char>(label), "' has extents ", m, " and ", n, " in one operand"));
    }
    std::vector<std::int64_t> perm;
    EinsumLabels rest;
    for (int k = 0; k < rank; ++k) {
      if (k == static_cast<int>(i) || k == b) continue;
      perm.push_back(k);
      rest.push_back(operand.labels[static_cast<std::size_t>(k)]);
    }
    perm.insert(perm.end(), {static_cast<std::int64_t>(i), b});
    rest.push_back(label);
    operand.x = any_transpose(operand.x, perm, {});
    if (m == dynamic || n == dynamic) {  // a matrix that is not square has not the elements of one that is
      EinsumShape square;
      square.append(operand, 0, rank - 1, false);
      square.append(operand, rank - 2, rank - 1, true);
      operand.x = square.reshape(operand.x);
    }
    operand.x = build<MatrixDiagPart>({operand.x});
    operand.labels = rest;
    i = 0;
  }
}

/// The labels of `of` that fit.
template <class Fits>
EinsumLabels labels_that(const EinsumOperand& of, const Fits& fits) {
  EinsumLabels labels;
  std::copy_if(of.labels.begin(), of.labels.end(), std::back_inserter(labels), fits);
  return labels;
}

EinsumLabels joined(std::initializer_list<EinsumLabels> parts) {
  EinsumLabels all;
  for (const EinsumLabels& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

/// A dimension of `...` of extent 1 is left out where the other operand has it: it broadcasts.
void drop_broadcast(EinsumOperand& x, const EinsumOperand& other) {
  for (std::size_t i = x.labels.size(); i-- > 0;) {
    if (x.labels[i] >= 0 || x.extent(static_cast<int>(i)) != 1 || !other.has(x.labels[i])) continue;
    x.x = build<Squeeze>({x.x}, {.squeeze_dims = {static_cast<std::int64_t>(i)}});
    x.labels.erase(x.labels.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

/// The operand in the order of `labels`, with a dimension of 1 for each label that it lacks.
AnyOutput spread_to(EinsumOperand x, const EinsumLabels& labels) {
  EinsumLabels own;
  std::copy_if(labels.begin(), labels.end(), std::back_inserter(own), [&](EinsumLabel label) { return x.has(label); });
  x.transpose_to(own);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (!x.has(labels[i])) x.x = any_expand_dims(x.x, static_cast<std::int32_t>(i), {});
  }
  return x.x;
}

/// The sums of products of two operands over the labels that both have and `kept` has not.
EinsumOperand contracted(EinsumOperand a, EinsumOperand b, const std::set<EinsumLabel>& kept) {
  drop_broadcast(a, b);
  drop_broadcast(b, a);
  const EinsumLabels batch = labels_that(a, [&](EinsumLabel l) { return b.has(l) && kept.count(l) != 0; });
  const EinsumLabels sums = labels_that(a, [&](EinsumLabel l) { return b.has(l) && kept.count(l) == 0; });
  const EinsumLabels rows = labels_that(a, [&](EinsumLabel l) { return !b.has(l); });
  const EinsumLabels columns = labels_that(b, [&](EinsumLabel l) { return !a.has(l); });
  // What broadcasts in the step alone is multiplied with all its dimensions.
  const bool may_broadcast = std::any_of(batch.begin(), batch.end(), [&](EinsumLabel l) {
    return l < 0 && (a.extent(a.axis_of(l)) == dynamic || b.extent(b.axis_of(l)) == dynamic);
  });
  if (sums.empty() || may_broadcast) {
    const EinsumLabels all = joined({batch, rows, sums, columns});
    EinsumOperand product{build<Mul>({spread_to(a, all), spread_to(b, all)}), all};
    product.sum_over(sums);
    return product;
  }
  // A transposed operand is no work for the product; a batch of complex numbers would be conjugated.
  const bool has_flags = batch.empty() || !is_complex(a.x.dtype());
  const bool flip_a = has_flags && a.labels == joined({batch, sums, rows});
  const bool flip_b = has_flags && b.labels == joined({batch, columns, sums});
  if (!flip_a) a.transpose_to(joined({batch, rows, sums}));
  if (!flip_b) b.transpose_to(joined({batch, sums, columns}));
  const int batches = static_cast<int>(batch.size()), inner = static_cast<int>(sums.size());
  const int m = static_cast<int>(rows.size()), n = static_cast<int>(columns.size());
  const auto as_matrices = [&](const EinsumOperand& x, int first, int second) {
    if (first == 1 && second == 1) return x.x;
    EinsumShape shape;
    shape.append(x, 0, batches, false);
    shape.append(x, batches, batches + first, true);
    shape.append(x, batches + first, batches + first + second, true);
    return shape.reshape(x.x);
  };
  const AnyOutput left = flip_a ? as_matrices(a, inner, m) : as_matrices(a, m, inner);
  const AnyOutput right = flip_b ? as_matrices(b, n, inner) : as_matrices(b, inner, n);
  EinsumOperand product{{}, joined({batch, rows, columns})};
  product.x = batches == 0 ? AnyOutput(build<MatMul>({left, right}, {.transpose_a = flip_a, .transpose_b = flip_b}))
                           : AnyOutput(build<BatchMatMul>({left, right}, {.adj_x = flip_a, .adj_y = flip_b}));
  if (m == 1 && n == 1) return product;
  EinsumShape shape;
  shape.append(a, 0, batches, false);
  shape.append(a, batches + (flip_a ? inner : 0), batches + (flip_a ? inner : 0) + m, false);
  shape.append(b, batches + (flip_b ? 0 : inner), batches + (flip_b ? 0 : inner) + n, false);
  product.x = shape.reshape(product.x);
  return product;
}

/// The operands with their labels; dimensions of `...` count from behind. `num_broadcast`: of the longest `...`.
std::vector<EinsumOperand> labelled(const EinsumEquation& equation, std::span<const AnyOutput> operands,
                                    const EinsumError& error, int& num_broadcast) {
  std::vector<EinsumOperand> all;
  std::map<EinsumLabel, std::int64_t> extents;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const EinsumTerm& term = equation.inputs[i];
    const PartialShape& shape = operands[i].shape();
    const int letters = static_cast<int>(term.letters.size()) - (term.has_ellipsis() ? 1 : 0);
    if (term.has_ellipsis() && !shape.has_rank()) error.fail(str_cat("the rank of operand ", i, " is not known"));
    const int hidden = term.has_ellipsis() ? shape.rank() - letters : 0;
    if (hidden < 0 || (shape.has_rank() && shape.rank() != letters + hidden)) {
      error.fail(str_cat("operand ", i, " has shape ", shape.to_string(), ", and its term ", letters, " letters"));
    }
    num_broadcast = std::max(num_broadcast, hidden);
    EinsumOperand operand{operands[i], {}};
    if (!shape.has_rank()) operand.x = build<EnsureShape>({operands[i]}, {.shape = PartialShape::unknown(letters)});
    for (const EinsumLabel label : term.letters) {
      if (label != EinsumTerm::ellipsis) operand.labels.push_back(label);
      for (int k = hidden; label == EinsumTerm::ellipsis && k > 0; --k) operand.labels.push_back(-k);
    }
    for (std::size_t k = 0; k < operand.labels.size(); ++k) {
      const std::int64_t extent = operand.extent(static_cast<int>(k));
      if (extent == dynamic || (operand.labels[k] < 0 && extent == 1)) continue;
      const auto [known, is_new] = extents.emplace(operand.labels[k], extent);
      if (!is_new && known->second != extent) {
        const std::string label = operand.labels[k] < 0 ? "..." : std::string(1, static_cast<char>(operand.labels[k]));
        error.fail(str_cat("label '", label, "' has extents ", known->second, " and ", extent));
      }
    }
    take_diagonals(operand, error);
    all.push_back(std::move(operand));
  }
  return all;
}

/// The labels of the output, as the equation says or by the rule.
EinsumLabels output_labels(const EinsumEquation& equation, const EinsumError& error, int num_broadcast) {
  std::map<EinsumLabel, int> count;
  for (const EinsumTerm& term : equation.inputs) {
    for (const EinsumLabel label : term.letters) ++count[label];
  }
  EinsumTerm output;
  if (equation.output) {
    output = *equation.output;
  } else {
    if (num_broadcast > 0) output.letters.push_back(EinsumTerm::ellipsis);
    for (const auto& [label, times] : count) {
      if (label != EinsumTerm::ellipsis && times == 1) output.letters.push_back(label);
    }
  }
  if (num_broadcast > 0 && !output.has_ellipsis()) error.fail("the output must have the dimensions of ...");
  EinsumLabels labels;
  for (const EinsumLabel label : output.letters) {
    if (label != EinsumTerm::ellipsis) {
      if (count.count(label) == 0) error.fail(str_cat("no operand has '", static_cast<char>(label), "' of the output"));
      labels.push_back(label);
    }
    for (int k = num_broadcast; label == EinsumTerm::ellipsis && k > 0; --k) labels.push_back(-k);
  }
  return labels;
}

}  // namespace detail

AnyOutput detail::any_einsum(std::string_view equation, std::span<const AnyOutput> operands, const At& at) {
  const Composite place(graph_of(operands, "einsum", at), at.where);
  const EinsumError error(equation, at);
  const EinsumEquation terms(equation, error);
  if (terms.inputs.size() != operands.size()) {
    error.fail(str_cat("there are ", terms.inputs.size(), " terms, and ", operands.size(), " operands"));
  }
  int num_broadcast = 0;
  std::vector<EinsumOperand> all = labelled(terms, operands, error, num_broadcast);
  const EinsumLabels output = output_labels(terms, error, num_broadcast);
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].sum_over(labels_that(all[i], [&](EinsumLabel label) {
      const bool is_shared = std::any_of(
          all.begin(), all.end(), [&](const EinsumOperand& other) { return &other != &all[i] && other.has(label); });
      return !is_shared && std::find(output.begin(), output.end(), label) == output.end();
    }));
  }
  EinsumOperand product = all[0];
  for (std::size_t i = 1; i < all.size(); ++i) {
    std::set<EinsumLabel> kept(output.begin(), output.end());
    for (std::size_t k = i + 1; k < all.size(); ++k) kept.insert(all[k].labels.begin(), all[k].labels.end());
    product = contracted(std::move(product), all[i], kept);
  }
  product.transpose_to(output);
  return cast_or_name(product.x, product.x.dtype(), at);
}

}  // namespace dflow
