// Handwritten digits, and models that read them, for several examples.
#pragma once

#include <dflow/dflow.hpp>
#include <dflow/io/labelled_images.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace digits {

namespace df = dflow;

struct Sets {
  df::LabelledImages train;
  df::LabelledImages test;
};

/// MNIST's own split from that directory, or of the small digits that come along a fifth, picked at random, for the
/// test.
inline Sets read_sets(const std::string& mnist, std::uint64_t seed) {
  df::PosixFileSystem files;
  if (!mnist.empty()) return {df::read_mnist(files, mnist, "train"), df::read_mnist(files, mnist, "t10k")};
  const auto digits = df::read_digits(files, DFLOW_EXAMPLES_DATA_DIR "/optdigits.csv.gz");
  df::train::Minibatches all(digits.size(), digits.size(), seed);
  const auto order = all.next();
  const df::LabelledImages shuffled{df::train::rows_of(digits.images, order), df::train::rows_of(digits.labels, order)};
  const std::int64_t split = digits.size() * 4 / 5;
  return {df::slice(shuffled, 0, split), df::slice(shuffled, split, digits.size())};
}

/// `images`: [batch, height, width, channels] -> [batch, 10].
inline df::Output<float> logits_of(const std::string& model, const df::Output<float>& images,
                                   const df::Output<bool>& training) {
  using df::Activation;
  if (model == "softmax") return df::dense(df::flatten(images), 10);
  if (model == "mlp") return df::dense(df::dense(df::flatten(images), 512, {.activation = Activation::relu}), 10);
  auto low = df::max_pool(df::conv2d(images, 32, 3, {.activation = Activation::relu}), 2);
  auto high = df::max_pool(df::conv2d(low, 64, 3, {.activation = Activation::relu}), 2);
  auto hidden = df::dense(df::flatten(high), 128, {.activation = Activation::relu});
  return df::dense(df::dropout(hidden, 0.5f, df::Training(training)), 10);
}

/// The share of `set` that `score(part)` finds right, a thousand at a time.
template <class Score>
double accuracy_on(const df::LabelledImages& set, Score&& score) {
  double hits = 0;
  for (std::int64_t begin = 0; begin < set.size(); begin += 1000) {
    const auto part = df::slice(set, begin, std::min(begin + 1000, set.size()));
    hits += static_cast<double>(score(part)) * static_cast<double>(part.size());
  }
  return hits / static_cast<double>(set.size());
}

/// The images of a step, for all replicas together: each epoch is in an order of its own.
class Batches {
 public:
  Batches(std::int64_t images, std::int64_t per_step, std::uint64_t seed)
      : images_(images), per_step_(per_step), seed_(seed) {}

  std::vector<std::int64_t> rows(std::int64_t step, std::int64_t begin, std::int64_t end) {
    const std::int64_t steps_per_epoch = std::max<std::int64_t>(images_ / per_step_, 1);
    if (const std::int64_t epoch = step / steps_per_epoch; epoch != epoch_) {
      df::train::Minibatches all(images_, images_, seed_ + static_cast<std::uint64_t>(epoch));
      const auto order = all.next();
      order_.assign(order.begin(), order.end());
      epoch_ = epoch;
    }
    const std::int64_t first = step % steps_per_epoch * per_step_;
    std::vector<std::int64_t> rows;
    rows.reserve(static_cast<std::size_t>(end - begin));
    for (std::int64_t i = begin; i < end; ++i) {
      rows.push_back(order_[static_cast<std::size_t>((first + i) % images_)]);
    }
    return rows;
  }

 private:
  std::int64_t images_, per_step_;
  std::uint64_t seed_;
  std::int64_t epoch_ = -1;
  std::vector<std::int64_t> order_;
};

}  // namespace digits
