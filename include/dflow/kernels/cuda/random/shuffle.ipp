#pragma once

#include <dflow/kernels/cuda/random/shuffle.hpp>
#include <dflow/kernels/cuda/routines/moved_rows.hpp>
#include <dflow/kernels/state/random_order.hpp>

#include <cstdint>
#include <limits>

namespace dflow::cuda {

void shuffle_rows(KernelContext& context, const dflow::detail::NodeStream& stream) {
  const AnyTensor& x = context.input(0);
  if (x.rank() == 0) context.fail("a scalar has no rows");
  const std::int64_t rows = x.dim(0), row = x.shape().num_elements(1, x.rank());
  if (rows > std::numeric_limits<std::uint32_t>::max()) context.fail("there are more rows than a 32-bit word numbers");
  if (rows <= 1 || row == 0) return context.set_output(0, x);
  detail::UploadedNumbers order(context, rows);
  dflow::detail::make_random_order(stream, order.on_host());
  order.upload();
  AnyTensor& y = context.allocate_output(0, x.shape());
  detail::move_rows(context, x, y, {.count = rows, .row = row, .from = order.from(0)}, order);
}

}  // namespace dflow::cuda
