#pragma once

#include <dflow/kernels/cuda/nn/windows.hpp>
#include <dflow/kernels/cuda/routines/copies.ipp>
#include <dflow/kernels/cuda/routines/products.ipp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace dflow::cuda {

namespace detail {

inline WindowPlan plan_of(const Conv2dShape& s) {
  return {.in_rows = s.in_rows,
          .in_cols = s.in_cols,
          .channels = s.in_channels,
          .out_rows = s.out_rows(),
          .out_cols = s.out_cols(),
          .window_rows = s.filter_rows,
          .window_cols = s.filter_cols,
          .stride_rows = s.stride_rows,
          .stride_cols = s.stride_cols,
          .dilation_rows = s.dilation_rows,
          .dilation_cols = s.dilation_cols,
          .pad_top = s.pad_top,
          .pad_left = s.pad_left};
}

/// Throws if the convolution has several groups.
inline Conv2dShape sizes_of(const Conv2DAttrs& attrs, const Shape& input, const Shape& filter) {
  const Conv2dShape sizes = dflow::detail::conv2d_shape(attrs, input, filter);
  if (sizes.groups > 1) {
    throw_error(Status::unimplemented(str_cat("a GPU computes no convolution of ", sizes.groups, " groups")));
  }
  return sizes;
}

inline WindowPlan plan_of(const Pool2dShape& s) {
  return {.in_rows = s.in_rows,
          .in_cols = s.in_cols,
          .channels = s.channels,
          .out_rows = s.out_rows(),
          .out_cols = s.out_cols(),
          .window_rows = s.window_rows,
          .window_cols = s.window_cols,
          .stride_rows = s.stride_rows,
          .stride_cols = s.stride_cols,
          .pad_top = s.pad_top,
          .pad_left = s.pad_left};
}

/// A convolution as a product: [places, depth] [depth, out_channels].
struct ColumnProduct {
  ColumnProduct(const Conv2dShape& of, DType type)
      : windows(plan_of(of)),
        dtype(type),
        bytes(size_of(type)),
        batch(of.batch),
        places_of_image(windows.out_rows * windows.out_cols),
        depth(of.filter_rows * of.filter_cols * of.in_channels),
        out_channels(of.out_channels),
        are_images(of.filter_rows == 1 && of.filter_cols == 1 && of.stride_rows == 1 && of.stride_cols == 1) {}

  /// How many of `count` parts of so many places each are made at a time.
  std::int64_t at_a_time(const KernelContext& context, std::int64_t count, std::int64_t places) const {
    const auto part = static_cast<std::int64_t>(bytes) * std::max<std::int64_t>(places * depth, 1);
    const std::size_t room = std::min(state_of(context).convolution_workspace_bytes, std::size_t{1} << 40);
    return std::clamp<std::int64_t>(static_cast<std::int64_t>(room) / part, 1, count);
  }
  std::int64_t places() const { return batch * places_of_image; }

  /// Calls body(columns, first, count) for parts of all places, with the columns of the images x for them.
  template <class Body>
  void for_each_part(KernelContext& context, const AnyTensor& x, const Body& body) const {
    if (places() == 0) return;
    if (are_images) return body(x, 0, places());
    const std::int64_t most = at_a_time(context, places(), 1);
    const AnyTensor columns = context.allocate_temporary(dtype, {most, depth});
    const AnyTensor* const temporaries[] = {&columns};
    for (std::int64_t first = 0; first < places(); first += most) {
      const ColumnsArgs args{windows, first, std::min(most, places() - first), x.raw_data(),
                             const_cast<void*>(columns.raw_data())};
      const std::int64_t n = args.rows * depth;
      if (n != 0) launch(context, function_of_size<ColumnsBody>(bytes), grid_for(n), &args, nullptr, temporaries);
      body(columns, first, args.rows);
    }
  }

