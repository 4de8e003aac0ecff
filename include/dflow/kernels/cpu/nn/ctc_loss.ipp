#pragma once

#include <dflow/kernels/cpu/nn/ctc_loss.hpp>
#include <dflow/kernels/cpu/nn/ctc_rows.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace dflow {

namespace detail {

/// The number mantissa * 2^(512 exponent), which is not negative. The exponent is a whole number, so products of any
/// length neither vanish nor overflow, and a sum needs no logarithm. 0 has exponent -infinity.
struct Probability {
  double mantissa = 0;
  double exponent = -std::numeric_limits<double>::infinity();
};

inline constexpr double log_of_block = 354.891356446692;  ///< of 2^512
inline constexpr double least_logarithm = -1e9;           ///< keeps all exponents exact; below is probability 0

/// A term whose exponent is less by 2 is below the last digit.
inline Probability operator+(Probability a, Probability b) {
  if (a.exponent == b.exponent) return {a.mantissa + b.mantissa, a.exponent};
  if (a.exponent < b.exponent) std::swap(a, b);
  if (a.exponent - b.exponent == 1) a.mantissa += b.mantissa * 0x1p-512;
  return a;
}

inline Probability operator*(Probability a, Probability b) {
  Probability product{a.mantissa * b.mantissa, a.exponent + b.exponent};
  if (product.mantissa >= 0x1p256) return {product.mantissa * 0x1p-512, product.exponent + 1};
  if (product.mantissa < 0x1p-256) return {product.mantissa * 0x1p512, product.exponent - 1};
  return product;
}

static_assert(sizeof(Probability) == 2 * sizeof(double));

inline Probability probability_of_logarithm(double x) {
  if (x > -log_of_block / 2) return {std::exp(x), 0};
  if (x < least_logarithm) return {};
  const double exponent = std::nearbyint(x / log_of_block);
  return {std::exp(x - exponent * log_of_block), exponent};
}

/// mantissa * 2^(512 exponent) as a number; 0 if it is too small.
inline double as_number(double mantissa, double exponent) {
  if (exponent == 0 || std::isnan(exponent)) return mantissa;
  return exponent < -4 ? 0.0 : std::ldexp(mantissa, 512 * static_cast<int>(std::min(exponent, 4.0)));
}

/// The inputs of a run, the labels in the order of the batch.
struct CtcBatch : CtcInputs {
  AnyTensor* gradient;
  const std::int32_t* lengths;
  std::vector<std::int32_t> labels;
  std::vector<std::size_t> ends;  ///< of the labels of each item
  bool merge_repeated;
};

/// One item after the other; keeps its memory between them.
class CtcItem {
 public:
  CtcItem(const KernelContext& context, const CtcBatch& batch)
      : context_(context),
        batch_(batch),
        row_(static_cast<std::size_t>(batch.classes)),
        posterior_(row_.size()),
        probabilities_(row_.size()) {}

  /// Writes the gradient of item `b`, and returns its loss.
  double run(std::int64_t b) {
    item_ = b;
    time_ = batch_.lengths[b];
    set_states();
    std::fill(posterior_.begin(), posterior_.end(), 0.0);
    for (std::int64_t t = time_; t < batch_.time; ++t) write(t, posterior_);
    if (time_ == 0) return states_.size() == 1 ? 0 : std::numeric_limits<double>::infinity();
    if (!forward()) {
      std::fill(posterior_.begin(), posterior_.end(), std::numeric_limits<double>::quiet_NaN());
      for (std::int64_t t = 0; t < time_; ++t) write(t, posterior_);
      return posterior_[0];
    }
    backward();
    if (total_.mantissa == 0) return std::numeric_limits<double>::infinity();
    return 0 - (std::log(total_.mantissa) + total_.exponent * log_of_block);
  }

 private:
  std::size_t row_at(std::int64_t t) const { return static_cast<std::size_t>(t) * states_.size(); }

  /// The labels with a blank before, between and behind.
  void set_states() {
    const auto at = static_cast<std::size_t>(item_);
    const std::size_t begin = at == 0 ? 0 : batch_.ends[at - 1];
    states_.assign(1, batch_.blank());
    for (std::size_t i = begin; i < batch_.ends[at]; ++i) {
      states_.push_back(batch_.labels[i]);
      states_.push_back(batch_.blank());
    }
  }

