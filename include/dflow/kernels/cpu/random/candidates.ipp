#pragma once

#include <dflow/base/printable.hpp>
#include <dflow/base/text/parse_number.hpp>
#include <dflow/io/records/line_file.hpp>
#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/cpu/random/candidates.hpp>
#include <dflow/kernels/shared/position_text.hpp>
#include <dflow/kernels/state/device_files.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace dflow::cpu {

// Words of an incomplete multiple of n are passed over.

std::uint64_t CandidateWords::below(std::uint64_t n) {
  constexpr std::uint64_t short_range = std::numeric_limits<std::uint32_t>::max();
  if (n > short_range) return wide_below(n);
  if (std::has_single_bit(n)) return word() & (n - 1);
  const std::uint64_t rest = short_range % n + 1;
  std::uint64_t number = word();
  while (number < rest) number = word();
  return number % n;
}

std::uint64_t CandidateWords::wide_below(std::uint64_t n) {
  const std::uint64_t rest = std::numeric_limits<std::uint64_t>::max() % n + 1;
  std::uint64_t number = wide_word();
  while (number < rest) number = wide_word();
  return number % n;
}

namespace detail {

class UniformClasses final : public CandidateClasses {
 public:
  using CandidateClasses::CandidateClasses;
  std::int64_t draw(CandidateWords& words) const override {
    return static_cast<std::int64_t>(words.wide_below(static_cast<std::uint64_t>(range())));
  }
  double probability(std::int64_t /*id*/) const override { return 1 / static_cast<double>(range()); }
};

class LogUniformClasses final : public CandidateClasses {
 public:
  explicit LogUniformClasses(std::int64_t range)
      : CandidateClasses(range), log_range_(std::log1p(static_cast<double>(range))) {}
  std::int64_t draw(CandidateWords& words) const override {
    constexpr double most = 0x1p62;
    const auto number = static_cast<std::int64_t>(std::min(std::exp(words.unit() * log_range_), most)) - 1;
    return number % range();  // rounding may leave the range
  }
  double probability(std::int64_t id) const override {
    const auto number = static_cast<double>(id);
    return std::log((number + 2) / (number + 1)) / log_range_;
  }

 private:
  double log_range_;
};

/// Counts of classes, each 1 at first, in a tree of sums (Fenwick 1994).
class LearnedClasses final : public CandidateClasses {
 public:
  LearnedClasses(std::int64_t range, Allocator& allocator)
      : CandidateClasses(range),
        sums_(DType::int64, Shape{range}, allocator),
        total_(range),
        top_(static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(range)))) {
    for (std::int64_t i = 1; i <= range; ++i) sum(i) = i & -i;
  }

  void lock() override { mutex_.lock(); }
  void unlock() override { mutex_.unlock(); }

  /// The class at that place of the line in which each class stands as often as it was counted.
  std::int64_t draw(CandidateWords& words) const override {
    auto place = static_cast<std::int64_t>(words.below(static_cast<std::uint64_t>(total_)));
    std::int64_t before = 0;
    for (std::int64_t step = top_; step > 0; step /= 2) {
      if (step > range() - before || sum(before + step) > place) continue;
      before += step;
      place -= sum(before);
    }
    return before;
  }
  double probability(std::int64_t id) const override {
    // The sum up to id, less the sum up to the class before: the two ways down share their end.
    std::int64_t count = sum(id + 1);
    const std::int64_t shared = (id + 1) & id;
    for (std::int64_t i = id; i != shared; i &= i - 1) count -= sum(i);
    return static_cast<double>(count) / static_cast<double>(total_);
  }
  void learn(std::span<const std::int64_t> classes) override {
    for (const std::int64_t id : classes) {
      for (std::int64_t i = id + 1; i <= range(); i += i & -i) ++sum(i);
    }
    total_ += static_cast<std::int64_t>(classes.size());
  }

 private:
  /// Of the classes (i - (i & -i), i], counted from 1.
  std::int64_t& sum(std::int64_t i) { return static_cast<std::int64_t*>(sums_.raw_data())[i - 1]; }
  std::int64_t sum(std::int64_t i) const { return static_cast<const std::int64_t*>(sums_.raw_data())[i - 1]; }

  std::mutex mutex_;
  AnyTensor sums_;
  std::int64_t total_;
  std::int64_t top_;
};

