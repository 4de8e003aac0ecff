#pragma once

#include <dflow/kernels/cpu/array/element_copy.hpp>
#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/kernels/cpu/routines/array/rows.hpp>
#include <dflow/kernels/state/random_order.hpp>
#include <dflow/ops/random/shuffle.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

namespace dflow {

namespace detail {

/// Moves rows of any element type.
class RandomShuffleKernel {
 public:
  explicit RandomShuffleKernel(const KernelInit& init)
      : stream_(init, init.node.attrs_as<RandomShuffle>().seed, init.node.attrs_as<RandomShuffle>().seed2) {}

  double cost_ns(const KernelInit& init) const { return 300 + move_cost_ns(init); }

  void operator()(KernelContext& context) const {
    const AnyTensor& x = context.input(0);
    if (x.rank() == 0) context.fail("a scalar has no rows");
    const std::int64_t rows = x.dim(0), row = x.shape().num_elements(1, x.rank());
    if (rows > std::numeric_limits<std::uint32_t>::max())
      context.fail("there are more rows than a 32-bit word numbers");
    if (rows <= 1 || row == 0) return context.set_output(0, x);
    AnyTensor order = context.allocate_temporary(DType::int64, {rows});
    auto* const from = static_cast<std::int64_t*>(order.raw_data());
    make_random_order(stream_, {from, static_cast<std::size_t>(rows)});
    AnyTensor& y = context.allocate_output(0, x.shape());
    if (x.dtype() == DType::string) {
      for (std::int64_t i = 0; i < rows; ++i) {
        copy_elements(DType::string, row, element(x, from[i] * row), element(y, i * row));
      }
      return;
    }
    static_cast<void>(cpu::gather_rows(context.pool(), 1, rows, rows,
                                       static_cast<std::size_t>(row) * size_of(x.dtype()), x.raw_data(), from,
                                       y.raw_data(), cpu_options(context)));
  }

 private:
  NodeStream stream_;
};

}  // namespace detail

template <>
struct Kernel<RandomShuffle, Cpu> : detail::RandomShuffleKernel {
  using RandomShuffleKernel::RandomShuffleKernel;
};

}  // namespace dflow