  /// The states at time t that can be reached, and from which the end can be.
  std::pair<std::size_t, std::size_t> window(std::int64_t t) const {
    const auto count = static_cast<std::int64_t>(states_.size());
    const std::int64_t begin = std::max(std::int64_t{0}, count - 2 * (time_ - t));
    return {static_cast<std::size_t>(begin), static_cast<std::size_t>(std::min(count, 2 * (t + 1)))};
  }
  /// A path may stay in state u for more than one step.
  bool stays(std::size_t u) const { return batch_.merge_repeated || states_[u] == batch_.blank(); }
  /// A path may go to state u from the label before, without a blank between.
  bool skips(std::size_t u) const {
    return u > 1 && states_[u] != batch_.blank() && !(batch_.merge_repeated && states_[u] == states_[u - 2]);
  }

  /// Sets the probabilities of the classes at time t; false if they are no numbers.
  bool read(std::int64_t t) {
    read_ctc_row(batch_, t, item_, row_);
    const double most = *std::max_element(row_.begin(), row_.end());
    double sum = 0;
    for (std::size_t k = 0; k < row_.size(); ++k) {
      probabilities_[k] = probability_of_logarithm(row_[k] - most);
      sum += as_number(probabilities_[k].mantissa, probabilities_[k].exponent);
    }
    for (Probability& probability : probabilities_) probability.mantissa /= sum;
    return !std::isnan(sum);
  }

  void write(std::int64_t t, const std::vector<double>& row) {
    visit_dtype<CtcTypes>(batch_.gradient->dtype(), [&]<class T>() {
      T* const to = static_cast<T*>(batch_.gradient->raw_data()) + (t * batch_.size + item_) * batch_.classes;
      std::transform(row.begin(), row.end(), to, [](double x) { return static_cast<T>(x); });
    });
  }

  /// Sets the probability of the paths that are in each state at each time; false if inputs are no numbers.
  bool forward() {
    const std::size_t count = states_.size();
    reserve_table();
    for (std::int64_t t = 0; t < time_; ++t) {
      if (!read(t)) return false;
      Probability* const now = table() + row_at(t);
      std::fill_n(now, count, Probability());
      const auto [begin, end] = window(t);
      if (t == 0) {
        for (std::size_t u = 0; u < end; ++u) now[u] = probability(u);
        continue;
      }
      const Probability* const last = now - count;
      for (std::size_t u = begin; u < end; ++u) {
        Probability sum = stays(u) ? last[u] : Probability();
        if (u > 0) sum = sum + last[u - 1];
        if (skips(u)) sum = sum + last[u - 2];
        now[u] = sum * probability(u);
      }
    }
    const Probability* const end = table() + row_at(time_);
    total_ = end[-1];
    if (count > 1) total_ = total_ + end[-2];
    return true;
  }
  const Probability& probability(std::size_t u) const { return probabilities_[static_cast<std::size_t>(states_[u])]; }

  /// Goes back with the probability of the rest of a path, and writes the softmax less the share of the paths that are
  /// in each class.
  void backward() {
    const std::size_t count = states_.size();
    after_.assign(count, {});
    next_.assign(count + 2, {});
    for (std::int64_t t = time_ - 1; t >= 0; --t) {
      const auto [begin, end] = window(t);
      std::fill(after_.begin(), after_.end(), Probability());
      for (std::size_t u = begin; u < end; ++u) {
        if (t == time_ - 1) {
          after_[u] = {1, 0};
          continue;
        }
        after_[u] = (stays(u) ? next_[u] : Probability()) + next_[u + 1];
        if (u + 2 < count && skips(u + 2)) after_[u] = after_[u] + next_[u + 2];
      }
      static_cast<void>(read(t));
      std::fill(posterior_.begin(), posterior_.end(), 0.0);
      const Probability* const before = table() + row_at(t);
      for (std::size_t u = begin; u < end && total_.mantissa != 0; ++u) {
        const Probability both = before[u] * after_[u];
        posterior_[static_cast<std::size_t>(states_[u])] +=
            as_number(both.mantissa / total_.mantissa, both.exponent - total_.exponent);
      }
      for (std::size_t k = 0; k < posterior_.size(); ++k) {
        const Probability& softmax = probabilities_[k];
        posterior_[k] = as_number(softmax.mantissa, softmax.exponent) - posterior_[k];
      }
      write(t, posterior_);
      for (std::size_t u = 0; u < count; ++u) next_[u] = after_[u] * probability(u);
    }
  }

