#pragma once

#include <dflow/kernels/cuda/products/kernel.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>

namespace dflow::cuda {

namespace detail {

/// The largest power of 2, up to 256, that all addresses are multiples of.
inline std::int32_t common_alignment(std::initializer_list<const void*> addresses) {
  std::uintptr_t all = 256;
  for (const void* address : addresses) all |= reinterpret_cast<std::uintptr_t>(address);
  return static_cast<std::int32_t>(all & (~all + 1));
}

/// [rows, columns] row by row is [columns, rows] column by column.
inline ProductMatrix column_major(std::int64_t rows, std::int64_t columns) {
  return {columns, rows, std::max<std::int64_t>(columns, 1), rows * columns};
}

}  // namespace detail

DFLOW_INLINE void run_library_product(KernelContext& context, const RowProduct& product) {
  const AnyTensor& a = context.input(0);
  const AnyTensor& b = context.input(1);
  AnyTensor& y = context.output(0);
  if (y.num_elements() == 0) return;
  CudaState& state = state_of(context);
  DeviceCore& core = state.memory.core();
  if (product.k == 0) {  // a sum of nothing, which is not the library's to compute
    if (product.bias == nullptr) {
      return core.require_ok(core.driver().fill(core.device(), y.raw_data(), 0, y.bytes(), core.compute()),
                             "clearing a product");
    }
    const BiasArgs args{static_cast<const float*>(product.bias->raw_data()), static_cast<float*>(y.raw_data()),
                        y.num_elements(), product.n, product.relu};
    return launch<BiasBody>(context, grid_for(args.count), args);
  }
  // Row by row y = a b is column by column y' = b' a'.
  ProductCall call;
  call.dtype = y.dtype();
  call.allows_tf32 = state.allows_tf32 && y.dtype() == DType::float32;
  call.op_a = product.b;
  call.op_b = product.a;
  call.a = product.b == ProductOperand::plain ? detail::column_major(product.k, product.n)
                                              : detail::column_major(product.n, product.k);
  call.b = product.a == ProductOperand::plain ? detail::column_major(product.m, product.k)
                                              : detail::column_major(product.k, product.m);
  call.d = detail::column_major(product.m, product.n);
  if (product.bias != nullptr) call.epilogue = product.relu ? ProductEpilogue::bias_relu : ProductEpilogue::bias;
  ProductOperands operands;
  operands.bias = product.bias == nullptr ? nullptr : product.bias->raw_data();
  const std::size_t element = size_of(y.dtype());
  constexpr std::int64_t most = std::int64_t{1} << 30;
  for (std::int64_t first = 0; first < product.batch; first += most) {
    call.batch = static_cast<std::int32_t>(std::min(most, product.batch - first));
    const auto at = [&](const void* data, const ProductMatrix& matrix) {
      return static_cast<const std::byte*>(data) + static_cast<std::size_t>(first * matrix.batch_stride) * element;
    };
    operands.a = at(b.raw_data(), call.a);
    operands.b = at(a.raw_data(), call.b);
    operands.d = const_cast<std::byte*>(at(y.raw_data(), call.d));
    call.alignment_bytes = detail::common_alignment({operands.a, operands.b, operands.d, operands.bias});
    const auto plan = state.products.find(call);
    MemoryUses uses(context);
    AnyTensor workspace;
    operands.workspace = nullptr;
    operands.workspace_bytes = plan->workspace_bytes;
    if (plan->workspace_bytes != 0) {
      workspace = context.allocate_temporary(DType::uint8, {static_cast<std::int64_t>(plan->workspace_bytes)});
      uses.add(workspace, true);
      operands.workspace = workspace.raw_data();
    }
    core.require_ok(
        core.driver().products().run_product(core.device(), plan->handle(), operands, uses.all(), core.compute()),
        "a product");
  }
}

DFLOW_INLINE void run_grid_product(KernelContext& context, const RowProduct& product, const KernelFunction& function) {
  AnyTensor& y = context.output(0);
  if (y.num_elements() == 0) return;
  constexpr std::int64_t tile = ProductBody<std::int32_t>::tile, most_blocks = 1 << 16;
  const ProductArgs args{context.input(0).raw_data(),
                         context.input(1).raw_data(),
                         y.raw_data(),
                         product.batch,
                         product.m,
                         product.n,
                         product.k,
                         product.a != ProductOperand::plain,
                         product.b != ProductOperand::plain};
  const std::int64_t tiles = product.batch * ((product.m + tile - 1) / tile) * ((product.n + tile - 1) / tile);
  launch(context, function,
         {static_cast<std::uint32_t>(std::min(tiles, most_blocks)), ProductBody<std::int32_t>::threads}, &args);
}

}  // namespace dflow::cuda
