#pragma once

#include <dflow/kernels/contract/inferred_shape.hpp>
#include <dflow/kernels/cpu/elementwise/code.hpp>
#include <dflow/kernels/cpu/image/axis_taps.hpp>
#include <dflow/kernels/cpu/image/resize.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace dflow::cpu {

namespace detail {

/// Conversions of rows between the element type of a tensor and C, in which the sums are computed. Null: they are one.
template <class C>
struct RowCasts {
  void (*load)(const void* from, std::int64_t n, C* to) = nullptr;
  void (*store)(const C* from, std::int64_t n, void* to) = nullptr;
};

template <class T, class C>
void load_row(const void* from, std::int64_t n, C* to) {
  const T* const x = static_cast<const T*>(from);
  for (std::int64_t i = 0; i < n; ++i)
    to[i] = static_cast<C>(static_cast<std::conditional_t<is_floating_element<T>, C, T>>(x[i]));
}
template <class T, class C>
void store_row(const C* from, std::int64_t n, void* to) {
  T* const y = static_cast<T*>(to);
  for (std::int64_t i = 0; i < n; ++i) y[i] = static_cast<T>(from[i]);
}

template <class C>
RowCasts<C> row_casts(DType from, DType to) {
  RowCasts<C> casts;
  if (from != dtype_of<C>) {
    casts.load = visit_dtype<RealTypes>(from, []<class T>() { return &load_row<T, C>; });
  }
  if (to != dtype_of<C>) {
    casts.store = visit_dtype<FloatTypes>(to, []<class T>() { return &store_row<T, C>; });
  }
  return casts;
}

/// Images [batch, height, width, channels], made to others by sums over columns and then over rows.
struct Resampling {
  AxisTaps rows, columns;
  std::int64_t in_rows, in_columns, channels;
  const std::byte* from;
  std::byte* to;
  std::size_t from_size, to_size;  ///< of an element, in bytes

  std::int64_t in_width() const noexcept { return in_columns * channels; }
  std::int64_t out_width() const noexcept { return columns.size() * channels; }
};

DFLOW_BEGIN_INDEPENDENT_LOOPS
/// to = a + (b - a) * t.
template <class C>
void go_between(std::int64_t n, const C* a, const C* b, C t, C* to) {
  DFLOW_INDEPENDENT_ITERATIONS
  for (std::int64_t i = 0; i < n; ++i) to[i] = a[i] + (b[i] - a[i]) * t;
}

/// One row by sums over columns. Channels: 0 if the number is known at run time only.
template <int Channels, class C>
void sum_columns(const AxisTaps& taps, std::int64_t channels, const C* from, C* to) {
  const std::int64_t n = Channels != 0 ? Channels : channels;
  for (std::int64_t i = 0; i < taps.size(); ++i, to += n) {
    const auto first = static_cast<std::size_t>(taps.first[static_cast<std::size_t>(i)]);
    const auto count = static_cast<std::size_t>(taps.first[static_cast<std::size_t>(i) + 1]) - first;
    const std::int64_t* const inputs = taps.inputs.data() + first;
    const float* const weights = taps.weights.data() + first;
    if (taps.are_lines) {
      const C *const a = from + inputs[0] * n, *const b = from + inputs[1] * n;
      go_between<C>(n, a, b, weights[1], to);
      continue;
    }
    for (std::int64_t c = 0; c < n; ++c) to[c] = 0;
    for (std::size_t t = 0; t < count; ++t) {
      const C* const x = from + inputs[t] * n;
      const C weight = weights[t];
      for (std::int64_t c = 0; c < n; ++c) to[c] += x[c] * weight;
    }
  }
}
DFLOW_END_INDEPENDENT_LOOPS

/// The rows of the input after the sums over columns, as far as the sums over rows need them again.
template <class C>
class SummedRows {
 public:
  SummedRows(const Resampling& job, const RowCasts<C>& casts)
      : job_(job), casts_(casts), loaded_(casts.load == nullptr ? 0 : static_cast<std::size_t>(job.in_width())) {
    rows_.fill(-1);
    if (is_direct()) return;
    for (std::vector<C>& values : values_) values.resize(static_cast<std::size_t>(job.out_width()));
  }

