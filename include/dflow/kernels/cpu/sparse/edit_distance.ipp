#pragma once

#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/cpu/sparse/edit_distance.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace dflow {

namespace detail {

/// The elements [begin, end) of the values, at one place of the output.
struct SequenceRun {
  std::int64_t place, begin, end;
  std::int64_t size() const { return end - begin; }
};

/// The sequences of the sparse tensor whose indices are input `first`. Fails for indices outside the dense shape or out
/// of order.
std::vector<SequenceRun> sequence_runs(const KernelContext& context, int first, const Shape& output) {
  const AnyTensor& indices = context.input(first);
  const auto shape = context.input(first + 2).span<std::int64_t>();
  const std::string_view name = first == 0 ? "hypothesis_indices[" : "truth_indices[";
  const std::size_t rank = shape.size();
  const std::int64_t* const all = indices.span<std::int64_t>().data();
  std::vector<SequenceRun> runs;
  for (std::int64_t i = 0; i < indices.dim(0); ++i) {
    const std::span<const std::int64_t> index(all + i * static_cast<std::int64_t>(rank), rank);
    std::int64_t place = 0;
    for (std::size_t d = 0; d < rank; ++d) {
      if (index[d] < 0 || index[d] >= shape[d]) {
        context.fail(str_cat(name, i, ", ", d, "] = ", index[d], " is outside [0, ", shape[d], ")"));
      }
      if (d + 1 < rank) place = place * output.dim(static_cast<int>(d)) + index[d];
    }
    if (i > 0) {
      const std::span<const std::int64_t> last(index.data() - rank, rank);
      if (!std::lexicographical_compare(last.begin(), last.end(), index.begin(), index.end())) {
        context.fail(str_cat(name, i, "] is not behind the index before it in row-major order"));
      }
    }
    if (runs.empty() || runs.back().place != place) runs.push_back({place, i, i});
    ++runs.back().end;
  }
  return runs;
}

/// Signed, unsigned and logical elements are equal if their bits are.
template <class T>
struct BitsOf {
  using type = T;
};
template <std::integral T>
struct BitsOf<T> {
  using type = std::conditional_t<sizeof(T) == 1, std::uint8_t,
                                  std::conditional_t<sizeof(T) == 2, std::uint16_t,
                                                     std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>;
};

/// Goes along `a` with the distances of its beginning from all beginnings of b, in `row`.
template <class T>
std::int64_t levenshtein(std::span<const T> a, std::span<const T> b, std::vector<std::int64_t>& row) {
  row.resize(b.size() + 1);
  std::iota(row.begin(), row.end(), std::int64_t{0});
  for (const T& element : a) {
    std::int64_t diagonal = row[0]++;
    for (std::size_t i = 0; i < b.size(); ++i) {
      const std::int64_t replaced = diagonal + (element == b[i] ? 0 : 1);
      diagonal = row[i + 1];
      row[i + 1] = std::min(replaced, std::min(diagonal, row[i]) + 1);
    }
  }
  return row.back();
}

/// The distance of a hypothesis and a truth that both have elements.
std::int64_t distance_of_runs(const AnyTensor& hypotheses, const SequenceRun& hypothesis, const AnyTensor& truths,
                              const SequenceRun& truth, std::vector<std::int64_t>& row) {
  std::int64_t distance = 0;
  visit_dtype<AllTypes>(truths.dtype(), [&]<class T>() {
    using Bits = typename BitsOf<T>::type;
    const auto elements = [](const AnyTensor& values, const SequenceRun& run) {
      return std::span<const Bits>(static_cast<const Bits*>(values.raw_data()) + run.begin,
                                   static_cast<std::size_t>(run.size()));
    };
    distance = levenshtein<Bits>(elements(hypotheses, hypothesis), elements(truths, truth), row);
  });
  return distance;
}

}  // namespace detail

void Kernel<EditDistance, Cpu>::operator()(KernelContext& context) const {
  const Shape shape = detail::inferred_shape(context);
  const auto hypotheses = detail::sequence_runs(context, 0, shape), truths = detail::sequence_runs(context, 3, shape);
  Tensor<float>& output = context.allocate_output<float>(0, shape);
  std::fill(output.begin(), output.end(), 0.0f);
  float* const to = output.data();
  struct Pair {
    const detail::SequenceRun *hypothesis, *truth;
  };
  std::vector<Pair> pairs;
  double cells = 0;
  for (std::size_t h = 0, t = 0; h < hypotheses.size() || t < truths.size();) {
    const bool has_hypothesis = h < hypotheses.size() && (t == truths.size() || hypotheses[h].place <= truths[t].place);
    const bool has_truth = t < truths.size() && (h == hypotheses.size() || truths[t].place <= hypotheses[h].place);
    if (has_hypothesis && has_truth) {
      pairs.push_back({&hypotheses[h], &truths[t]});
      cells += static_cast<double>(hypotheses[h].size()) * static_cast<double>(truths[t].size());
    } else if (has_hypothesis) {
      to[hypotheses[h].place] =
          attrs.normalize ? std::numeric_limits<float>::infinity() : static_cast<float>(hypotheses[h].size());
    } else {
      to[truths[t].place] = attrs.normalize ? 1.0f : static_cast<float>(truths[t].size());
    }
    h += has_hypothesis ? 1 : 0;
    t += has_truth ? 1 : 0;
  }
  const auto count = static_cast<std::int64_t>(pairs.size());
  const double pair_ns = 20 + 3 * cells / static_cast<double>(std::max(count, std::int64_t{1}));
  context.pool().parallel_for(count, pair_ns, [&](std::int64_t begin, std::int64_t end) {
    std::vector<std::int64_t> row;
    for (std::int64_t i = begin; i < end; ++i) {
      const auto [hypothesis, truth] = pairs[static_cast<std::size_t>(i)];
      const auto distance =
          static_cast<float>(detail::distance_of_runs(context.input(1), *hypothesis, context.input(4), *truth, row));
      to[truth->place] = attrs.normalize ? distance / static_cast<float>(truth->size()) : distance;
    }
  });
}

}  // namespace dflow
