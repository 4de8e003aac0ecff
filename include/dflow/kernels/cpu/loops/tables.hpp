#pragma once

#include <cstddef>
#include <cstdint>

/// The loops that exist once per CpuLevel, as tables of function pointers by family and element type. A table is a
/// constant; `loops<Table>(max_level)` (dispatch.hpp) picks one. Nothing here is compiled into code.
namespace dflow::cpu {

/// Half and BFloat16 as the loops see them: storage that they widen to float.
struct __attribute__((may_alias)) HalfBits {
  std::uint16_t bits;
};
struct __attribute__((may_alias)) BFloat16Bits {
  std::uint16_t bits;
};

/// A complex number as the loops see it.
template <class T>
struct __attribute__((may_alias)) ComplexParts {
  T re, im;
};

/// The last operation on a block of a product's result, when the last part of the inner dimension has been added.
template <class T>
struct GemmStore {
  bool accumulate;  ///< starts from what c holds instead of 0
  const T* bias;    ///< of the block's first column, or null
  bool relu;
};

/// T: float, double.
template <class T>
struct GemmLoops {
  std::int64_t rows;     ///< of a register tile; packed a comes in strips of so many rows
  std::int64_t columns;  ///< of a register tile; packed b comes in strips of so many columns
  std::int64_t depth;    ///< best inner dimension of packed operands
  std::int64_t height;   ///< best number of rows of a packed block of a