/// Weights, drawn from by aliases (Walker 1977): a class or its alias, in one step.
class WeightedClasses final : public CandidateClasses {
 public:
  /// Its memory comes from the device's allocator, before there are weights.
  WeightedClasses(std::int64_t range, Allocator& allocator)
      : CandidateClasses(range),
        weights_(DType::float32, Shape{range}, allocator),
        shares_(DType::float32, Shape{range}, allocator),
        aliases_(DType::int64, Shape{range}, allocator) {}

  /// Precondition: `range` weights, finite and not negative, at least one of them above 0.
  void set_weights(std::span<const float> weights) {
    std::copy(weights.begin(), weights.end(), weights_.span<float>().begin());
    total_ = 0;
    for (const float weight : weights) total_ += static_cast<double>(weight);
    const std::span<float> shares = shares_.span<float>();
    const std::span<std::int64_t> aliases = aliases_.span<std::int64_t>();
    std::vector<double> left(weights.size());
    std::vector<std::size_t> low, high;
    const auto sort_in = [&](std::size_t i) { (left[i] < 1 ? low : high).push_back(i); };
    for (std::size_t i = 0; i < weights.size(); ++i) {
      left[i] = static_cast<double>(weights[i]) * static_cast<double>(weights.size()) / total_;
      sort_in(i);
    }
    while (!low.empty() && !high.empty()) {
      const std::size_t i = low.back(), other = high.back();
      low.pop_back(), high.pop_back();
      shares[i] = static_cast<float>(left[i]);
      aliases[i] = static_cast<std::int64_t>(other);
      left[other] -= 1 - left[i];
      sort_in(other);
    }
    // As many shares as classes are left, so each has one, but for rounding: a class without a weight is not among
    // them.
    for (const std::vector<std::size_t>& rest : {high, low}) {
      for (const std::size_t i : rest) {
        shares[i] = 1;
        aliases[i] = static_cast<std::int64_t>(i);
      }
    }
  }

  std::int64_t draw(CandidateWords& words) const override {
    const float number = words.unit_float();
    const std::uint64_t i = words.below(static_cast<std::uint64_t>(range()));
    return number < static_cast<const float*>(shares_.raw_data())[i]
               ? static_cast<std::int64_t>(i)
               : static_cast<const std::int64_t*>(aliases_.raw_data())[i];
  }
  double probability(std::int64_t id) const override {
    return static_cast<double>(static_cast<const float*>(weights_.raw_data())[id]) / total_;
  }

 private:
  AnyTensor weights_, shares_, aliases_;
  double total_ = 0;
};

/// Collects the weights of a node of FixedUnigramCandidateSampler.
class WeightList {
 public:
  explicit WeightList(const KernelInit& init)
      : init_(init), attrs_(init.node.attrs_as<FixedUnigramCandidateSampler>()) {}

  std::int64_t range() const { return attrs_.range_max; }
  /// The weights of the classes. Errors: InvalidArgument; those of the file system.
  std::vector<float> take() {
    const std::int64_t reserved = attrs_.num_reserved_ids > attrs_.shard
                                      ? (attrs_.num_reserved_ids - 1 - attrs_.shard) / attrs_.num_shards + 1
                                      : 0;
    if (reserved > attrs_.range_max) fail_for_size();
    weights_.assign(static_cast<std::size_t>(reserved), 0.0f);
    id_ = static_cast<std::uint64_t>(attrs_.num_reserved_ids);
    if (attrs_.vocab_file.empty()) {
      for (std::size_t i = 0; i < attrs_.unigrams.size(); ++i) {
        if (!add(static_cast<float>(attrs_.unigrams[i]))) {
          fail(str_cat("unigrams[", i, "] = ", attrs_.unigrams[i], bad_weight()));
        }
      }
    } else {
      read_file();
    }
    if (static_cast<std::int64_t>(weights_.size()) != attrs_.range_max) fail_for_size();
    const auto drawn = std::count_if(weights_.begin(), weights_.end(), [](float weight) { return weight > 0; });
    if (drawn == 0) fail("no class has a weight above 0");
    if (attrs_.unique && attrs_.num_sampled > drawn) {
      fail(str_cat("num_sampled = ", attrs_.num_sampled, " unique candidates are more than the ", drawn,
                   " classes with a weight above 0"));
    }
    return std::move(weights_);
  }

