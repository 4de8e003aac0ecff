#pragma once

#include <dflow/base/config.hpp>

#include <cmath>
#include <cstdint>

namespace dflow {

/// Four 32-bit words: a counter, or the random words it maps to.
struct PhiloxWords {
  std::uint32_t word[4];

  DFLOW_FN constexpr std::uint32_t& operator[](int i) { return word[i]; }
  DFLOW_FN constexpr std::uint32_t operator[](int i) const { return word[i]; }
  friend constexpr bool operator==(const PhiloxWords&, const PhiloxWords&) = default;
};

/// Philox 4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"): a bijection of counters chosen
/// by a key. The i-th group of four words needs no state but i, so any split over threads or devices gives the same
/// bits.
struct Philox {
  std::uint32_t key[2];

  DFLOW_FN constexpr PhiloxWords operator()(PhiloxWords counter) const {
    std::uint32_t key0 = key[0];
    std::uint32_t key1 = key[1];
    for (int round = 0; round < 10; ++round) {
      const std::uint64_t product0 = std::uint64_t{0xD2511F53u} * counter.word[0];
      const std::uint64_t product1 = std::uint64_t{0xCD9E8D57u} * counter.word[2];
      counter = {
          {static_cast<std::uint32_t>(product1 >> 32) ^ counter.word[1] ^ key0, static_cast<std::uint32_t>(product1),
           static_cast<std::uint32_t>(product0 >> 32) ^ counter.word[3] ^ key1, static_cast<std::uint32_t>(product0)}};
      key0 += 0x9E3779B9u;
      key1 += 0xBB67AE85u;
    }
    return counter;
  }
};

/// `counter` plus n, as a 128-bit number whose first word is the lowest.
DFLOW_FN constexpr PhiloxWords advance(PhiloxWords counter, std::uint64_t n) {
  const std::uint64_t low = counter.word[0] | std::uint64_t{counter.word[1]} << 32;
  const std::uint64_t sum = low + n;
  counter.word[0] = static_cast<std::uint32_t>(sum);
  counter.word[1] = static_cast<std::uint32_t>(sum >> 32);
  if (sum < low && ++counter.word[2] == 0) ++counter.word[3];
  return counter;
}

/// Groups of four words one after the other. As in TensorFlow a stream has two 64-bit seeds: the first is the key, the
/// second the upper half of the counter.
struct PhiloxStream {
  Philox generator;
  PhiloxWords counter;

  DFLOW_FN static constexpr PhiloxStream from_seeds(std::uint64_t seed, std::uint64_t seed2) {
    return {{{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}},
            {{0, 0, static_cast<std::uint32_t>(seed2), static_cast<std::uint32_t>(seed2 >> 32)}}};
  }

  /// The group at the stream's position, which moves on by one.
  DFLOW_FN constexpr PhiloxWords next() {
    const PhiloxWords words = generator(counter);
    counter = advance(counter, 1);
    return words;
  }
  DFLOW_FN constexpr void skip(std::uint64_t groups) { counter = advance(counter, groups); }
};

/// [0, 1) in steps of 2^-23 from the low 23 bits, bit for bit TensorFlow's Uint32ToFloat (which sets the mantissa of a
/// number in [1, 2) and subtracts 1).
DFLOW_FN constexpr float uniform_float(std::uint32_t word) {
  return static_cast<float>(word & 0x7fffffu) * (1.0f / 8388608.0f);
}

/// [0, 1) in steps of 2^-52 from 20 bits of `high` and all of `low`, as TensorFlow's Uint64ToDouble.
DFLOW_FN constexpr double uniform_double(std::uint32_t high, std::uint32_t low) {
  const std::uint64_t mantissa = (std::uint64_t{high & 0xfffffu} << 32) | low;
  return static_cast<double>(static_cast<std::int64_t>(mantissa)) * (1.0 / 4503599627370496.0);
}

template <class T>
struct NormalPair {
  T first;
  T second;
};

/// Two independent standard normal values (Box and Muller 1958) in TensorFlow's order: sine, then cosine. The angle is
/// rounded to float from the product with 2 pi in double, as there, which makes the bits agree.
DFLOW_FN inline NormalPair<float> normal_pair(std::uint32_t word0, std::uint32_t word1) {
  float u = uniform_float(word0);
  if (u < 1.0e-7f) u = 1.0e-7f;
  const auto angle = static_cast<float>(2.0 * 3.14159265358979323846 * static_cast<double>(uniform_float(word1)));
  const float radius = std::sqrt(-2.0f * std::log(u));
  return {std::sin(angle) * radius, std::cos(angle) * radius};
}

DFLOW_FN inline NormalPair<double> normal_pair(PhiloxWords words) {
  double u = uniform_double(words.word[0], words.word[1]);
  if (u < 1.0e-7) u = 1.0e-7;
  const double angle = 2.0 * 3.14159265358979323846 * uniform_double(words.word[2], words.word[3]);
  const double radius = std::sqrt(-2.0 * std::log(u));
  return {std::sin(angle) * radius, std::cos(angle) * radius};
}

}  // namespace dflow