  const WindowPlan windows;
  const DType dtype;
  const std::size_t bytes;
  const std::int64_t batch, places_of_image, depth, out_channels;
  const bool are_images;  ///< what the filter meets is each element of the images once
};

/// `data` so many elements of `bytes` further on.
inline const void* element_at(const void* data, std::int64_t index, std::size_t bytes) {
  return static_cast<const std::byte*>(data) + static_cast<std::size_t>(index) * bytes;
}
inline void* element_at(void* data, std::int64_t index, std::size_t bytes) {
  return static_cast<std::byte*>(data) + static_cast<std::size_t>(index) * bytes;
}

inline ConvolutionCall call_of(ConvolutionKind kind, DType dtype, const Conv2dShape& sizes) {
  ConvolutionCall call;
  call.kind = kind;
  call.dtype = dtype;
  call.batch = sizes.batch;
  call.in_rows = sizes.in_rows;
  call.in_cols = sizes.in_cols;
  call.in_channels = sizes.in_channels;
  call.out_rows = sizes.out_rows();
  call.out_cols = sizes.out_cols();
  call.out_channels = sizes.out_channels;
  call.filter_rows = sizes.filter_rows;
  call.filter_cols = sizes.filter_cols;
  call.stride_rows = sizes.stride_rows;
  call.stride_cols = sizes.stride_cols;
  call.dilation_rows = sizes.dilation_rows;
  call.dilation_cols = sizes.dilation_cols;
  call.pad_top = sizes.pad_top;
  call.pad_left = sizes.pad_left;
  call.pad_bottom = sizes.pad_bottom;
  call.pad_right = sizes.pad_right;
  return call;
}

/// By cuDNN; false where that cannot. One of the operands is the kernel's output, the others its inputs. The library
/// has the filter as [out_channels, rows, columns, in_channels].
inline bool convolve_by_library(KernelContext& context, ConvolutionKind kind, const Conv2dShape& sizes,
                                const AnyTensor& x, const AnyTensor& filter, const AnyTensor& y) {
  CudaState& state = state_of(context);
  DeviceCore& core = state.memory.core();
  if (core.driver().convolutions() == nullptr) return false;
  if (x.num_elements() == 0 || filter.num_elements() == 0 || y.num_elements() == 0) return false;
  ConvolutionCall call = call_of(kind, y.dtype(), sizes);
  call.allows_tf32 = state.allows_tf32 && call.dtype == DType::float32;
  // The library asks for no more than 16.
  call.alignment_bytes = std::min(common_alignment({x.raw_data(), y.raw_data()}), 16);
  const auto plan = state.convolutions.find(call);
  if (!plan->is_possible()) return false;
  const std::int64_t depth = sizes.filter_rows * sizes.filter_cols * sizes.in_channels, channels = sizes.out_channels;
  const AnyTensor turned = context.allocate_temporary(call.dtype, {channels, depth});
  const AnyTensor* const temporaries[] = {&turned};
  if (kind != ConvolutionKind::backward_filter) {
    copy_strided(context, {channels, depth}, {&filter, 0, {1, channels}}, {&turned, 0, {depth, 1}}, temporaries);
  }
  ConvolutionOperands operands{const_cast<void*>(x.raw_data()), const_cast<void*>(turned.raw_data()),
                               const_cast<void*>(y.raw_data())};
  MemoryUses uses(context);
  uses.add(turned, true);
  AnyTensor workspace;
  if (plan->workspace_bytes != 0) {
    workspace = context.allocate_temporary(DType::uint8, {static_cast<std::int64_t>(plan->workspace_bytes)});
    uses.add(workspace, true);
    operands.workspace = workspace.raw_data();
    operands.workspace_bytes = plan->workspace_bytes;
  }
  core.require_ok(core.driver().convolutions()->run_convolution(core.device(), plan->handle(), operands, uses.all(),
                                                                core.compute()),
                  "a convolution");
  if (kind == ConvolutionKind::backward_filter) {
    copy_strided(context, {depth, channels}, {&turned, 0, {1, depth}}, {&filter, 0, {channels, 1}}, temporaries);
  }
  return true;
}

}  // namespace detail

