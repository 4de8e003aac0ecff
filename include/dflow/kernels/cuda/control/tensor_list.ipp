#pragma once

#include <dflow/base/str_cat.hpp>
#include <dflow/kernels/cuda/bodies/reductions.hpp>
#include <dflow/kernels/cuda/control/tensor_list.hpp>
#include <dflow/kernels/cuda/routines/reductions.hpp>

#include <complex>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace dflow::cuda {

AnyTensor ListElements::zeros(KernelContext& context, int output, const Shape& shape) {
  AnyTensor zeros(context.output_dtype(output), shape, context.output_allocator(output));
  clear_output(context, zeros);
  return zeros;
}

ListElements::Batch::Batch(KernelContext& context) : context_(context), uses_(context) {
  args_.y = context.output(0).raw_data();
}

void ListElements::Batch::add(const dflow::detail::ListPart& part) {
  if (part.count == 0) return;
  if (args_.num_parts == PartsArgs::max_parts) issue();
  const auto i = static_cast<std::size_t>(args_.num_parts++);
  args_.from[i] = part.from == nullptr ? nullptr : part.from->raw_data();
  args_.begins[i] = part.at;
  args_.begins[i + 1] = part.at + part.count;
  if (part.from != nullptr) uses_.add(*part.from, false);
}

void ListElements::Batch::issue() {
  if (args_.num_parts == 0) return;
  const std::int64_t count = args_.begins[args_.num_parts] - args_.begins[0];
  launch(context_, detail::function_of_size<PartsBody>(size_of(context_.output(0).dtype())), grid_for(count), &args_,
         uses_);
  args_.num_parts = 0;
  uses_ = MemoryUses(context_);
}

namespace detail {

/// The kernel that adds elements of a type; complex numbers are two real ones.
inline const KernelFunction& add_function(DType dtype) {
  return *visit_dtype<NumberTypes>(dtype, []<class T>() -> const KernelFunction* {
    if constexpr (std::is_same_v<T, std::complex<float>>) {
      return &kernel_function<AddNBody<float>>();
    } else if constexpr (std::is_same_v<T, std::complex<double>>) {
      return &kernel_function<AddNBody<double>>();
    } else {
      return &kernel_function<AddNBody<T>>();
    }
  });
}

}  // namespace detail

namespace detail {

/// to = the sum of the terms, which may be one of them.
void sum_into(KernelContext& context, std::span<const AnyTensor> terms, AnyTensor& to) {
  const KernelFunction& function = add_function(to.dtype());
  const std::int64_t n = to.num_elements() * (is_complex(to.dtype()) ? 2 : 1);
  if (n == 0) return;
  std::vector<const void*> inputs;
  MemoryUses uses(context);
  for (const AnyTensor& term : terms) {
    inputs.push_back(term.raw_data());
    uses.add(term, false);
  }
  uses.add(to, true);
  AnyTensor wide;
  if (needs_wide_sums(to.dtype(), terms.size())) {
    wide = context.allocate_temporary(DType::float32, to.shape());
    uses.add(wide, true);
  }
  add_terms(context, function, inputs, n, to.raw_data(), static_cast<float*>(wide.raw_data()), uses);
}

}  // namespace detail

void ListElements::add(KernelContext& context, AnyTensor& sum, const AnyTensor& more) {
  AnyTensor to = sum.buffer_is_unique() ? sum : AnyTensor(more.dtype(), more.shape(), *context.device().allocator);
  const AnyTensor terms[] = {std::move(sum), more};
  detail::sum_into(context, terms, to);
  sum = std::move(to);
}

AnyTensor ListElements::sum(KernelContext& context, std::span<const AnyTensor> terms) {
  AnyTensor to(terms.front().dtype(), terms.front().shape(), *context.device().allocator);
  detail::sum_into(context, terms, to);
  return to;
}

}  // namespace dflow::cuda
