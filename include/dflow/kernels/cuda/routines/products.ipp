#pragma once

#include <dflow/kernels/cuda/routines/products.hpp>

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

void run_library_product(KernelContext& context, const RowProduct& product, const RowOperands& operands,
                         std::span<const AnyTensor* const> temporaries) {
  const std::int64_t elements = product.batch * product.m * product.n;
  if (elements == 0) return;
  CudaState& state = state_of(context);
  DeviceCore& core = state.memory.core();
  const std::size_t element = size_of(operands.dtype), result = size_of(operands.result);
  if (product.k == 0) {  // a sum of nothing, which is not the library's to compute
    if (product.bias == nullptr) {
      if (product.accumulates) return;
      return core.require_ok(
          core.driver().fill(core.device(), operands.y, 0, static_cast<std::size_t>(elements) * result, core.compute()),
          "clearing a product");
    }
    const BiasArgs args{static_cast<const float*>(product.bias->raw_data()),
                        static_cast<float*>(operands.y),
                        elements,
                        product.n,
                        product.relu,
                        false};
    return launch<BiasBody>(context, grid_for(args.count), args, nullptr, temporaries);
  }
  // Row by row y = a b is column by column y' = b' a'.
  ProductCall call;
  call.dtype = operands.dtype;
  call.result = operands.result;
  call.allows_tf32 = state.allows_tf32 && operands.dtype == DType::float32;
  call.op_a = product.b;
  call.op_b = product.a;
  call.a = product.b == ProductOperand::plain ? detail::column_major(product.k, product.n)
                                              : detail::column_major(product.n, product.k);
  call.b = product.a == ProductOperand::plain ? detail::column_major(product.m, product.k)
                                              : detail::column_major(product.k, product.m);
  call.d = detail::column_major(product.m, product.n);
  call.accumulates = product.accumulates;
  if (product.bias != nullptr) call.epilogue = product.relu ? ProductEpilogue::bias_relu : ProductEpilogue::bias;
  ProductOperands part;
  part.bias = product.bias == nullptr ? nullptr : product.bias->raw_data();
  constexpr std::int64_t most = std::int64_t{1} << 30;
  for (std::int64_t first = 0; first < product.batch; first += most) {
    call.batch = static_cast<std::int32_t>(std::min(most, product.batch - first));
    const auto at = [&](const void* data, const ProductMatrix& matrix, std::size_t bytes) {
      return static_cast<const std::byte*>(data) + static_cast<std::size_t>(first * matrix.batch_stride) * bytes;
    };
    part.a = at(operands.b, call.a, element);
    part.b = at(operands.a, call.b, element);
    part.d = const_cast<std::byte*>(at(operands.y, call.d, result));
    call.alignment_bytes = detail::common_alignment({part.a, part.b, part.d, part.bias});
    const auto plan = state.products.find(call);
    MemoryUses uses(context);
    for (const AnyTensor* temporary : temporaries) uses.add(*temporary, true);
    AnyTensor workspace;
    part.workspace = nullptr;
    part.workspace_bytes = plan->workspace_bytes;
    if (plan->workspace_bytes != 0) {
      workspace = context.allocate_temporary(DType::uint8, {static_cast<std::int64_t>(plan->workspace_bytes)});
      uses.add(workspace, true);
      part.workspace = workspace.raw_data();
    }
    core.require_ok(
        core.driver().products().run_product(core.device(), plan->handle(), part, uses.all(), core.compute()),
        "a product");
  }
}

void run_library_product(KernelContext& context, const RowProduct& product) {
  AnyTensor& y = context.output(0);
  run_library_product(context, product,
                      {y.dtype(), y.dtype(), context.input(0).raw_data(), context.input(1).raw_data(), y.raw_data()});
}

void run_grid_product(KernelContext& context, const RowProduct& product, const KernelFunction& function) {
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
