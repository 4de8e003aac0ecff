#pragma once

#include <dflow/core/sum_type.hpp>
#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/kernels/cpu/routines/array/rows.hpp>
#include <dflow/kernels/state/handle_kernel.hpp>
#include <dflow/ops/data_flow/accumulator.hpp>
#include <dflow/state/accumulator_state.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace dflow {

namespace detail {

// The parts of the accumulators' kernels that do not depend on the element type.

/// The accumulator behind input 0. Fails if it is of the other kind or has other elements.
AccumulatorState& accumulator_input(const KernelContext& context, bool is_sparse);
/// Input `i` for an accumulator to keep: a copy where somebody else may write to it.
AnyTensor kept_input(const KernelContext& context, int i);
/// Fails unless gradient input 2 has the accumulator's shape.
AccumulatedGradient dense_gradient(const KernelContext& context, const AccumulatorState& state, std::int64_t rank);
/// Fails unless inputs 2 and 3 are rows of the accumulator's shape.
AccumulatedGradient sparse_gradient(const KernelContext& context, const AccumulatorState& state, std::int64_t rank);
/// Takes gradients as inputs 1 and 2 ask.
TakenGradients take_ranks(const KernelContext& context, bool is_sparse);

template <class O, bool is_sparse>
class AccumulatorKernel : public HandleKernel<AccumulatorKernel<O, is_sparse>, O, AccumulatorState> {
 public:
  explicit AccumulatorKernel(const KernelInit& init)
      : HandleKernel<AccumulatorKernel, O, AccumulatorState>(init),
        dtype_(init.node.types[0]),
        shape_(init.node.attrs_as<O>().shape),
        is_mean_(init.node.attrs_as<O>().reduction_type == "MEAN") {}
  std::shared_ptr<AccumulatorState> make(const std::string& name) const {
    return std::make_shared<AccumulatorState>(name, dtype_, shape_, AccumulatorState::Kind{is_sparse, is_mean_});
  }
  bool is_same_kind(const AccumulatorState& state) const {
    return state.dtype() == dtype_ && state.shape().is_compatible_with(shape_) && state.kind().is_sparse == is_sparse &&
           state.kind().is_mean == is_mean_;
  }