  /// Row `row` of all rows of the batch. It stays as it is while the next three rows are asked for.
  const C* at(std::int64_t row) {
    const std::byte* const x = job_.from + static_cast<std::size_t>(row * job_.in_width()) * job_.from_size;
    if (is_direct()) return reinterpret_cast<const C*>(x);
    const std::size_t slot = static_cast<std::size_t>(row) % values_.size();
    C* const values = values_[slot].data();
    if (rows_[slot] == row) return values;
    rows_[slot] = row;
    C* const loaded = job_.columns.is_copy ? values : loaded_.data();
    if (casts_.load != nullptr) casts_.load(x, job_.in_width(), loaded);
    if (job_.columns.is_copy) return values;
    const C* const from = casts_.load == nullptr ? reinterpret_cast<const C*>(x) : loaded;
    switch (job_.channels) {
      case 1:
        sum_columns<1>(job_.columns, 1, from, values);
        break;
      case 3:
        sum_columns<3>(job_.columns, 3, from, values);
        break;
      default:
        sum_columns<0>(job_.columns, job_.channels, from, values);
    }
    return values;
  }

 private:
  /// The rows are those of the input.
  bool is_direct() const noexcept { return job_.columns.is_copy && casts_.load == nullptr; }

  const Resampling& job_;
  const RowCasts<C>& casts_;
  std::vector<C> loaded_;
  std::array<std::vector<C>, 4> values_;
  std::array<std::int64_t, 4> rows_{};
};

DFLOW_BEGIN_INDEPENDENT_LOOPS
/// to = sum of the rows by their weights; from 1 to 4 rows. `begins`: else the sum is added to `to`.
template <class C>
void sum_rows(std::int64_t n, std::span<const C* const> rows, const float* weights, bool begins, C* to) {
  if (begins && rows.size() == 4) {
    const C *const a = rows[0], *const b = rows[1], *const c = rows[2], *const d = rows[3];
    const C u = weights[0], v = weights[1], w = weights[2], z = weights[3];
    DFLOW_INDEPENDENT_ITERATIONS
    for (std::int64_t i = 0; i < n; ++i) to[i] = a[i] * u + b[i] * v + c[i] * w + d[i] * z;
    return;
  }
  if (begins) std::fill_n(to, n, C(0));
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const C* const x = rows[r];
    const C weight = weights[r];
    DFLOW_INDEPENDENT_ITERATIONS
    for (std::int64_t i = 0; i < n; ++i) to[i] += x[i] * weight;
  }
}
DFLOW_END_INDEPENDENT_LOOPS

/// Rows [begin, end) of all rows of the batch.
template <class C>
void resample_rows(const Resampling& job, const RowCasts<C>& casts, std::int64_t begin, std::int64_t end) {
  const std::int64_t width = job.out_width(), out_rows = job.rows.size();
  const auto scale = static_cast<C>(1.0 / static_cast<double>(job.rows.scale * job.columns.scale));
  SummedRows<C> summed(job, casts);
  std::vector<C> kept(casts.store == nullptr ? 0 : static_cast<std::size_t>(width));
  for (std::int64_t out = begin; out < end; ++out) {
    std::byte* const y = job.to + static_cast<std::size_t>(out * width) * job.to_size;
    C* const to = casts.store == nullptr ? reinterpret_cast<C*>(y) : kept.data();
    const std::int64_t first_row = out / out_rows * job.in_rows;
    const auto i = static_cast<std::size_t>(out % out_rows);
    const auto first = static_cast<std::size_t>(job.rows.first[i]);
    const auto last = static_cast<std::size_t>(job.rows.first[i + 1]);
    const std::int64_t* const inputs = job.rows.inputs.data();
    const float* const weights = job.rows.weights.data();
    if (job.rows.is_copy) {
      std::copy_n(summed.at(first_row + inputs[first]), width, to);
    } else if (job.rows.are_lines) {
      const C* const a = summed.at(first_row + inputs[first]);
      const C* const b = summed.at(first_row + inputs[first + 1]);
      go_between<C>(width, a, b, weights[first + 1], to);
    } else {
      // Taps of a row follow each other, so that four of them are in four places of `summed`.
      std::array<const C*, 4> rows{};
      for (std::size_t t = first; t < last || t == first; t += rows.size()) {
        const std::size_t count = std::min(last - t, rows.size());
        for (std::size_t k = 0; k < count; ++k) rows[k] = summed.at(first_row + inputs[t + k]);
        sum_rows<C>(width, std::span(rows).first(count), weights + t, t == first, to);
      }
    }
    if (scale != C(1)) {
      for (std::int64_t k = 0; k < width; ++k) to[k] *= scale;
    }
    if (casts.store != nullptr) casts.store(to, width, y);
  }
}

template <class C>
void resample(ThreadPool& pool, const Resampling& job, std::int64_t batch, DType from, DType to) {
  const RowCasts<C> casts = row_casts<C>(from, to);
  const double taps = static_cast<double>(job.rows.inputs.size()) / static_cast<double>(job.rows.size());
  const double ns = (taps + 2) * 0.5 * static_cast<double>(job.out_width() + job.in_width());
  pool.parallel_for(batch * job.rows.size(), ns,
                    [&](std::int64_t begin, std::int64_t end) { resample_rows<C>(job, casts, begin, end); });
}