 private:
  /// False if the number is no weight.
  bool add(float weight) {
    const float distorted = std::pow(weight, attrs_.distortion);
    if (!std::isfinite(weight) || weight < 0 || !std::isfinite(distorted)) return false;
    const bool is_of_shard =
        id_++ % static_cast<std::uint64_t>(attrs_.num_shards) == static_cast<std::uint64_t>(attrs_.shard);
    if (!is_of_shard) return true;
    if (static_cast<std::int64_t>(weights_.size()) == attrs_.range_max) fail_for_size();
    weights_.push_back(distorted);
    return true;
  }
  std::string bad_weight() const {
    return str_cat(" is no weight: it must be finite and not negative, also to the power of ", attrs_.distortion);
  }
  void read_file() {
    LineReader lines(*device_files(init_.device), attrs_.vocab_file);
    std::string_view line;
    for (std::int64_t number = 1; lines.next(line); ++number) {
      // TensorFlow takes an empty line for one without columns.
      if (line.empty()) continue;
      const std::string_view column = line.substr(line.rfind(',') + 1);
      float weight = 0;
      if (!parse_number(column, weight) || !add(weight)) {
        constexpr std::size_t shown = 40;
        fail(str_cat(attrs_.vocab_file, ", line ", number, ": '", printable(column, shown), "'", bad_weight()));
      }
    }
  }
  [[noreturn]] void fail_for_size() const {
    fail(str_cat("range_max = ", attrs_.range_max, " is not the number of classes in shard ", attrs_.shard, " of ",
                 attrs_.num_shards, ", reserved ones included"));
  }
  [[noreturn]] static void fail(std::string message) { throw_error(Status::invalid_argument(std::move(message))); }

  const KernelInit& init_;
  const FixedUnigramCandidateSampler::Attrs& attrs_;
  std::vector<float> weights_;
  std::uint64_t id_ = 0;
};

/// Fails for a class outside of the range.
std::span<const std::int64_t> checked_classes(const KernelContext& context, std::int64_t range) {
  const Tensor<std::int64_t>& classes = context.input<std::int64_t>(0);
  const std::span<const std::int64_t> ids = classes.span();
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= 0 && ids[i] < range) continue;
    context.fail(str_cat("true_classes",
                         dflow::detail::position_to_string(static_cast<std::int64_t>(i), classes.shape()), " = ",
                         ids[i], " is outside [0, ", range, ")"));
  }
  return ids;
}

/// Numbers that are not negative, each at the first free place from that of its hash on.
class NumberSet {
 public:
  /// For at most so many numbers.
  explicit NumberSet(std::size_t size) : places_(std::bit_ceil(2 * size), free_place) {}
  /// False if the number is there already.
  bool insert(std::int64_t number) {
    const std::size_t last = places_.size() - 1;
    const std::uint64_t hash = static_cast<std::uint64_t>(number) * 0x9E3779B97F4A7C15u;  // Knuth 1973, 6.4
    std::size_t i = static_cast<std::size_t>(hash >> 32) & last;
    for (; places_[i] != free_place; i = (i + 1) & last) {
      if (places_[i] == number) return false;
    }
    places_[i] = number;
    return true;
  }

 private:
  static constexpr std::int64_t free_place = -1;
  std::vector<std::int64_t> places_;
};

/// Draws candidates until all are unlike, and returns the number of tries.
std::int64_t draw_unique(KernelContext& context, CandidateWords& words, const CandidateClasses& classes,
                         std::span<std::int64_t> candidates) {
  constexpr std::int64_t most_tries = std::numeric_limits<std::int32_t>::max();
  constexpr std::int64_t between_looks = 1 << 14;
  NumberSet used(candidates.size());
  std::int64_t tries = 0;
  for (std::size_t i = 0; i < candidates.size();) {
    if (++tries == most_tries) {
      context.fail(
          str_cat("after ", tries, " tries only ", i, " of ", candidates.size(), " unique candidates were drawn"));
    }
    if (tries % between_looks == 0 && context.step().cancellation.is_cancelled()) {
      throw_error(context.step().cancellation.status());
    }
    const std::int64_t id = classes.draw(words);
    if (used.insert(id)) candidates[i++] = id;
  }
  return tries;
}

}  // namespace detail