 private:
  DType dtype_;
  PartialShape shape_;
  bool is_mean_;
};

/// Calls `use` with the first element of values of type T, or of a sum of such values, of type SumType<T>.
template <class T, class Use>
void with_values(const AnyTensor& values, const Use& use) {
  values.dtype() == dtype_of<T> ? use(Tensor<T>::of(values).data()) : use(Tensor<SumType<T>>::of(values).data());
}

/// to[i] = (from[0][i] + from[1][i] + ...) / divisor, added in this order; blocks are read before they are written, so
/// `to` may be one of them. From: values of type T, or sums.
template <class T, class To>
void sum_arrays(ThreadPool& pool, const std::vector<const AnyTensor*>& from, std::int64_t divisor, To* to) {
  using Sum = SumType<T>;
  constexpr std::int64_t block = 1024;
  const double cost_ns = 0.1 * sizeof(T) * static_cast<double>(from.size());
  pool.parallel_for(from.front()->num_elements(), cost_ns, [&](std::int64_t begin, std::int64_t end) {
    std::array<Sum, block> sums;
    for (std::int64_t first = begin; first < end; first += block) {
      const auto size = static_cast<std::size_t>(std::min(block, end - first));
      for (std::size_t k = 0; k < from.size(); ++k) {
        with_values<T>(*from[k], [&](const auto* x) {
          const auto* const terms = x + first;
          for (std::size_t i = 0; k == 0 && i < size; ++i) sums[i] = static_cast<Sum>(terms[i]);
          for (std::size_t i = 0; k != 0 && i < size; ++i) sums[i] += static_cast<Sum>(terms[i]);
        });
      }
      for (std::size_t i = 0; i < size; ++i)
        to[first + static_cast<std::int64_t>(i)] = static_cast<To>(sums[i] / static_cast<Sum>(divisor));
    }
  });
}

/// Sets output 0 to the mean or sum of the taken gradients.
template <class T>
void set_dense_output(KernelContext& context, const AccumulatorState& state, const TakenGradients& taken) {
  const AnyTensor& first = taken.gradients.front().values;
  if (taken.count == 1 && first.dtype() == dtype_of<T>) return context.set_output(0, first);
  std::vector<const AnyTensor*> from;
  from.reserve(taken.gradients.size());
  for (const AccumulatedGradient& gradient : taken.gradients) {
    if (gradient.values.shape() != first.shape()) {
      context.fail(str_cat("gradients of shapes ", first.shape().to_string(), " and ",
                           gradient.values.shape().to_string(), " meet in ", state.debug_string()));
    }
    from.push_back(&gradient.values);
  }
  T* to = context.allocate_output<T>(0, first.shape()).data();
  sum_arrays<T>(context.pool(), from, state.kind().is_mean ? taken.count : 1, to);
}

inline Shape row_shape(const AccumulatedGradient& gradient) {
  const Shape& shape = gradient.values.shape();
  return shape.subshape(1, shape.rank());
}

template <class T, class Index>
void set_rows_output(KernelContext& context, const AccumulatorState& state, const TakenGradients& taken) {
  const Shape row = row_shape(taken.gradients.front());
  std::int64_t rows = 0;
  for (const AccumulatedGradient& gradient : taken.gradients) {
    if (gradient.indices.dtype() != dtype_of<Index> || row_shape(gradient) != row) {
      context.fail(str_cat("rows of different shapes or types of indices meet in ", state.debug_string()));
    }
    rows += gradient.indices.num_elements();
  }
  const std::int64_t divisor = state.kind().is_mean ? taken.count : 1;
  if (taken.gradients.size() == 1 && divisor == 1 && taken.gradients[0].values.dtype() == dtype_of<T>) {
    context.set_output(0, taken.gradients[0].indices);
    return context.set_output(1, taken.gradients[0].values);
  }
  Index* indices = context.allocate_output<Index>(0, {rows}).data();
  T* values = context.allocate_output<T>(1, Shape({rows}).concatenated(row)).data();
  for (const AccumulatedGradient& gradient : taken.gradients) {
    indices = std::copy_n(Tensor<Index>::of(gradient.indices).data(), gradient.indices.num_elements(), indices);
    sum_arrays<T>(context.pool(), {&gradient.values}, divisor, values);
    values += gradient.values.num_elements();
  }
}

/// Sets outputs 0 and 1 to the rows of the taken gradients.
template <class T>
void set_sparse_output(KernelContext& context, const AccumulatorState& state, const TakenGradients& taken) {
  visit_dtype<IndexTypes>(context.output_dtype(0),
                          [&]<class Index>() { set_rows_output<T, Index>(context, state, taken); });
}

/// Adds the last gradient to the first one, which becomes a sum of type SumType<T>.
template <class T>
void add_dense(KernelContext& context, std::vector<AccumulatedGradient>& gradients) {
  if (gradients.size() < 2) return;
  AnyTensor &sum = gradients[0].values, &more = gradients[1].values;
  if (sum.shape() != more.shape()) {
    context.fail(
        str_cat("a gradient of shape ", more.shape().to_string(), " meets others of shape ", sum.shape().to_string()));
  }
  constexpr DType dtype = dtype_of<SumType<T>>;
  const bool is_own = sum.dtype() == dtype && sum.buffer_is_unique();
  AnyTensor to = is_own ? sum : AnyTensor(dtype, sum.shape(), *context.device().allocator);
  sum_arrays<T>(context.pool(), {&sum, &more}, 1, Tensor<SumType<T>>::of(to).data());
  sum = std::move(to);
  gradients.pop_back();
}

/// Merges the gradients into one, of type SumType<T>, when there are more new rows than old ones. Each row is then
/// moved a bounded number of times, and at most twice the possible number of rows is kept.
template <class T, class Index>
void add_sparse(KernelContext& context, std::vector<AccumulatedGradient>& gradients, std::int64_t& new_rows) {
  const AccumulatedGradient &front = gradients.front(), &back = gradients.back();
  if (back.indices.dtype() != front.indices.dtype() || row_shape(back) != row_shape(front)) {
    context.fail(str_cat("rows of shape ", row_shape(back).to_string(), " at indices of ",
                         dtype_name(back.indices.dtype()), " meet others of shape ", row_shape(front).to_string(),
                         " at indices of ", dtype_name(front.indices.dtype())));
  }
  constexpr std::int64_t least_rows = 1024;
  const std::int64_t old_rows = gradients[0].indices.num_elements();
  if (new_rows <= std::max(old_rows, least_rows)) return;
  const std::int64_t rows = old_rows + new_rows;
  const Shape row = row_shape(front);
  const std::int64_t row_size = row.num_elements();
  using Sum = SumType<T>;
  Allocator& allocator = *context.device().allocator;
  std::vector<Index> indices, unique(static_cast<std::size_t>(rows));
  indices.reserve(static_cast<std::size_t>(rows));
  AnyTensor values(dtype_of<Sum>, {rows, row_size}, allocator), summed(dtype_of<Sum>, {rows, row_size}, allocator);
  Sum* to = Tensor<Sum>::of(values).data();
  for (const AccumulatedGradient& gradient : gradients) {
    const Tensor<Index>& held = Tensor<Index>::of(gradient.indices);
    indices.insert(indices.end(), held.begin(), held.end());
    with_values<T>(gradient.values, [&](const auto* from) {
      const std::int64_t n = gradient.values.num_elements();
      to = std::transform(from, from + n, to, [](auto value) { return static_cast<Sum>(value); });
    });
  }
  const std::int64_t num_unique =
      cpu::sum_duplicate_rows(context.pool(), rows, row_size, indices.data(), Tensor<Sum>::of(values).data(),
                              unique.data(), Tensor<Sum>::of(summed).data(), cpu_options(context));
  const Shape shape = Shape({num_unique}).concatenated(row);
  AccumulatedGradient sum;
  sum.indices = AnyTensor(dtype_of<Index>, {num_unique}, allocator);
  sum.values = AnyTensor(dtype_of<Sum>, shape, allocator);
  std::copy_n(unique.data(), num_unique, Tensor<Index>::of(sum.indices).data());
  std::copy_n(Tensor<Sum>::of(summed).data(), shape.num_elements(), Tensor<Sum>::of(sum.values).data());
  gradients.clear();
  gradients.push_back(std::move(sum));
  new_rows = 0;
}

/// `set(taken)` sets the outputs, when there is something to take.
template <class Set>
void take_gradients(KernelContext& context, bool is_sparse, AsyncKernel::Done done, const Set& set) {
  AccumulatorState& state = accumulator_input(context, is_sparse);
  state.take_async(context.scalar_input<std::int32_t>(1), context.step().cancellation,
                   [&context, &state, set, done = std::move(done)](Status status, const TakenGradients& taken) mutable {
                     try {
                       if (status.ok()) set(context, state, taken);
                     } catch (...) {
                       status = status_of_current_exception();
                     }
                     done(std::move(status));
                   });
}

}  // namespace detail