  /// Strips of `rows` rows (zero-padded) of a[m, k]; element (i, p) is at i * row_stride + p * depth_stride.
  void (*pack_a)(std::int64_t m, std::int64_t k, const T* a, std::int64_t row_stride, std::int64_t depth_stride, T* to);
  /// Strips of `columns` columns (zero-padded) of b[k, n]; element (p, j) is at p * depth_stride + j * column_stride.
  /// One of the strides is 1.
  void (*pack_b)(std::int64_t k, std::int64_t n, const T* b, std::int64_t depth_stride, std::int64_t column_stride,
                 T* to);
  /// c[m, n] (rows ldc apart) from packed operands.
  void (*packed)(std::int64_t m, std::int64_t n, std::int64_t k, const T* a, const T* b, T* c, std::int64_t ldc,
                 GemmStore<T> store);
  /// c[m, n] from operands in place; rows of b are contiguous and ldb apart.
  void (*direct)(std::int64_t m, std::int64_t n, std::int64_t k, const T* a, std::int64_t row_stride,
                 std::int64_t depth_stride, const T* b, std::int64_t ldb, T* c, std::int64_t ldc, GemmStore<T> store);
  /// c[m, n] = dot products of rows of a[m, k] and rows of b[n, k].
  void (*dots)(std::int64_t m, std::int64_t n, std::int64_t k, const T* a, std::int64_t lda, const T* b,
               std::int64_t ldb, T* c, std::int64_t ldc, GemmStore<T> store);
};

/// Products of integers and complex numbers: c[m, n] from a (any strides) and b with contiguous rows.
/// T: uint8 to uint64, ComplexParts.
template <class T>
struct SimpleGemmLoops {
  void (*direct)(std::int64_t m, std::int64_t n, std::int64_t k, const T* a, std::int64_t row_stride,
                 std::int64_t depth_stride, const T* b, std::int64_t ldb, T* c, std::int64_t ldc, bool accumulate);
};

/// Complex products as real ones. T: float, double.
template <class T>
struct ComplexGemmLoops {
  /// to[rows, 2, columns, 2]: each number x + yi of from[rows, columns] as the matrix (x, y; -y, x), or its transpose.
  using Expand = void (*)(std::int64_t rows, std::int64_t columns, const ComplexParts<T>* from, T* to);
  Expand expand, expand_transposed;
};

/// A row of windows of an image that has its padding around it, in elements. A window is `rows` rows of `groups` groups
/// of `depth` elements side by side: one group, or one per column where the columns are dilated.
struct WindowRow {
  std::int64_t rows, groups, depth;
  std::int64_t row_step, group_step;
  std::int64_t window_step;  ///< from a window to the next
};

/// T: float, double.
template <class T>
struct WindowLoops {
  /// out[count, channels] = products of the `count` windows from `image` on and a filter packed by GemmLoops::pack_b.
  void (*multiply)(const WindowRow& windows, std::int64_t count, std::int64_t channels, const T* image, const T* filter,
                   T* out, GemmStore<T> store);
};

/// Rows of windows and their gradients, in elements.
struct WindowBand {
  std::int64_t rows, cols;
  std::int64_t row_step;     ///< from a row of windows to the next
  std::int64_t window_step;  ///< from a window to the next
  std::int64_t grad_step;    ///< from the gradients of a window to those of the next
  std::int64_t strip_step;   ///< from GemmLoops::columns channels of the gradients to the next
};

/// T: float, double.
template <class T>
struct WindowGradientLoops {
  /// grad_filter[size of a window, channels] += the sum over the windows of each element times the gradients of its
  /// window. The gradients are a matrix [windows, channels], read in place if registers divide its rows, or packed by
  /// GemmLoops::pack_b.
  void (*add_products)(const WindowRow& windows, const WindowBand& band, std::int64_t channels, const T* image,
                       const T* grads, T* grad_filter);
};

/// The windows of an image [rows, cols, channels]: window (y, x) begins at row y * stride_rows - pad_top.
struct Windows {
  std::int64_t in_rows, in_cols, channels;
  std::int64_t out_rows, out_cols;
  std::int64_t window_rows, window_cols;
  std::int64_t stride_rows, stride_cols;
  std::int64_t dilation_rows, dilation_cols;
  std::int64_t pad_top, pad_left;
};

/// T: float, double.
template <class T>
struct PatchLoops {
  /// patches[count, window_rows * window_cols * channels] of the windows from `first` on, numbered through all images;
  /// zeros where a window leaves its image.
  void (*gather)(const Windows& windows, const T* images, std::int64_t first, std::int64_t count, T* patches);
  /// Adds patches to the places of one image that gather takes them from.
  void (*scatter_add)(const Windows& windows, const T* patches, std::int64_t first, std::int64_t count, T* image);
  /// sum[n] = the sum of `parts` arrays that lie n apart, in order.
  void (*sum_parts)(std::int64_t n, std::int64_t parts, const T* from, T* sum);
};

/// A convolution in which output channel c sees input channel c alone: y [out_cols, channels] of a row of windows over
/// an image, filter [window_rows, window_cols, channels]. T: float, double.
template <class T>
struct DepthwiseLoops {
  /// Row `oy` of the output, or y + it.
  void (*row)(const Windows& windows, std::int64_t oy, const T* image, const T* filter, bool accumulate, T* y);
  /// Row `iy` of the gradient of the image, by the gradient of all of its output.
  void (*input_row)(const Windows& windows, std::int64_t iy, const T* grad_y, const T* filter, T* grad_x);
  /// Adds the part of row `oy` of the output to the gradient of the filter.
  void (*filter_row)(const Windows& windows, std::int64_t oy, const T* image, const T* grad_y, T* grad_filter);
};

/// T: HalfBits, BFloat16Bits.
template <class T>
struct CastLoops {
  void (*widen)(std::int64_t n, const T* x, float* y);
  void (*narrow)(std::int64_t n, const float* x, T* y);
};

/// T: float, double. y may be x.
template <class T>
struct MathLoops {
  using Map = void (*)(std::int64_t n, const T* x, T* y);
  Map exp, expm1, log, log1p, tanh, sigmoid, sin, cos, erf;
};

/// The type in which a reduction of elements of type T adds up its blocks.
template <class T>
struct TotalOf {
  using type = T;
};
template <>
struct TotalOf<float> {
  using type = double;
};
template <>
struct TotalOf<HalfBits> {
  using type = double;
};
template <>
struct TotalOf<BFloat16Bits> {
  using type = double;
};
template <>
struct TotalOf<ComplexParts<float>> {
  using type = ComplexParts<double>;
};
template <class T>
using total_t = typename TotalOf<T>::type;

/// One way to reduce. The parts of a long axis give totals, which are combined in order.
template <class T, class Total = total_t<T>>
struct Reduction {
  /// Totals of n contiguous elements.
  void (*run)(std::int64_t n, const T* x, Total* total);
  /// Totals of each column of x[rows, columns], rows `stride` apart.
  void (*columns)(std::int64_t rows, std::int64_t columns, std::int64_t stride, const T* x, Total* totals);
  /// y[columns] = the combination of the rows of totals[parts, columns], divided by `divisor`.
  void (*finish)(std::int64_t parts, std::int64_t columns, const Total* totals, double divisor, T* y);
};

/// T: float, double, HalfBits, BFloat16Bits, uint8 to uint64, ComplexParts; squares not for the last.
template <class T>
struct SumLoops {
  Reduction<T> sum, product, squares;
};

/// T: int8 to int64, uint8 to uint64. The totals are sums modulo 2^64, which finish divides by `divisor`, the number of
/// elements, rounding toward 0.
template <class T>
struct MeanLoops {
  Reduction<T, std::uint64_t> mean;
};

/// T: every real type but bool.
template <class T>
struct OrderLoops {
  Reduction<T> maximum, minimum;
  /// First position of the maximum or minimum of n contiguous elements; NaNs are passed over.
  std::int64_t (*argmax)(std::int64_t n, const T* x);
  std::int64_t (*argmin)(std::int64_t n, const T* x);
  /// The same for each column of x[rows, columns], rows `stride` apart.
  void (*argmax_columns)(std::int64_t rows, std::int64_t columns, std::int64_t stride, const T* x, std::int64_t* y);
  void (*argmin_columns)(std::int64_t rows, std::int64_t columns, std::int64_t stride, const T* x, std::int64_t* y);
};

/// The type of computations on T.
template <class T>
struct ComputeOf {
  using type = T;
};
template <>
struct ComputeOf<HalfBits> {
  using type = float;
};
template <>
struct ComputeOf<BFloat16Bits> {
  using type = float;
};

/// One row each. T: float, double, HalfBits, BFloat16Bits. Outputs may be inputs.
template <class T>
struct SoftmaxLoops {
  void (*softmax)(std::int64_t n, const T* x, T* y);
  void (*log_softmax)(std::int64_t n, const T* x, T* y);
  void (*softmax_backward)(std::int64_t n, const T* y, const T* grad_y, T* grad_x);
  void (*log_softmax_backward)(std::int64_t n, const T* y, const T* grad_y, T* grad_x);
};
template <class T>
struct CrossEntropyLoops {
  /// loss and backprop may be null.
  void (*cross_entropy)(std::int64_t n, const T* x, const T* labels, T* loss, T* backprop);
  /// A label outside [0, n) makes NaNs.
  void (*sparse_cross_entropy)(std::int64_t n, const T* x, std::int64_t label, T* loss, T* backprop);
};

/// x[rows, channels]. T: float, double, HalfBits, BFloat16Bits; C is the type of the computation.
template <class T, class C = typename ComputeOf<T>::type>
struct BatchNormLoops {
  /// Mean and sum of squared distances from it.
  void (*moments)(std::int64_t rows, std::int64_t channels, const T* x, double* mean, double* squares);
  /// y = (x - mean) * factor + offset
  void (*normalize)(std::int64_t rows, std::int64_t channels, const T* x, const C* mean, const C* factor,
                    const C* offset, T* y);
  /// Sums of grad_y and of grad_y (x - mean).
  void (*grad_sums)(std::int64_t rows, std::int64_t channels, const T* x, const T* grad_y, const C* mean, double* plain,
                    double* centered);
  /// grad_x = (grad_y - shift - (x - mean) * slope) * factor
  void (*grad_input)(std::int64_t rows, std::int64_t channels, const T* x, const T* grad_y, const C* mean,
                     const C* factor, const C* shift, const C* slope, T* grad_x);
};

/// T: float, double, HalfBits, BFloat16Bits, uint8 to uint64, ComplexParts.
template <class T>
struct BiasLoops {
  /// y[rows, channels] = x + bias; y may be x. relu: float types only.
  void (*add)(std::int64_t rows, std::int64_t channels, const T* x, const T* bias, bool relu, T* y);
};

/// Channels [first, end) of one image. T: float, double; the others only maximum.
template <class T>
struct PoolLoops {
  void (*maximum)(const Windows& windows, std::int64_t first, std::int64_t end, const T* x, T* y);
  void (*maximum_backward)(const Windows& windows, std::int64_t first, std::int64_t end, const T* x, const T* grad_y,
                           T* grad_x);
  void (*average)(const Windows& windows, std::int64_t first, std::int64_t end, const T* x, T* y);
  void (*average_backward)(const Windows& windows, std::int64_t first, std::int64_t end, const T* grad_y, T* grad_x);
};

/// Updates `n` elements of a variable and its slots, which share no memory.
using UpdateElements = void (*)(std::int64_t n, void* const* variables, const void* gradient, const double* factors,
                                bool use_nesterov);
/// The rule of an optimizer (`kernels/shared/update_rules.hpp`). T: float, double, HalfBits, BFloat16Bits.
template <template <class, class> class Rule, class T>
struct UpdateLoop {
  UpdateElements run;
};

/// T: float, double, HalfBits, BFloat16Bits, uint8 to uint64, ComplexParts for the first four; all for the last two.
template <class T>
struct ScatterLoops {
  using Apply = void (*)(std::int64_t n, T* to, const T* x);
  Apply add, subtract, multiply, divide, minimum, maximum;
};

/// Elements of so many bytes. bytes: 1, 2, 4, 8, 16.
template <int bytes>
struct CopyLoops {
  /// to[c, r] = from[r, c]; rows of both are strides of elements apart. `stream`: past the caches, for results that
  /// they would not hold; then rows of `to` begin at multiples of 64 bytes.
  void (*transpose)(std::int64_t rows, std::int64_t columns, const void* from, std::int64_t from_stride, void* to,
                    std::int64_t to_stride, bool stream);
  void (*strided)(std::int64_t n, const void* from, std::int64_t from_stride, void* to, std::int64_t to_stride);
};

}  // namespace dflow::cpu
