#pragma once

#include <dflow/base/text/parse_number.hpp>
#include <dflow/kernels/cpu/strings/text_loop.hpp>
#include <dflow/ops/strings/string_number.hpp>

namespace dflow {

namespace detail {

[[noreturn]] void fail_number(const KernelContext& context, const Tensor<std::string>& texts, std::int64_t i);

struct AsStringKernel {
  AsString::Attrs attrs;
  double cost_ns(const KernelInit& init) const { return text_loop_cost_ns(init); }
  void operator()(KernelContext& context) const;
};

}  // namespace detail

template <class T>
struct Kernel<StringToNumber, Cpu, T> {
  double cost_ns(const KernelInit& init) const { return detail::text_loop_cost_ns(init); }
  void operator()(KernelContext& context, const Tensor<std::string>& texts, Tensor<T>& numbers) const {
    detail::each_text(context, texts.num_elements(), [&](std::int64_t i) {
      if (!parse_number(texts.data()[i], numbers.data()[i])) detail::fail_number(context, texts, i);
    });
  }
};

template <>
struct Kernel<AsString, Cpu> : detail::AsStringKernel {};

}  // namespace dflow