  Probability* table() { return static_cast<Probability*>(table_.raw_data()); }
  /// Its memory counts as that of the step.
  void reserve_table() {
    const Shape shape{time_, static_cast<std::int64_t>(states_.size()), 2};
    if (shape.num_elements() <= table_size_) return;
    table_ = AnyTensor();
    table_ = context_.allocate_temporary(DType::float64, shape);
    table_size_ = shape.num_elements();
  }

  const KernelContext& context_;
  const CtcBatch& batch_;
  std::int64_t item_ = 0, time_ = 0;
  std::vector<double> row_, posterior_;
  std::vector<Probability> probabilities_;  ///< of the classes
  std::vector<std::int32_t> states_;
  AnyTensor table_;  ///< [time, states] of probabilities: of the paths up to a time
  std::int64_t table_size_ = 0;
  std::vector<Probability> after_, next_;
  Probability total_;
};

/// Adds the labels of all items to the batch, as the attributes want them.
void read_ctc_labels(const KernelContext& context, bool collapse_repeated, CtcBatch& batch) {
  const auto indices = context.input(1).span<std::int64_t>();
  const auto values = context.input(2).span<std::int32_t>();
  std::int64_t item = 0, column = -1;
  std::int32_t last = -1;
  const auto finish_item = [&] {
    const std::size_t begin = batch.ends.empty() ? 0 : batch.ends.back();
    const std::size_t count = batch.labels.size() - begin;
    if (count > static_cast<std::size_t>(batch.lengths[item])) {
      context.fail(str_cat("item ", item, " has ", count, " labels, and sequence_length[", item,
                           "] = ", batch.lengths[item], " time steps"));
    }
    batch.ends.push_back(batch.labels.size());
    ++item, column = -1, last = -1;
  };
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::int64_t row = indices[2 * i];
    const auto where = [&] { return str_cat("labels_indices[", i, "] = (", row, ", ", indices[2 * i + 1], ")"); };
    if (row < 0 || row >= batch.size) context.fail(str_cat(where(), " is outside a batch of ", batch.size));
    if (row < item || (row == item && indices[2 * i + 1] <= column)) {
      context.fail(str_cat(where(), " does not come behind (", item, ", ", column, ")"));
    }
    while (item < row) finish_item();
    column = indices[2 * i + 1];
    if (column < 0) context.fail(str_cat(where(), " has a negative column"));
    const std::int32_t label = values[i], blank = batch.blank();
    if (label < 0 || label > blank) {
      context.fail(str_cat("labels_values[", i, "] = ", label, " is outside [0, ", batch.classes, ")"));
    }
    if (label != blank && last == blank) {
      context.fail(str_cat("labels_values[", i, "] = ", label, " stands behind a blank, which is class ", blank));
    }
    if (label != blank && !(collapse_repeated && label == last)) batch.labels.push_back(label);
    last = label;
  }
  while (item < batch.size) finish_item();
}

}  // namespace detail

void Kernel<CTCLoss, Cpu>::operator()(KernelContext& context) const {
  const detail::CtcInputs inputs = detail::ctc_inputs(context, 3);
  const AnyTensor& lengths = context.input(3);
  detail::CtcBatch batch{inputs, nullptr, lengths.span<std::int32_t>().data(), {}, {}, attrs.ctc_merge_repeated};
  detail::read_ctc_labels(context, attrs.preprocess_collapse_repeated, batch);
  AnyTensor& loss = context.allocate_output(0, lengths.shape());
  batch.gradient = &context.allocate_output(1, inputs.values->shape());
  const double labels =
      static_cast<double>(batch.labels.size()) / static_cast<double>(std::max(inputs.size, std::int64_t{1}));
  const double step_ns = 15 * static_cast<double>(inputs.classes) + 20 * (2 * labels + 1);
  context.pool().parallel_for(
      inputs.size, static_cast<double>(inputs.time) * step_ns, [&](std::int64_t begin, std::int64_t end) {
        detail::CtcItem item(context, batch);
        for (std::int64_t b = begin; b < end; ++b) {
          const double value = item.run(b);
          visit_dtype<CtcTypes>(loss.dtype(),
                                [&]<class T>() { static_cast<T*>(loss.raw_data())[b] = static_cast<T>(value); });
        }
      });
}

}  // namespace dflow
