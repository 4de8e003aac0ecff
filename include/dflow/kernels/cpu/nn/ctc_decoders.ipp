#pragma once

#include <dflow/kernels/cpu/nn/ctc_decoders.hpp>
#include <dflow/kernels/cpu/nn/ctc_rows.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace dflow {

namespace detail {

inline constexpr double log_of_zero = -std::numeric_limits<double>::infinity();

inline double log_of_sum(double a, double b) {
  if (a < b) std::swap(a, b);
  return b == log_of_zero ? a : a + std::log1p(std::exp(b - a));
}

using LabelSequence = std::vector<std::int32_t>;

/// The search for the sequences of one item, in a tree of prefixes: a node is the sequence of labels from the root.
class CtcBeam {
 public:
  CtcBeam(std::int32_t blank, std::size_t width)
      : blank_(blank), width_(width), child_of_(static_cast<std::size_t>(blank), nobody) {}

  void reset() {
    nodes_.assign(1, Node{nobody, -1, nobody, nobody, 0, {}, {0, 0, log_of_zero}});
    leaves_.clear();
    free_.clear();
    order_ = 0;
    steps_ = 0;
    push(0);
  }

  /// Goes on by one time step with these logits; false if they have no softmax.
  bool step(std::vector<double>& logits) {
    const double most = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (const double x : logits) sum += std::exp(x - most);
    if (!std::isfinite(sum)) return false;
    for (double& x : logits) x = x - most - std::log(sum);
    ++steps_;
    const std::vector<Leaf> branches = sorted_leaves();
    for (const Leaf& leaf : branches) nodes_[leaf.node].last = nodes_[leaf.node].now;
    leaves_.clear();
    for (const Leaf& leaf : branches) {
      stay(nodes_[leaf.node], logits);
      push(leaf.node);
    }
    for (const Leaf& leaf : branches) grow(leaf.node, logits);
    return true;
  }

  std::size_t size() const noexcept { return leaves_.size(); }

  /// The best `count` sequences with the logarithms of their probabilities. Precondition: there are as many.
  void take(std::size_t count, bool merge_repeated, LabelSequence* sequences, double* scores) const {
    const std::vector<Leaf> best = sorted_leaves();
    for (std::size_t i = 0; i < count; ++i) {
      scores[i] = best[i].total;
      sequences[i].clear();
      for (std::size_t n = best[i].node; n != 0; n = nodes_[n].parent) {
        const bool is_repeated = !sequences[i].empty() && sequences[i].back() == nodes_[n].label;
        // Labels left out are equal to the last one that was taken.
        if (!merge_repeated || !is_repeated) sequences[i].push_back(nodes_[n].label);
      }
      std::reverse(sequences[i].begin(), sequences[i].end());
    }
  }

 private:
  static constexpr std::size_t nobody = static_cast<std::size_t>(-1);

  /// Logarithms of probabilities of the paths of a prefix: all, those that end in a blank and those that do not.
  struct Score {
    double total = log_of_zero, blank = log_of_zero, label = log_of_zero;
  };
  struct Node {
    std::size_t parent;
    std::int32_t label;
    std::size_t first_child, next_sibling;
    std::int64_t born;  ///< in which time step
    Score last, now;    ///< of the time step before, and of this one; nothing now if the prefix is not in the beam
    bool is_in_beam() const { return now.total != log_of_zero; }
  };
  struct Leaf {
    double total;
    std::uint64_t order;
    std::size_t node;
    /// The worst leaf lies in front of a heap by this order: among equals the one that came last.
    bool operator<(const Leaf& b) const { return total != b.total ? total > b.total : order < b.order; }
  };

  std::vector<Leaf> sorted_leaves() const {
    std::vector<Leaf> sorted = leaves_;
    std::sort(sorted.begin(), sorted.end());
    return sorted;
  }
  void push(std::size_t node) {
    leaves_.push_back({nodes_[node].now.total, order_++, node});
    std::push_heap(leaves_.begin(), leaves_.end());
  }
  bool has_room_for(double total) const {
    return total > log_of_zero && (leaves_.size() < width_ || total > leaves_.front().total);
  }

