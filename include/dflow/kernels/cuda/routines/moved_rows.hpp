#pragma once

#include <dflow/kernels/cuda/bodies/moves.hpp>
#include <dflow/kernels/cuda/routines/copies.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace dflow::cuda::detail {

// The host decides which row goes where, and gives the GPU lists of the rows.

/// Numbers that kernels of the compute stream read.
class UploadedNumbers {
 public:
  /// Room for this many, still on the host.
  UploadedNumbers(const KernelContext& context, std::int64_t count)
      : memory_(state_of(context).memory), numbers_(DType::int64, {count}, memory_.pinned()) {}

  std::span<std::int64_t> on_host() {
    return {static_cast<std::int64_t*>(numbers_.raw_data()), static_cast<std::size_t>(numbers_.num_elements())};
  }
  /// Issues their copy. Throws the driver's error.
  void upload() {
    Status status;
    memory_.copy_in_async(numbers_, [&](const Status& ended, AnyTensor copy) {
      status = ended;
      numbers_ = std::move(copy);
    });
    if (!status.ok()) throw_error(status);
  }
  const AnyTensor& tensor() const { return numbers_; }
  const std::int64_t* from(std::int64_t first) const {
    return static_cast<const std::int64_t*>(std::as_const(numbers_).raw_data()) + first;
  }

 private:
  CudaMemory& memory_;
  AnyTensor numbers_;
};

/// Moves rows of x to y as `args` says of their numbers.
inline void move_rows(const KernelContext& context, const AnyTensor& x, AnyTensor& y, MoveRowsArgs args,
                      const UploadedNumbers& numbers) {
  args.x = x.raw_data();
  args.y = y.raw_data();
  const std::array<const AnyTensor*, 1> temporaries{&numbers.tensor()};
  launch(context, function_of_size<MoveRowsBody>(size_of(y.dtype())), grid_for(args.count * args.row), &args, nullptr,
         temporaries);
}

}  // namespace dflow::cuda::detail