template <>
struct Kernel<ConditionalAccumulator, Cpu> : detail::AccumulatorKernel<ConditionalAccumulator, false> {
  using AccumulatorKernel::AccumulatorKernel;
};
template <>
struct Kernel<SparseConditionalAccumulator, Cpu> : detail::AccumulatorKernel<SparseConditionalAccumulator, true> {
  using AccumulatorKernel::AccumulatorKernel;
};

template <class T>
struct Kernel<AccumulatorApplyGradient, Cpu, T> {
  ApplyGradientAttrs attrs;
  void operator()(KernelContext& context) const {
    AccumulatorState& state = detail::accumulator_input(context, false);
    state.apply(
        detail::dense_gradient(context, state, attrs.rank),
        [&](std::vector<AccumulatedGradient>& gradients, std::int64_t&) { detail::add_dense<T>(context, gradients); });
  }
};
template <class T>
struct Kernel<SparseAccumulatorApplyGradient, Cpu, T> {
  ApplyGradientAttrs attrs;
  void operator()(KernelContext& context) const {
    visit_dtype<IndexTypes>(context.node().types[1], [&]<class Index>() { apply<Index>(context); });
  }

 private:
  template <class Index>
  void apply(KernelContext& context) const {
    AccumulatorState& state = detail::accumulator_input(context, true);
    if (state.shape().has_rank() && state.shape().dim(0) != dynamic) {
      const Tensor<Index>& indices = context.input<Index>(2);
      const std::int64_t limit = state.shape().dim(0);
      const std::int64_t bad = cpu::find_bad_index(indices.num_elements(), indices.data(), limit);
      if (bad >= 0) {
        context.fail(str_cat("indices[", bad, "] = ", indices.data()[bad], " is outside [0, ", limit, ")"));
      }
    }
    state.apply(detail::sparse_gradient(context, state, attrs.rank),
                [&](std::vector<AccumulatedGradient>& gradients, std::int64_t& new_rows) {
                  detail::add_sparse<T, Index>(context, gradients, new_rows);
                });
  }
};
template <class T>
struct Kernel<AccumulatorTakeGradient, Cpu, T> {
  void run_async(KernelContext& context, AsyncKernel::Done done) const {
    detail::take_gradients(context, false, std::move(done), &detail::set_dense_output<T>);
  }
};
template <class T>
struct Kernel<SparseAccumulatorTakeGradient, Cpu, T> {
  void run_async(KernelContext& context, AsyncKernel::Done done) const {
    detail::take_gradients(context, true, std::move(done), &detail::set_sparse_output<T>);
  }
};
template <class T>
struct Kernel<AccumulatorTakeRanks, Cpu, T> {
  void operator()(KernelContext& context) const {
    const TakenGradients taken = detail::take_ranks(context, false);
    detail::set_dense_output<T>(context, detail::accumulator_input(context, false), taken);
  }
};
template <class T>
struct Kernel<SparseAccumulatorTakeRanks, Cpu, T> {
  void operator()(KernelContext& context) const {
    const TakenGradients taken = detail::take_ranks(context, true);
    detail::set_sparse_output<T>(context, detail::accumulator_input(context, true), taken);
  }
};
template <>
struct Kernel<AccumulatorSetGlobalStep, Cpu> {
  static constexpr bool splits = false;
  AccumulatorSetGlobalStep::Attrs attrs;
  void operator()(KernelContext& context) const {
    context.resource<AccumulatorState>(0).set_global_step(context.scalar_input<std::int64_t>(1), attrs.drops_waiting);
  }
};
template <>
struct Kernel<AccumulatorNumAccumulated, Cpu> {
  static constexpr bool splits = false;
  void operator()(KernelContext& context) const {
    const std::int64_t count = context.resource<AccumulatorState>(0).num_accumulated();
    *context.allocate_output<std::int32_t>(0, {}).data() = static_cast<std::int32_t>(count);
  }
};

}  // namespace dflow