void convolve(KernelContext& context, const Conv2DAttrs& attrs, const RowProduct& epilogue) {
  const Shape shape = dflow::detail::inferred_shape(context);
  const AnyTensor &x = context.input(0), &filter = context.input(1);
  AnyTensor& y = context.allocate_output(0, shape);
  const Conv2dShape sizes = detail::sizes_of(attrs, x.shape(), filter.shape());
  const detail::ColumnProduct of(sizes, y.dtype());
  if (!of.are_images && detail::convolve_by_library(context, ConvolutionKind::forward, sizes, x, filter, y)) {
    if (epilogue.bias == nullptr) return;
    const BiasArgs args{static_cast<const float*>(epilogue.bias->raw_data()),
                        static_cast<float*>(y.raw_data()),
                        y.num_elements(),
                        of.out_channels,
                        epilogue.relu,
                        true};
    return launch<BiasBody>(context, grid_for(args.count), args);
  }
  of.for_each_part(context, x, [&](const AnyTensor& columns, std::int64_t first, std::int64_t count) {
    RowProduct product = epilogue;
    product.m = count;
    product.n = of.out_channels;
    product.k = of.depth;
    const AnyTensor* const temporaries[] = {&columns};
    run_library_product(context, product,
                        {of.dtype, of.dtype, columns.raw_data(), filter.raw_data(),
                         detail::element_at(y.raw_data(), first * product.n, of.bytes)},
                        std::span(temporaries, &columns == &x ? 0 : 1));
  });
}

void convolve_backward_filter(KernelContext& context, const Conv2DAttrs& attrs, const KernelFunction& narrow) {
  const Shape shape = dflow::detail::inferred_shape(context);
  const AnyTensor &x = context.input(0), &dy = context.input(2);
  AnyTensor& dfilter = context.allocate_output(0, shape);
  if (dy.num_elements() == 0) return clear_output(context, dfilter);
  const Conv2dShape sizes = detail::sizes_of(attrs, x.shape(), shape);
  const detail::ColumnProduct of(sizes, dy.dtype());
  if (!of.are_images && detail::convolve_by_library(context, ConvolutionKind::backward_filter, sizes, x, dfilter, dy)) {
    return;
  }
  // Sums of 16 bits that are made in parts are rounded once.
  const bool is_widened = of.bytes == 2 && !of.are_images && of.at_a_time(context, of.places(), 1) < of.places();
  const AnyTensor wide = is_widened ? context.allocate_temporary(DType::float32, shape) : AnyTensor();
  void* const sums = is_widened ? const_cast<void*>(wide.raw_data()) : dfilter.raw_data();
  of.for_each_part(context, x, [&](const AnyTensor& columns, std::int64_t first, std::int64_t count) {
    const RowProduct product{
        .m = of.depth, .n = of.out_channels, .k = count, .a = ProductOperand::transposed, .accumulates = first != 0};
    const AnyTensor* const temporaries[] = {&columns, &wide};
    run_library_product(context, product,
                        {of.dtype, is_widened ? DType::float32 : of.dtype, columns.raw_data(),
                         detail::element_at(dy.raw_data(), first * product.n, of.bytes), sums},
                        std::span(temporaries, is_widened       ? 2
                                               : &columns == &x ? 0
                                                                : 1));
  });
  if (!is_widened) return;
  const CastArgs args{dfilter.num_elements(), sums, dfilter.raw_data()};
  const AnyTensor* const temporaries[] = {&wide};
  launch(context, narrow, grid_for(args.n), &args, nullptr, temporaries);
}

