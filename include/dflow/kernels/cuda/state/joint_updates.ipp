#pragma once

#include <dflow/base/threads/no_waiting.hpp>
#include <dflow/graph/graph_store.hpp>
#include <dflow/kernels/cuda/state/joint_updates.hpp>
#include <dflow/kernels/state/variable_kernel.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace dflow::cuda {

namespace detail {

/// Adds the node to an error that `run` throws.
template <class F>
void at_member(const Node& node, F&& run) {
  try {
    run();
  } catch (const dflow::detail::WouldWait&) {
    throw;
  } catch (...) {
    throw_error(
        status_of_current_exception().with_node(node.op->name, without_copy(node.name)).with_location(node.where));
  }
}

/// As `require_scalar`, of an input that the node numbers so.
inline void require_factor(int input, const Shape& shape) {
  if (shape.rank() == 0) return;
  throw_error(Status::invalid_argument(str_cat("input ", input, " must be a scalar, got shape ", shape.to_string())));
}

/// A launch: updates of different variables.
template <int num_variables>
class UpdateTable {
 public:
  using Args = JointUpdateArgs<num_variables>;
  using Variables = std::array<const AnyTensor*, static_cast<std::size_t>(num_variables)>;

  /// `first` is the first input of a member.
  UpdateTable(const KernelContext& context, const VariableUpdateCall& call, int first, const KernelFunction& function)
      : context_(context), call_(call), first_(first), function_(function) {
    args_.errors = step_of(context).noted();
    args_.use_nesterov = call.use_nesterov;
    for (int i = 0; i < call.inputs.num_factors(); ++i) {
      args_.factors[i] = context.input(first + call.inputs.factor(i)).raw_data();
    }
    begin();
  }

  /// If there is no room, or the launch already writes one of these variables, the collected updates are launched
  /// first.
  void add(const AnyTensor& gradient, const Variables& variables, bool may_be_there) {
    if (args_.count == Args::max_updates || (may_be_there && writes(variables))) flush();
    void* data[num_variables];
    for (std::size_t v = 0; v < variables.size(); ++v) {
      data[v] = const_cast<void*>(variables[v]->raw_data());
      uses_.add(*variables[v], true);
      if (may_be_there) written_.push_back(data[v]);
    }
    uses_.add(gradient, false);
    args_.add(gradient.num_elements(), gradient.raw_data(), data);
  }

  void flush() {
    if (args_.count == 0) return;
    constexpr std::uint32_t most_blocks = 1u << 16;
    launch(context_, function_, {std::min(args_.num_chunks(), most_blocks), 256}, &args_, uses_);
    begin();
  }

 private:
  void begin() {
    args_.count = 0;
    written_.clear();
    uses_ = MemoryUses();
    for (int i = 0; i < call_.inputs.num_factors(); ++i) {
      uses_.add(context_.input(first_ + call_.inputs.factor(i)), false);
    }
    if (args_.errors != nullptr) uses_.add(args_.errors, sizeof(ErrorSlot), true);
  }
  bool writes(const Variables& variables) const {
    return std::any_of(variables.begin(), variables.end(), [&](const AnyTensor* variable) {
      return std::find(written_.begin(), written_.end(), variable->raw_data()) != written_.end();
    });
  }

  const KernelContext& context_;
  const VariableUpdateCall& call_;
  const int first_;
  const KernelFunction& function_;
  Args args_;
  MemoryUses uses_;
  std::vector<const void*> written_;
};

}  // namespace detail

std::optional<std::int64_t> held_gradient_bytes(const KernelInit& init) {
  constexpr std::int64_t most = std::int64_t{4} << 20;
  // A handle has the shape of its variable's value. The gradient's shape may lead to that shape only when the step
  // runs.
  const std::optional<std::int64_t> elements = init.inputs[0].shape.num_elements();
  if (!elements) return std::nullopt;
  const std::int64_t size = static_cast<std::int64_t>(size_of(init.node.types[0]));
  return *elements > most / size ? std::nullopt : std::optional(*elements * size);
}