  /// The paths of a prefix that stay there: by its last label again, by a blank, and from the parent by the label.
  void stay(Node& node, const std::vector<double>& logs) {
    if (node.parent != nobody) {
      const Node& parent = nodes_[node.parent];
      if (parent.is_in_beam()) {
        node.now.label = log_of_sum(node.now.label, node.label == parent.label ? parent.last.blank : parent.last.total);
      }
      node.now.label += logs[static_cast<std::size_t>(node.label)];
    }
    node.now.blank = node.last.total + logs[static_cast<std::size_t>(blank_)];
    node.now.total = log_of_sum(node.now.blank, node.now.label);
  }

  /// Adds the prefixes that are one label longer, as far as the beam has room for them.
  void grow(std::size_t n, const std::vector<double>& logs) {
    if (!has_room_for(nodes_[n].last.total)) return;
    const Score last = nodes_[n].last;
    for (std::size_t c = nodes_[n].first_child; c != nobody; c = nodes_[c].next_sibling) {
      child_of_[static_cast<std::size_t>(nodes_[c].label)] = c;
    }
    for (std::int32_t label = 0; label < blank_; ++label) {
      std::size_t& child = child_of_[static_cast<std::size_t>(label)];
      if (child != nobody && nodes_[child].is_in_beam()) continue;
      const double total = logs[static_cast<std::size_t>(label)] + (label == nodes_[n].label ? last.blank : last.total);
      if (has_room_for(total)) {
        if (leaves_.size() == width_) drop_worst();
        if (child == nobody) child = add_child(n, label);
        nodes_[child].now = {total, log_of_zero, total};
        push(child);
      } else if (child != nobody) {
        nodes_[child].last = nodes_[child].now = Score();
      }
    }
    for (std::size_t c = nodes_[n].first_child; c != nobody; c = nodes_[c].next_sibling) {
      child_of_[static_cast<std::size_t>(nodes_[c].label)] = nobody;
    }
  }
  std::size_t add_child(std::size_t n, std::int32_t label) {
    std::size_t child = nodes_.size();
    if (free_.empty()) {
      nodes_.emplace_back();
    } else {
      child = free_.back();
      free_.pop_back();
    }
    nodes_[child] = {n, label, nobody, nodes_[n].first_child, steps_, {}, {}};
    nodes_[n].first_child = child;
    return child;
  }
  /// A prefix that came in this step leaves no trace, so a step adds at most as many nodes as the beam is wide.
  void drop_worst() {
    const std::size_t n = leaves_.front().node;
    std::pop_heap(leaves_.begin(), leaves_.end());
    leaves_.pop_back();
    nodes_[n].now = Score();
    if (nodes_[n].born != steps_) return;
    std::size_t* link = &nodes_[nodes_[n].parent].first_child;
    while (*link != n) link = &nodes_[*link].next_sibling;
    *link = nodes_[n].next_sibling;
    std::size_t& marked = child_of_[static_cast<std::size_t>(nodes_[n].label)];
    if (marked == n) marked = nobody;  // its parent is the one that grows
    free_.push_back(n);
  }

  const std::int32_t blank_;
  const std::size_t width_;
  std::vector<Node> nodes_;            ///< the root first
  std::vector<std::size_t> free_;      ///< nodes that nothing names
  std::vector<Leaf> leaves_;           ///< a heap
  std::uint64_t order_ = 0;            ///< of the next leaf
  std::int64_t steps_ = 0;             ///< of time, up to now
  std::vector<std::size_t> child_of_;  ///< by label, of the node that grows
};

/// Gives the sequences of all items as `paths` sparse matrices: sequences[b * paths + p].
void give_sequences(KernelContext& context, std::int64_t batch, int paths,
                    const std::vector<LabelSequence>& sequences) {
  for (int p = 0; p < paths; ++p) {
    std::size_t count = 0, most = 0;
    for (std::size_t i = static_cast<std::size_t>(p); i < sequences.size(); i += static_cast<std::size_t>(paths)) {
      count += sequences[i].size();
      most = std::max(most, sequences[i].size());
    }
    const auto values = static_cast<std::int64_t>(count);
    std::int64_t* index = context.allocate_output<std::int64_t>(p, {values, 2}).data();
    std::int64_t* value = context.allocate_output<std::int64_t>(paths + p, {values}).data();
    std::int64_t* const shape = context.allocate_output<std::int64_t>(2 * paths + p, {2}).data();
    shape[0] = batch, shape[1] = static_cast<std::int64_t>(most);
    for (std::int64_t b = 0; b < batch; ++b) {
      std::int64_t column = 0;
      for (const std::int32_t label : sequences[static_cast<std::size_t>(b * paths + p)]) {
        *index++ = b, *index++ = column++, *value++ = label;
      }
    }
  }
}

/// The scores as output `o`, [batch, paths].
void give_scores(KernelContext& context, int o, const Shape& shape, const std::vector<double>& scores) {
  AnyTensor& output = context.allocate_output(o, shape);
  visit_dtype<CtcTypes>(output.dtype(), [&]<class T>() {
    std::transform(scores.begin(), scores.end(), static_cast<T*>(output.raw_data()),
                   [](double x) { return static_cast<T>(x); });
  });
}

}  // namespace detail