void convolve_backward_input(KernelContext& context, const Conv2DAttrs& attrs, const KernelFunction& images) {
  const Shape shape = dflow::detail::inferred_shape(context);
  const AnyTensor &filter = context.input(1), &dy = context.input(2);
  AnyTensor& dx = context.allocate_output(0, shape);
  if (dx.num_elements() == 0) return;
  if (dy.num_elements() == 0) return clear_output(context, dx);
  const Conv2dShape sizes = detail::sizes_of(attrs, shape, filter.shape());
  const detail::ColumnProduct of(sizes, dy.dtype());
  if (!of.are_images && detail::convolve_by_library(context, ConvolutionKind::backward_input, sizes, dx, filter, dy)) {
    return;
  }
  RowProduct product{.m = of.places(), .n = of.depth, .k = of.out_channels, .b = ProductOperand::transposed};
  if (of.are_images) {
    return run_library_product(context, product, {of.dtype, of.dtype, dy.raw_data(), filter.raw_data(), dx.raw_data()});
  }
  const std::int64_t most = of.at_a_time(context, of.batch, of.places_of_image);
  // They are added up, and rounded once then.
  const DType wide = of.bytes == 2 ? DType::float32 : of.dtype;
  const AnyTensor columns = context.allocate_temporary(wide, {most * of.places_of_image, of.depth});
  const AnyTensor* const temporaries[] = {&columns};
  const std::int64_t size_of_image = dx.num_elements() / of.batch;
  for (std::int64_t first = 0; first < of.batch; first += most) {
    const ImagesArgs args{of.windows, std::min(most, of.batch - first), columns.raw_data(),
                          detail::element_at(dx.raw_data(), first * size_of_image, of.bytes)};
    product.m = args.images * of.places_of_image;
    const void* const of_part =
        detail::element_at(dy.raw_data(), first * of.places_of_image * of.out_channels, of.bytes);
    run_library_product(context, product,
                        {of.dtype, wide, of_part, filter.raw_data(), const_cast<void*>(columns.raw_data())},
                        temporaries);
    launch(context, images, grid_for(args.images * size_of_image), &args, nullptr, temporaries);
  }
}

void pool_places(KernelContext& context, const Pool2DAttrs& attrs, const KernelFunction& function, int values) {
  const Shape shape = dflow::detail::inferred_shape(context);
  const AnyTensor& x = context.input(0);
  AnyTensor& y = context.allocate_output(0, shape);
  if (y.num_elements() == 0) return;
  PoolArgs args;
  args.windows = detail::plan_of(dflow::detail::pool2d_shape(attrs, x.shape()));
  args.batch = x.dim(0);
  args.x = x.raw_data();
  if (values >= 0) args.values = context.input(values).raw_data();
  args.y = y.raw_data();
  launch(context, function, grid_for(y.num_elements()), &args);
}

void pool_images(KernelContext& context, const Pool2DAttrs& attrs, const KernelFunction& function, int values) {
  const Shape shape = dflow::detail::inferred_shape(context);
  AnyTensor& dx = context.allocate_output(0, shape);
  if (dx.num_elements() == 0) return;
  PoolArgs args;
  args.windows = detail::plan_of(dflow::detail::pool2d_shape(attrs, shape));
  args.batch = shape[0];
  args.values = context.input(values).raw_data();
  args.y = dx.raw_data();
  launch(context, function, grid_for(dx.num_elements()), &args);
}

void pool_winners(KernelContext& context, const Pool2DAttrs& attrs, const KernelFunction& winners,
                  const KernelFunction& function, int values) {
  const Shape shape = dflow::detail::inferred_shape(context);
  AnyTensor& dx = context.allocate_output(0, shape);
  if (dx.num_elements() == 0) return;
  const AnyTensor& places = context.input(values);
  const AnyTensor found = context.allocate_temporary(DType::int64, places.shape());
  const AnyTensor* const temporaries[] = {&found};
  PoolArgs args;
  args.windows = detail::plan_of(dflow::detail::pool2d_shape(attrs, shape));
  args.batch = shape[0];
  args.x = context.input(0).raw_data();
  args.y = const_cast<void*>(found.raw_data());
  launch(context, winners, grid_for(places.num_elements()), &args, nullptr, temporaries);
  args.winners = static_cast<const std::int64_t*>(found.raw_data());
  args.values = places.raw_data();
  args.y = dx.raw_data();
  launch(context, function, grid_for(dx.num_elements()), &args, nullptr, temporaries);
}

}  // namespace dflow::cuda