JointUpdate::JointUpdate(std::span<const KernelInit> members, const VariableUpdateCall& call,
                         const KernelFunction& function)
    : AnyKernel(KernelTraits{.sees_dead_inputs = true}), call_(call), function_(function) {
  for (const KernelInit& member : members) members_.push_back(&member.node);
}

void JointUpdate::run(KernelContext& context) const {
  switch (call_.inputs.num_variables) {
    case 1:
      return run_with<1>(context);
    case 2:
      return run_with<2>(context);
    default:
      return run_with<3>(context);
  }
}

template <int num_variables>
void JointUpdate::run_with(KernelContext& context) const {
  constexpr auto each = static_cast<std::size_t>(num_variables);
  const int num_inputs = context.num_inputs() / static_cast<int>(members_.size());
  const DType dtype = members_.front()->types[0];

  struct Member {
    const Node* node;
    int first;  ///< of its inputs
  };
  std::vector<Member> members;
  for (std::size_t m = 0; m < members_.size(); ++m) {
    const int first = static_cast<int>(m) * num_inputs;
    bool is_dead = false;
    for (int i = 0; i < num_inputs; ++i) is_dead = is_dead || context.is_input_dead(first + i);
    if (!is_dead) members.push_back({members_[m], first});
  }
  if (members.empty()) return;
  const auto gradient_of = [&](std::size_t m) -> const AnyTensor& {
    return context.input(members[m].first + call_.inputs.gradient);
  };
  const auto for_each_member = [&](auto&& see) {
    for (std::size_t m = 0; m < members.size(); ++m) detail::at_member(*members[m].node, [&] { see(m); });
  };

  std::vector<VariableState*> states(members.size() * each);
  for_each_member([&](std::size_t m) {
    for (int v = 0; v < num_variables; ++v) {
      states[m * each + static_cast<std::size_t>(v)] =
          &dflow::detail::variable_input(context, members[m].first + v, dtype);
    }
  });
  VariableUpdate update{std::span<VariableState* const>(states)};
  for_each_member([&](std::size_t m) {
    const auto first = states.begin() + static_cast<std::ptrdiff_t>(m * each);
    for (std::size_t v = 0; v < each; ++v) {
      if (std::count(first, first + num_variables, first[static_cast<std::ptrdiff_t>(v)]) > 1) {
        context.fail("one variable is given twice to the same update");
      }
      update.require_value(m * each + v);
    }
    const AnyTensor& value = update.value(m * each);
    dflow::detail::require_same_shape(context, value, gradient_of(m),
                                      call_.inputs.num_factors() == 0 ? "value" : "gradient");
    for (std::size_t v = 1; v < each; ++v) {
      dflow::detail::require_same_shape(context, value, update.value(m * each + v), "slot");
    }
    if (m > 0) return;  // the factors are the same
    for (int i = 0; i < call_.inputs.num_factors(); ++i) {
      const int input = call_.inputs.factor(i);
      detail::require_factor(input, context.input(members[m].first + input).shape());
    }
  });

  // All memory is there before anything is written.
  std::vector<const AnyTensor*> written(states.size());
  for_each_member([&](std::size_t m) {
    if (gradient_of(m).num_elements() == 0) return;
    for (std::size_t v = 0; v < each; ++v) {
      written[m * each + v] =
          &update.writable(m * each + v, [&](const AnyTensor& old) { return copy_of(context, old); });
    }
  });
  detail::UpdateTable<num_variables> table(context, call_, members.front().first, function_);
  for (std::size_t m = 0; m < members.size(); ++m) {
    if (gradient_of(m).num_elements() == 0) continue;
    typename detail::UpdateTable<num_variables>::Variables variables;
    std::copy_n(written.begin() + static_cast<std::ptrdiff_t>(m * each), each, variables.begin());
    table.add(gradient_of(m), variables, update.has_repeated());
  }
  table.flush();
}

}  // namespace dflow::cuda