void Kernel<CTCGreedyDecoder, Cpu>::operator()(KernelContext& context) const {
  const detail::CtcInputs inputs = detail::ctc_inputs(context, 1);
  const auto lengths = context.input(1).span<std::int32_t>();
  std::vector<detail::LabelSequence> sequences(lengths.size());
  std::vector<double> scores(lengths.size());
  const double item_ns = static_cast<double>(inputs.time) * static_cast<double>(inputs.classes) * 2;
  context.pool().parallel_for(inputs.size, item_ns, [&](std::int64_t begin, std::int64_t end) {
    std::vector<double> row(static_cast<std::size_t>(inputs.classes));
    for (std::int64_t b = begin; b < end; ++b) {
      detail::LabelSequence& sequence = sequences[static_cast<std::size_t>(b)];
      std::int32_t last = -1;
      for (std::int64_t t = 0; t < lengths[static_cast<std::size_t>(b)]; ++t) {
        detail::read_ctc_row(inputs, t, b, row);
        const auto best = static_cast<std::int32_t>(std::max_element(row.begin(), row.end()) - row.begin());
        scores[static_cast<std::size_t>(b)] -= row[static_cast<std::size_t>(best)];
        if (best != inputs.blank() && !(attrs.merge_repeated && best == last)) sequence.push_back(best);
        last = best;
      }
    }
  });
  detail::give_sequences(context, inputs.size, 1, sequences);
  detail::give_scores(context, 3, {inputs.size, 1}, scores);
}

void Kernel<CTCBeamSearchDecoder, Cpu>::operator()(KernelContext& context) const {
  const detail::CtcInputs inputs = detail::ctc_inputs(context, 1);
  const auto lengths = context.input(1).span<std::int32_t>();
  const auto paths = static_cast<std::size_t>(attrs.top_paths);
  std::vector<detail::LabelSequence> sequences(lengths.size() * paths);
  std::vector<double> scores(sequences.size());
  /// Of each item: the number of sequences, and the time step at which the search ended, if it did.
  std::vector<std::pair<std::size_t, std::int64_t>> found(lengths.size());
  const double width = static_cast<double>(std::min(attrs.beam_width, std::int64_t{1} << 20));
  const double item_ns = static_cast<double>(inputs.time) * (static_cast<double>(inputs.classes) + 50) * 2 * width;
  context.pool().parallel_for(inputs.size, item_ns, [&](std::int64_t begin, std::int64_t end) {
    std::vector<double> row(static_cast<std::size_t>(inputs.classes));
    detail::CtcBeam beam(inputs.blank(), static_cast<std::size_t>(attrs.beam_width));
    for (std::int64_t b = begin; b < end; ++b) {
      const auto item = static_cast<std::size_t>(b);
      beam.reset();
      found[item].second = -1;
      for (std::int64_t t = 0; t < lengths[item] && found[item].second < 0; ++t) {
        detail::read_ctc_row(inputs, t, b, row);
        if (!beam.step(row)) found[item].second = t;
      }
      found[item].first = beam.size();
      if (beam.size() >= paths && found[item].second < 0) {
        beam.take(paths, attrs.merge_repeated, &sequences[item * paths], &scores[item * paths]);
      }
    }
  });
  for (std::size_t b = 0; b < found.size(); ++b) {
    const auto [count, bad] = found[b];
    if (bad >= 0)
      context.fail(str_cat("inputs[", bad, ", ", b, "] have no softmax: a logit is infinite or not a number"));
    if (count < paths) {
      context.fail(str_cat("item ", b, " has ", count, " sequences with sequence_length[", b, "] = ", lengths[b],
                           ", and top_paths = ", paths));
    }
  }
  detail::give_sequences(context, inputs.size, static_cast<int>(paths), sequences);
  detail::give_scores(context, 3 * static_cast<int>(paths), {inputs.size, attrs.top_paths}, scores);
}

}  // namespace dflow
