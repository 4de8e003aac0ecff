#pragma once

#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/ops/parsing/decode_json_example.hpp>
#include <dflow/ops/parsing/parse_example.hpp>
#include <dflow/ops/parsing/parse_sequence_example.hpp>

namespace dflow {

template <>
struct Kernel<DecodeJsonExample, Cpu> {
  double cost_ns(const KernelInit& init) const { return 200 + 5000 * estimated_elements(init.inputs[0]); }
  void operator()(KernelContext& context, const Tensor<std::string>& texts, Tensor<std::string>& examples) const;
};

template <>
struct Kernel<ParseExample, Cpu> {
  static constexpr bool splits = false;
  ParseExample::Attrs attrs;
  double cost_ns(const KernelInit& init) const { return 1000 + 2000 * estimated_elements(init.inputs[0]); }
  void operator()(KernelContext& context) const;
};

template <>
struct Kernel<ParseSingleExample, Cpu> {
  static constexpr bool splits = false;
  ParseSingleExample::Attrs attrs;
  double cost_ns(const KernelInit&) const { return 3000; }
  void operator()(KernelContext& context) const;
};

template <>
struct Kernel<ParseSingleSequenceExample, Cpu> {
  static constexpr bool splits = false;
  ParseSingleSequenceExample::Attrs attrs;
  double cost_ns(const KernelInit&) const { return 10000; }
  void operator()(KernelContext& context) const;
};

}  // namespace dflow
