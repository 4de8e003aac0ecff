#pragma once

#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/kernels/state/node_stream.hpp>
#include <dflow/ops/random/candidates.hpp>

#include <cstdint>
#include <memory>
#include <span>

namespace dflow {

namespace cpu {

/// The random numbers of a run, one after the other, as TensorFlow's SimplePhilox makes them.
class CandidateWords {
 public:
  explicit CandidateWords(const PhiloxStream& stream) : stream_(stream) {}

  std::uint32_t word() {
    if (used_ == 4) words_ = stream_.next(), used_ = 0;
    return words_[used_++];
  }
  std::uint64_t wide_word() {
    const std::uint64_t low = word();
    return low | std::uint64_t{word()} << 32;
  }
  float unit_float() { return uniform_float(word()); }
  double unit() {
    const std::uint32_t high = word();
    return uniform_double(high, word());
  }
  /// In [0, n), all equally likely, from words of 32 bits where they suffice, or always from pairs of them.
  /// Precondition: n > 0.
  std::uint64_t below(std::uint64_t n);
  std::uint64_t wide_below(std::uint64_t n);

 private:
  PhiloxStream stream_;
  PhiloxWords words_{};
  int used_ = 4;
};

/// What a sampler draws from: classes [0, range) with a probability each.
///
/// Thread safety: const functions may be called at once. Runs of classes that learn hold a lock.
class CandidateClasses {
 public:
  explicit CandidateClasses(std::int64_t range) : range_(range) {}
  CandidateClasses(const CandidateClasses&) = delete;
  CandidateClasses& operator=(const CandidateClasses&) = delete;
  virtual ~CandidateClasses() = default;

  std::int64_t range() const noexcept { return range_; }
  virtual std::int64_t draw(CandidateWords& words) const = 0;
  /// Precondition: a class of the range.
  virtual double probability(std::int64_t id) const = 0;

  virtual void lock() {}
  virtual void unlock() {}
  /// Takes note of the true classes of a run.
  virtual void learn(std::span<const std::int64_t> classes) { static_cast<void>(classes); }

 private:
  const std::int64_t range_;
};

enum class CandidateRule : std::uint8_t { uniform, log_uniform, learned, fixed };

/// The classes of a sampler's node. Errors: InvalidArgument for weights that are none; those of the file system.
std::unique_ptr<CandidateClasses> make_candidate_classes(CandidateRule rule, const KernelInit& init);
/// The kernel of samplers.
void sample_candidates(KernelContext& context, const dflow::detail::NodeStream& stream, CandidateClasses& classes,
                       bool unique);
/// The kernel of AllCandidateSampler.
void take_all_candidates(KernelContext& context);
/// The kernel of ComputeAccidentalHits.
void find_accidental_hits(KernelContext& context);

template <class O, CandidateRule rule>
class CandidateKernel {
 public:
  static constexpr bool splits = false;
  static constexpr bool keeps_state = true;

  explicit CandidateKernel(const KernelInit& init)
      : stream_(init, init.node.attrs_as<O>().seed, init.node.attrs_as<O>().seed2),
        classes_(make_candidate_classes(rule, init)),
        unique_(init.node.attrs_as<O>().unique) {}

  double cost_ns(const KernelInit& init) const {
    return 500 + estimated_elements(init.node.outputs[0]) * 100 + estimated_elements(init.inputs[0]) * 20;
  }
  void operator()(KernelContext& context) const { sample_candidates(context, stream_, *classes_, unique_); }

 private:
  dflow::detail::NodeStream stream_;
  std::unique_ptr<CandidateClasses> classes_;
  bool unique_;
};

}  // namespace cpu

template <>
struct Kernel<UniformCandidateSampler, Cpu>
    : cpu::CandidateKernel<UniformCandidateSampler, cpu::CandidateRule::uniform> {
  using CandidateKernel::CandidateKernel;
};
template <>
struct Kernel<LogUniformCandidateSampler, Cpu>
    : cpu::CandidateKernel<LogUniformCandidateSampler, cpu::CandidateRule::log_uniform> {
  using CandidateKernel::CandidateKernel;
};
template <>
struct Kernel<LearnedUnigramCandidateSampler, Cpu>
    : cpu::CandidateKernel<LearnedUnigramCandidateSampler, cpu::CandidateRule::learned> {
  using CandidateKernel::CandidateKernel;
};
template <>
struct Kernel<ThreadUnsafeUnigramCandidateSampler, Cpu>
    : cpu::CandidateKernel<ThreadUnsafeUnigramCandidateSampler, cpu::CandidateRule::learned> {
  using CandidateKernel::CandidateKernel;
};
template <>
struct Kernel<FixedUnigramCandidateSampler, Cpu>
    : cpu::CandidateKernel<FixedUnigramCandidateSampler, cpu::CandidateRule::fixed> {
  using CandidateKernel::CandidateKernel;
};
template <>
struct Kernel<AllCandidateSampler, Cpu> {
  static constexpr bool splits = false;
  void operator()(KernelContext& context) const { cpu::take_all_candidates(context); }
};
template <>
struct Kernel<ComputeAccidentalHits, Cpu> {
  static constexpr bool splits = false;
  double cost_ns(const KernelInit& init) const {
    return 300 + estimated_elements(init.inputs[0]) * 20 + estimated_elements(init.inputs[1]) * 20;
  }
  void operator()(KernelContext& context) const { cpu::find_accidental_hits(context); }
};

}  // namespace dflow
