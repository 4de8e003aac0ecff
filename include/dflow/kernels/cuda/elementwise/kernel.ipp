#pragma once

#include <dflow/kernels/cuda/elementwise/kernel.hpp>
#include <dflow/kernels/shared/elementwise_output.hpp>

#include <algorithm>
#include <array>

namespace dflow::cuda {

namespace detail {

/// The input is one element for the whole output.
inline bool is_repeated(const BroadcastWalk& walk, int input) {
  for (int d = 0; d < walk.rank; ++d) {
    if (walk.strides[input][d] != 0) return false;
  }
  return true;
}

template <int num_inputs>
void issue_elementwise(const KernelContext& context, const ElementwiseCode& code, const BroadcastWalk& walk,
                       const void* const* elements, AnyTensor& y) {
  CudaStep::Note note;
  if (code.check != nullptr) {
    note = step_of(context).note(
        context, [check = code.check](const ErrorSlot& slot) { return Status::invalid_argument(check(slot)); });
  }
  const auto fill = [&](auto& args) {
    args.n = y.num_elements();
    std::copy_n(elements, num_inputs, args.x);
    args.y = y.raw_data();
    args.errors = note.slot;
    args.kernel = note.kernel;
  };
  std::uint32_t repeated = 0;
  bool is_dense = true;
  for (int i = 0; i < num_inputs; ++i) {
    const bool is_one = is_repeated(walk, i);
    repeated |= std::uint32_t{is_one} << i;
    is_dense = is_dense && (is_one || walk.is_dense(static_cast<std::size_t>(i)));
  }
  if (is_dense) {
    DenseArgs<num_inputs> args;
    fill(args);
    args.repeated = repeated;
    return launch(context, code.dense(), grid_for(args.n), &args, note.slot);
  }
  BroadcastArgs<num_inputs> args;
  fill(args);
  args.rank = walk.rank;
  std::copy_n(walk.extents, walk.rank, args.extents);
  for (int i = 0; i < num_inputs; ++i) std::copy_n(walk.strides[i], walk.rank, args.strides[i]);
  launch(context, code.broadcast(), grid_for(args.n), &args, note.slot);
}

class ElementwiseKernel final : public AnyKernel {
 public:
  explicit ElementwiseKernel(const ElementwiseCode& code) : AnyKernel(KernelTraits{.repeats = true}), code_(code) {}

  void run(KernelContext& context) const override {
    // Shapes first: the output may be in an input's buffer, from where that is gone then.
    std::array<const AnyTensor*, BroadcastWalk::max_inputs> inputs{};
    std::array<const void*, BroadcastWalk::max_inputs> elements{};
    for (int i = 0; i < code_.num_inputs; ++i) {
      inputs[static_cast<std::size_t>(i)] = &context.input(i);
      elements[static_cast<std::size_t>(i)] = context.input(i).raw_data();
    }
    const std::span<const AnyTensor* const> all(inputs.data(), code_.num_inputs);
    const Shape shape = broadcast_input_shapes(context, code_.num_inputs, code_.broadcasts);
    const BroadcastWalk walk(all, shape);
    AnyTensor& y = make_elementwise_output(context, code_.num_inputs, shape);
    if (y.num_elements() == 0) return;
    run_elementwise(context, code_, walk, elements.data(), y);
  }

 private:
  const ElementwiseCode code_;
};

}  // namespace detail

void run_elementwise(const KernelContext& context, const ElementwiseCode& code, const BroadcastWalk& walk,
                     const void* const* elements, AnyTensor& y) {
  switch (code.num_inputs) {
    case 1:
      return detail::issue_elementwise<1>(context, code, walk, elements, y);
    case 2:
      return detail::issue_elementwise<2>(context, code, walk, elements, y);
    case 3:
      return detail::issue_elementwise<3>(context, code, walk, elements, y);
    case 4:
      return detail::issue_elementwise<4>(context, code, walk, elements, y);
    case 5:
      return detail::issue_elementwise<5>(context, code, walk, elements, y);
    default:
      static_assert(BroadcastWalk::max_inputs == 6);
      return detail::issue_elementwise<6>(context, code, walk, elements, y);
  }
}

std::unique_ptr<AnyKernel> make_elementwise_kernel(const ElementwiseCode& code) {
  return std::make_unique<detail::ElementwiseKernel>(code);
}

}  // namespace dflow::cuda