std::unique_ptr<CandidateClasses> make_candidate_classes(CandidateRule rule, const KernelInit& init) {
  const auto range = [&init] { return init.node.attrs_as<UniformCandidateSampler>().range_max; };
  switch (rule) {
    case CandidateRule::uniform:
      return std::make_unique<detail::UniformClasses>(range());
    case CandidateRule::log_uniform:
      return std::make_unique<detail::LogUniformClasses>(range());
    case CandidateRule::learned:
      return std::make_unique<detail::LearnedClasses>(range(), *init.device.allocator);
    case CandidateRule::fixed:
      break;
  }
  detail::WeightList weights(init);
  auto classes = std::make_unique<detail::WeightedClasses>(weights.range(), *init.device.allocator);
  classes->set_weights(weights.take());
  return classes;
}

void sample_candidates(KernelContext& context, const dflow::detail::NodeStream& stream, CandidateClasses& classes,
                       bool unique) {
  const Shape shape = dflow::detail::inferred_shape(context), of_true = dflow::detail::inferred_shape(context, 1);
  const std::span<const std::int64_t> true_classes = detail::checked_classes(context, classes.range());
  const std::span<std::int64_t> candidates = context.allocate_output<std::int64_t>(0, shape).span();
  float* const true_counts = context.allocate_output<float>(1, of_true).data();
  float* const counts = context.allocate_output<float>(2, shape).data();
  // As many words as TensorFlow sets aside.
  CandidateWords words(stream.reserve_groups(std::uint64_t{512} * candidates.size()));
  const std::lock_guard guard(classes);
  const auto drawn = static_cast<std::int64_t>(candidates.size());
  std::int64_t tries = drawn;
  if (unique) {
    tries = detail::draw_unique(context, words, classes, candidates);
  } else {
    for (std::int64_t& id : candidates) id = classes.draw(words);
  }
  const auto expected_count = [&](std::int64_t id) {
    const double p = classes.probability(id);
    if (tries == drawn) return static_cast<float>(p * static_cast<double>(drawn));
    return static_cast<float>(-std::expm1(static_cast<double>(tries) * std::log1p(-p)));
  };
  std::transform(true_classes.begin(), true_classes.end(), true_counts, expected_count);
  std::transform(candidates.begin(), candidates.end(), counts, expected_count);
  classes.learn(true_classes);
}

void take_all_candidates(KernelContext& context) {
  const Shape shape = dflow::detail::inferred_shape(context), of_true = dflow::detail::inferred_shape(context, 1);
  static_cast<void>(detail::checked_classes(context, shape[0]));
  std::int64_t* const candidates = context.allocate_output<std::int64_t>(0, shape).data();
  std::fill_n(context.allocate_output<float>(1, of_true).data(), of_true.num_elements(), 1.0f);
  std::fill_n(context.allocate_output<float>(2, shape).data(), shape[0], 1.0f);
  for (std::int64_t i = 0; i < shape[0]; ++i) candidates[i] = i;
}

void find_accidental_hits(KernelContext& context) {
  dflow::detail::with_inferred_shapes(context, [](std::span<const PartialShape>) {});
  const AnyTensor& classes = context.input(0);
  if (classes.dim(0) > std::numeric_limits<std::int32_t>::max()) {
    context.fail(str_cat("the ", classes.dim(0), " rows of the batch have numbers beyond int32"));
  }
  std::unordered_map<std::int64_t, std::int64_t> place_of;
  const std::span<const std::int64_t> candidates = context.input<std::int64_t>(1).span();
  place_of.reserve(candidates.size());
  for (std::size_t i = 0; i < candidates.size(); ++i) place_of[candidates[i]] = static_cast<std::int64_t>(i);
  std::vector<std::int32_t> rows;
  std::vector<std::int64_t> places;
  const std::span<const std::int64_t> ids = context.input<std::int64_t>(0).span();
  const std::int64_t width = classes.dim(1);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto found = place_of.find(ids[i]);
    if (found == place_of.end()) continue;
    rows.push_back(static_cast<std::int32_t>(static_cast<std::int64_t>(i) / width));
    places.push_back(found->second);
  }
  const Shape shape{static_cast<std::int64_t>(rows.size())};
  std::copy(rows.begin(), rows.end(), context.allocate_output<std::int32_t>(0, shape).data());
  std::copy(places.begin(), places.end(), context.allocate_output<std::int64_t>(1, shape).data());
  std::fill_n(context.allocate_output<float>(2, shape).data(), shape[0], std::numeric_limits<float>::lowest());
}

}  // namespace dflow::cpu