/// Images of shape `from` become those of shape `to`. Sums are in float, in double if the result is.
void resample_images(KernelContext& context, AxisTaps rows, AxisTaps columns, const AnyTensor& x, AnyTensor& y) {
  const Resampling job{std::move(rows),
                       std::move(columns),
                       x.dim(1),
                       x.dim(2),
                       x.dim(3),
                       static_cast<const std::byte*>(x.raw_data()),
                       static_cast<std::byte*>(y.raw_data()),
                       size_of(x.dtype()),
                       size_of(y.dtype())};
  if (y.dtype() == DType::float64) {
    resample<double>(context.pool(), job, y.dim(0), x.dtype(), y.dtype());
  } else {
    resample<float>(context.pool(), job, y.dim(0), x.dtype(), y.dtype());
  }
}

/// Pixels of `bytes` bytes, one of each output column. Bytes: 0 if the number is known at run time only.
template <std::size_t Bytes>
void pick_pixels(const AxisTaps& columns, std::size_t bytes, const std::byte* from, std::byte* to) {
  const std::size_t n = Bytes != 0 ? Bytes : bytes;
  for (const std::int64_t column : columns.inputs) {
    std::memcpy(to, from + static_cast<std::size_t>(column) * n, n);
    to += n;
  }
}

using PickPixels = void (*)(const AxisTaps& columns, std::size_t bytes, const std::byte* from, std::byte* to);

PickPixels pixel_picker(std::size_t bytes) {
  switch (bytes) {
    case 1:
      return &pick_pixels<1>;
    case 3:
      return &pick_pixels<3>;
    case 4:
      return &pick_pixels<4>;
    case 12:
      return &pick_pixels<12>;
    default:
      return &pick_pixels<0>;
  }
}

/// Each output pixel is one of the input.
void pick_images(KernelContext& context, const AxisTaps& rows, const AxisTaps& columns, const AnyTensor& x,
                 AnyTensor& y) {
  const std::size_t pixel = static_cast<std::size_t>(x.dim(3)) * size_of(x.dtype());
  const std::size_t in_width = static_cast<std::size_t>(x.dim(2)) * pixel;
  const std::size_t out_width = static_cast<std::size_t>(columns.size()) * pixel;
  const auto* const from = static_cast<const std::byte*>(x.raw_data());
  auto* const to = static_cast<std::byte*>(y.raw_data());
  const PickPixels pick = pixel_picker(pixel);
  const std::int64_t in_rows = x.dim(1), out_rows = rows.size();
  const double ns = 0.1 * static_cast<double>(out_width) + static_cast<double>(columns.size());
  context.pool().parallel_for(y.dim(0) * out_rows, ns, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t before = -1;
    for (std::int64_t out = begin; out < end; ++out) {
      std::byte* const row = to + static_cast<std::size_t>(out) * out_width;
      const std::int64_t in = out / out_rows * in_rows + rows.inputs[static_cast<std::size_t>(out % out_rows)];
      if (in == before) {
        std::memcpy(row, row - out_width, out_width);
      } else {
        pick(columns, pixel, from + static_cast<std::size_t>(in) * in_width, row);
      }
      before = in;
    }
  });
}

}  // namespace detail

void resize(KernelContext& context, ResizeMethod method, const ResizeAttrs& attrs) {
  const Shape shape = dflow::detail::inferred_shape(context);
  const AnyTensor& x = context.input(0);
  AnyTensor& y = context.allocate_output(0, shape);
  if (shape.num_elements() == 0) return;
  AxisTaps rows = axis_taps(method, attrs, x.dim(1), y.dim(1));
  AxisTaps columns = axis_taps(method, attrs, x.dim(2), y.dim(2));
  if (method == ResizeMethod::nearest_neighbor) return detail::pick_images(context, rows, columns, x, y);
  detail::resample_images(context, std::move(rows), std::move(columns), x, y);
}

void resize_gradient(KernelContext& context, ResizeMethod method, const ResizeAttrs& attrs) {
  const Shape shape = dflow::detail::inferred_shape(context);
  const AnyTensor& dy = context.input(0);
  AnyTensor& dx = context.allocate_output(0, shape);
  if (shape.num_elements() == 0) return;
  const std::int64_t height = dx.dim(1), width = dx.dim(2);
  detail::resample_images(context, transposed(axis_taps(method, attrs, height, dy.dim(1)), height),
                          transposed(axis_taps(method, attrs, width, dy.dim(2)), width), dy, dx);
}

}  // namespace dflow::cpu
