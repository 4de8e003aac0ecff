#pragma once

#include <dflow/kernels/cpu/routines/state/optimizers.hpp>
#include <dflow/kernels/cpu/state/variable.hpp>
#include <dflow/ops/state/update.hpp>

#include <array>
#include <span>

namespace dflow {

namespace detail {

/// The variables of an update, held while it is made, and their arguments of a routine.
class HeldUpdate {
 public:
  HeldUpdate(KernelContext& context, const UpdateInputs& inputs, bool use_nesterov, double element_ns);

  const AnyTensor& variable() const { return update_.value(0); }
  /// Nothing may fail after it.
  const cpu::UpdateArguments& write(const AnyTensor& gradient);

 private:
  static VariableUpdate hold(const KernelContext& context, const UpdateInputs& inputs);

  KernelContext& context_;
  const UpdateInputs& inputs_;
  VariableUpdate update_;
  cpu::UpdateArguments arguments_;
};

/// The rows of a sparse gradient; rows of equal index are summed.
struct SummedRows {
  AnyTensor indices, rows;
  std::int64_t count = 0;
  std::int64_t row_size = 0;

  SummedRows(KernelContext& context, const AnyTensor& variable, const AnyTensor& gradient, const AnyTensor& given);
};

inline double update_cost_ns(const KernelInit& init, int gradient, double element_ns) {
  return 300 + estimated_elements(init.inputs[static_cast<std::size_t>(gradient)]) * element_ns;
}

/// Kernel of an update by `Rule`. `tenths_ns`: tenths of a nanosecond that an element takes, roughly.
template <class O, template <class, class> class Rule, int tenths_ns = 10>
struct UpdateKernel {
  typename O::Attrs attrs;

  double cost_ns(const KernelInit& init) const {
    return update_cost_ns(init, O::update.gradient, O::update.is_sparse ? 2 : 0.1 * tenths_ns);
  }

  void operator()(KernelContext& context) const {
    static_assert(O::update.num_variables == Rule<float, void>::num_variables);
    static_assert(O::update.num_factors() == Rule<float, void>::num_factors);
    HeldUpdate update(context, O::update, uses_nesterov<O>(attrs), 0.1 * tenths_ns);
    const AnyTensor& gradient = context.input(O::update.gradient);
    if constexpr (O::update.is_sparse) {
      const SummedRows sums(context, update.variable(), gradient, context.input(O::update.gradient + 1));
      const cpu::UpdateArguments& arguments = update.write(sums.rows);
      visit_dtype<IndexTypes>(sums.indices.dtype(), [&]<class Index>() {
        cpu::apply_update_rows<Rule>(context.pool(), sums.count, sums.row_size, arguments,
                                     static_cast<const Index*>(sums.indices.raw_data()), cpu_options(context));
      });
    } else {
      require_same_shape(context, update.variable(), gradient, "gradient");
      cpu::apply_update<Rule>(context.pool(), gradient.num_elements(), update.write(gradient), cpu_options(context));
    }
  }
};

}  // namespace detail

template <>
struct Kernel<ApplyGradientDescent, Cpu> : detail::UpdateKernel<ApplyGradientDescent, detail::GradientDescentRule, 3> {
};
template <>
struct Kernel<SparseApplyGradientDescent, Cpu>
    : detail::UpdateKernel<SparseApplyGradientDescent, detail::GradientDescentRule, 3> {};
template <>
struct Kernel<ApplyMomentum, Cpu> : detail::UpdateKernel<ApplyMomentum, detail::MomentumRule, 5> {};
template <>
struct Kernel<SparseApplyMomentum, Cpu> : detail::UpdateKernel<SparseApplyMomentum, detail::MomentumRule, 5> {};
template <>
struct Kernel<ApplyAdam, Cpu> : detail::UpdateKernel<ApplyAdam, detail::AdamRule> {};
template <>
struct Kernel<SparseApplyAdam, Cpu> : detail::UpdateKernel<SparseApplyAdam, detail::AdamRule> {};
template <>
struct Kernel<ApplyAdagrad, Cpu> : detail::UpdateKernel<ApplyAdagrad, detail::AdagradRule> {};
template <>
struct Kernel<SparseApplyAdagrad, Cpu> : detail::UpdateKernel<SparseApplyAdagrad, detail::AdagradRule> {};
template <>
struct Kernel<ApplyAdadelta, Cpu> : detail::UpdateKernel<ApplyAdadelta, detail::AdadeltaRule> {};
template <>
struct Kernel<SparseApplyAdadelta, Cpu> : detail::UpdateKernel<SparseApplyAdadelta, detail::AdadeltaRule> {};
template <>
struct Kernel<ApplyFtrl, Cpu> : detail::UpdateKernel<ApplyFtrl, detail::FtrlRule> {};
template <>
struct Kernel<SparseApplyFtrl, Cpu> : detail::UpdateKernel<SparseApplyFtrl, detail::FtrlRule> {};
template <>
struct Kernel<ApplyRMSProp, Cpu> : detail::UpdateKernel<ApplyRMSProp, detail::RmsPropRule> {};
template <>
struct Kernel<SparseApplyRMSProp, Cpu> : detail::UpdateKernel<SparseApplyRMSProp, detail::RmsPropRule> {};
template <>
struct Kernel<ApplyCenteredRMSProp, Cpu> : detail::UpdateKernel<ApplyCenteredRMSProp, detail::CenteredRmsPropRule> {};
template <>
struct Kernel<SparseApplyCenteredRMSProp, Cpu>
    : detail::UpdateKernel<SparseApplyCenteredRMSProp, detail::CenteredRmsPropRule> {};

}  // namespace dflow
