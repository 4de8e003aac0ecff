#pragma once

#include <dflow/kernels/cpu/routines/math/gemm_builtin.hpp>
#include <dflow/kernels/cpu/routines/nn/conv2d.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>

/// Convolutions of one group as products of patches (rows of window_rows * window_cols * in_channels) and the filter,
/// which has that many rows as it lies. Small patches are read where the image lies, others are made in blocks that
/// stay in the cache. The bits do not depend on the number of threads.
namespace dflow::cpu {

inline Windows windows_of(const Conv2dShape& s) {
  return {s.in_rows,     s.in_cols,     s.in_channels,   s.out_rows(),    s.out_cols(), s.filter_rows, s.filter_cols,
          s.stride_rows, s.stride_cols, s.dilation_rows, s.dilation_cols, s.pad_top,    s.pad_left};
}

inline std::int64_t patch_size(const Conv2dShape& s) { return s.filter_rows * s.filter_cols * s.filter_channels(); }

/// Every patch is a pixel of the input, in order.
inline bool is_pointwise(const Conv2dShape& s) {
  return s.filter_rows == 1 && s.filter_cols == 1 && s.stride_rows == 1 && s.stride_cols == 1 &&
         s.out_rows() == s.in_rows && s.out_cols() == s.in_cols && s.pad_top == 0 && s.pad_left == 0;
}

/// Windows in a block of patches: a few strips of the register tile, and no more than half an L2 cache.
template <class T>
std::int64_t patches_per_block(const GemmLoops<T>& gemms, std::int64_t size) {
  const std::int64_t fitting =
      (std::int64_t{192} << 10) / static_cast<std::int64_t>(sizeof(T)) / std::max<std::int64_t>(1, size);
  return std::clamp(fitting / gemms.rows * gemms.rows, 4 * gemms.rows, gemms.height);
}

/// Some rows of the output of one image: the rows of the input under them, with the padding around them. Negative
/// padding leaves elements out.
template <class T>
class PaddedBand {
 public:
  PaddedBand(const Conv2dShape& s, std::int64_t max_out_rows, KernelCache* cache)
      : shape_(s),
        cols_(std::max(s.in_cols, (s.out_cols() - 1) * s.stride_cols + (s.filter_cols - 1) * s.dilation_cols + 1)),
        is_padded_(s.pad_top != 0 || s.pad_left != 0 || rows_for(s.out_rows()) > s.in_rows || cols_ > s.in_cols),
        scratch_(cache, is_padded_ ? static_cast<std::size_t>(rows_for(max_out_rows) * row_size()) * sizeof(T) : 0) {}

  [[nodiscard]] std::int64_t row_size() const { return cols_ * shape_.in_channels; }
  /// Fills the windows of output rows [first, first + count) of an image.
  [[nodiscard]] const T* fill(const T* image, std::int64_t first, std::int64_t count) const {
    const std::int64_t top = first * shape_.stride_rows - shape_.pad_top;
    const std::int64_t image_row = shape_.in_cols * shape_.in_channels;
    if (!is_padded_) return image + top * image_row;
    const std::int64_t left = shape_.pad_left * shape_.in_channels;
    const std::int64_t before = std::clamp<std::int64_t>(left, 0, row_size());
    const std::int64_t skipped = std::clamp<std::int64_t>(-left, 0, image_row);
    const std::int64_t inside = std::min(image_row - skipped, row_size() - before);
    T* to = scratch_.template as<T>();
    for (std::int64_t row = top; row < top + rows_for(count); ++row, to += row_size()) {
      if (row < 0 || row >= shape_.in_rows) {
        std::fill_n(to, row_size(), T(0));
        continue;
      }
      std::fill_n(to, before, T(0));
      std::copy_n(image + row * image_row + skipped, inside, to + before);
      std::fill(to + before + inside, to + row_size(), T(0));
    }
    return scratch_.template as<T>();
  }

 private:
  [[nodiscard]] std::int64_t rows_for(std::int64_t out_rows) const {
    return (out_rows - 1) * shape_.stride_rows + (shape_.filter_rows - 1) * shape_.dilation_rows + 1;
  }

  const Conv2dShape& shape_;
  std::int64_t cols_;
  bool is_padded_;
  Scratch scratch_;
};

/// The output in bands of rows that stay in the cache with their input.
struct Bands {
  std::int64_t per_image, rows;

  /// `out_channels` of the output are in use at a time.
  Bands(const Conv2dShape& s, std::int64_t bytes, std::int64_t out_channels, std::int64_t element_size) {
    const std::int64_t row = (s.stride_rows * s.in_cols * s.in_channels + s.out_cols() * out_channels) * element_size;
    const std::int64_t fitting = std::max<std::int64_t>(4, bytes / std::max<std::int64_t>(1, row));
    per_image = std::max<std::int64_t>(1, (s.out_rows() + fitting - 1) / fitting);
    rows = (s.out_rows() + per_image - 1) / per_image;
  }
  [[nodiscard]] std::int64_t first_row(std::int64_t band) const { return band % per_image * rows; }
  [[nodiscard]] std::int64_t rows_of(std::int64_t band, const Conv2dShape& s) const {
    return std::clamp<std::int64_t>(s.out_rows() - first_row(band), 0, rows);
  }
};

/// The windows of one row of the output in a band with rows row_size elements apart.
inline WindowRow window_row(const Conv2dShape& s, std::int64_t row_size) {
  const bool is_dilated = s.dilation_cols > 1;
  return {s.filter_rows,
          is_dilated ? s.filter_cols : 1,
          is_dilated ? s.in_channels : s.filter_cols * s.in_channels,
          s.dilation_rows * row_size,
          s.dilation_cols * s.in_channels,
          s.stride_cols * s.in_channels};
}

/// Whether a packed strip of the filter stays in an L2 cache while all windows pass it, and a row has enough windows
/// for a register tile to keep the multipliers busy.
template <class T>
bool has_small_windows(const GemmLoops<T>& gemms, const Conv2dShape& s) {
  constexpr std::int64_t strip_bytes = std::int64_t{224} << 10;
  return s.pad_left >= 0 && s.pad_top >= 0 && (s.out_cols() >= 4 || is_pointwise(s)) &&
         patch_size(s) * gemms.columns * static_cast<std::int64_t>(sizeof(T)) <= strip_bytes;
}

template <class T>
void conv2d_by_windows(ThreadPool& pool, const Conv2dShape& s, const T* input, const T* filter, T* output,
                       const Epilogue<T>& epilogue, const CpuOptions& options) {
  const auto& gemms = loops<GemmLoops<T>>(options.max_level);
  const auto& windows = loops<WindowLoops<T>>(options.max_level);
  const std::int64_t size = patch_size(s);
  const std::int64_t channels = s.out_channels;
  const Scratch packed(options.cache, static_cast<std::size_t>(round_up(channels, gemms.columns) * size) * sizeof(T));
  gemms.pack_b(size, channels, filter, channels, 1, packed.as<T>());

  const GemmStore<T> store{epilogue.accumulate, epilogue.bias, epilogue.relu};
  if (is_pointwise(s)) {
    // All pixels of all images are one row; a few register tiles of it stay in the cache with their output.
    const std::int64_t pixels = s.batch * s.in_rows * s.in_cols;
    const std::int64_t block = 4 * gemms.rows;
    pool.parallel_for((pixels + block - 1) / block, static_cast<double>(block * size * channels) / 30.0,
                      [&](std::int64_t begin, std::int64_t end) {
                        const std::int64_t last = std::min(end * block, pixels);
                        for (std::int64_t first = begin * block; first < last; first += block) {
                          windows.multiply(window_row(s, 0), std::min(block, pixels - first), channels,
                                           input + first * size, packed.as<T>(), output + first * channels, store);
                        }
                      });
    return;
  }
  const Bands bands(s, std::int64_t{96} << 10, 0, sizeof(T));
  const std::int64_t image_size = s.in_rows * s.in_cols * s.in_channels;
  const std::int64_t out_row = s.out_cols() * channels;
  pool.parallel_for(s.batch * bands.per_image, static_cast<double>(bands.rows * out_row * size) / 30.0,
                    [&](std::int64_t begin, std::int64_t end) {
                      const PaddedBand<T> padded(s, bands.rows, options.cache);
                      const WindowRow row = window_row(s, padded.row_size());
                      for (std::int64_t band = begin; band < end; ++band) {
                        const std::int64_t image = band / bands.per_image;
                        const std::int64_t first = bands.first_row(band), count = bands.rows_of(band, s);
                        const T* from = padded.fill(input + image * image_size, first, count);
                        T* to = output + (image * s.out_rows() + first) * out_row;
                        for (std::int64_t y = 0; y < count; ++y) {
                          windows.multiply(row, s.out_cols(), channels, from + y * s.stride_rows * padded.row_size(),
                                           packed.as<T>(), to + y * out_row, store);
                        }
                      }
                    });
}

template <class T>
void conv2d_builtin(ThreadPool& pool, const Conv2dShape& shape, const T* input, const T* filter, T* output,
                    const Epilogue<T>& epilogue, const CpuOptions& options) {
  const std::int64_t windows = shape.batch * shape.out_rows() * shape.out_cols();
  const std::int64_t size = patch_size(shape);
  const std::int64_t channels = shape.out_channels;
  const auto& gemms = loops<GemmLoops<T>>(options.max_level);
  if (size > 0 && has_small_windows(gemms, shape)) {
    return conv2d_by_windows(pool, shape, input, filter, output, epilogue, options);
  }
  if (is_pointwise(shape) || size == 0) {
    return multiply_as_lies(false, false, windows, channels, size, input, filter, output, epilogue, options,
                            [&](const Product<T>& product) { gemm_builtin(pool, product, options); });
  }
  const auto& patches = loops<PatchLoops<T>>(options.max_level);
  const Windows geometry = windows_of(shape);
  const std::int64_t depth_blocks = std::max<std::int64_t>(1, (size + gemms.depth - 1) / gemms.depth);
  const std::int64_t block_depth = (size + depth_blocks - 1) / depth_blocks;
  const std::int64_t padded_channels = round_up(channels, gemms.columns);
  const std::int64_t block = patches_per_block(gemms, size);

  const Product<T> product{windows, channels, size, input, size, 1, filter, channels, 1, output, channels, epilogue};
  const Scratch packed_filter(options.cache, static_cast<std::size_t>(padded_channels * size) * sizeof(T));
  const Panel<T> panel{product, gemms, 0, channels, 0, size, block_depth, block, channels, packed_filter.as<T>()};
  pool.parallel_for(padded_channels / gemms.columns, 0.3 * static_cast<double>(size * gemms.columns),
                    [&](std::int64_t begin, std::int64_t end) { panel.pack_strips(begin, end); });
  pool.parallel_for((windows + block - 1) / block, static_cast<double>(block * size * channels) / 20.0,
                    [&](std::int64_t begin, std::int64_t end) {
                      const Scratch rows(options.cache, static_cast<std::size_t>(block * size) * sizeof(T));
                      const Scratch packed(options.cache, static_cast<std::size_t>(block * block_depth) * sizeof(T));
                      for (std::int64_t first = begin * block; first < std::min(windows, end * block); first += block) {
                        const std::int64_t count = std::min(block, windows - first);
                        patches.gather(geometry, input, first, count, rows.as<T>());
                        for (std::int64_t d = 0; d < size; d += block_depth) {
                          const std::int64_t depth = std::min(block_depth, size - d);
                          gemms.pack_a(count, depth, rows.as<T>() + d, size, 1, packed.as<T>());
                          gemms.packed(count, channels, depth, packed.as<T>(), panel.packed_block(d),
                                       output + first * channels, channels,
                                       product.store(0, d == 0, d + depth == size));
                        }
                      }
                    });
}

/// With stride 1 the gradient by the input is a convolution of grad_output. This is its shape; its filter is turned by
/// 180 degrees and has its channels exchanged.
inline Conv2dShape turned_shape(const Conv2dShape& s) {
  Conv2dShape turned = s;
  turned.in_rows = s.out_rows();
  turned.in_cols = s.out_cols();
  turned.in_channels = s.out_channels;
  turned.out_channels = s.in_channels;
  const std::int64_t reach_rows = (s.filter_rows - 1) * s.dilation_rows;
  const std::int64_t reach_cols = (s.filter_cols - 1) * s.dilation_cols;
  turned.pad_top = reach_rows - s.pad_top;
  turned.pad_left = reach_cols - s.pad_left;
  turned.pad_bottom = s.in_rows + reach_rows - s.out_rows() - turned.pad_top;
  turned.pad_right = s.in_cols + reach_cols - s.out_cols() - turned.pad_left;
  return turned;
}

template <class T>
void conv2d_backward_input_unit_stride(ThreadPool& pool, const Conv2dShape& s, const T* filter, const T* grad_output,
                                       T* grad_input, const CpuOptions& options) {
  const std::int64_t taps = s.filter_rows * s.filter_cols;
  const std::int64_t tap_size = s.in_channels * s.out_channels;
  const Scratch turned(options.cache, static_cast<std::size_t>(taps * tap_size) * sizeof(T));
  T* to = turned.as<T>();
  pool.parallel_for(taps, static_cast<double>(tap_size), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t tap = begin; tap < end; ++tap) {
      const T* from = filter + (taps - 1 - tap) * tap_size;
      for (std::int64_t i = 0; i < s.in_channels; ++i) {
        for (std::int64_t o = 0; o < s.out_channels; ++o) {
          to[tap * tap_size + o * s.in_channels + i] = from[i * s.out_channels + o];
        }
      }
    }
  });
  conv2d_builtin(pool, turned_shape(s), grad_output, static_cast<const T*>(to), grad_input, Epilogue<T>{}, options);
}

template <class T>
void conv2d_backward_input_builtin(ThreadPool& pool, const Conv2dShape& s, const T* filter, const T* grad_output,
                                   T* grad_input, const CpuOptions& options) {
  const std::int64_t per_image = s.out_rows() * s.out_cols();
  const std::int64_t size = patch_size(s);
  const std::int64_t channels = s.out_channels;
  if (is_pointwise(s)) {
    return gemm_builtin(
        pool,
        make_product(false, true, s.batch * per_image, size, channels, grad_output, filter, grad_input, Epilogue<T>{}),
        options);
  }
  const std::int64_t image_size = s.in_rows * s.in_cols * s.in_channels;
  if (per_image == 0) {
    std::fill_n(grad_input, s.batch * image_size, T(0));
    return;
  }
  if (s.stride_rows == 1 && s.stride_cols == 1) {
    return conv2d_backward_input_unit_stride(pool, s, filter, grad_output, grad_input, options);
  }
  // Patches of gradients, image by image, added where they came from.
  const auto& patches = loops<PatchLoops<T>>(options.max_level);
  const Windows geometry = windows_of(s);
  const std::int64_t block = std::min<std::int64_t>(per_image, 192);
  const auto one_image = [&](ThreadPool& threads, std::int64_t image) {
    const Scratch rows(options.cache, static_cast<std::size_t>(block * size) * sizeof(T));
    T* to = grad_input + image * image_size;
    std::memset(to, 0, static_cast<std::size_t>(image_size) * sizeof(T));
    for (std::int64_t first = 0; first < per_image; first += block) {
      const std::int64_t count = std::min(block, per_image - first);
      gemm_builtin(
          threads,
          make_product(false, true, count, size, channels, grad_output + (image * per_image + first) * channels, filter,
                       rows.as<T>(), Epilogue<T>{}),
          options);
      patches.scatter_add(geometry, rows.as<T>(), first, count, to);
    }
  };
  if (s.batch == 1) return one_image(pool, 0);
  pool.parallel_for(s.batch, static_cast<double>(per_image * size * channels) / 20.0,
                    [&](std::int64_t begin, std::int64_t end) {
                      InlinePool serial;
                      for (std::int64_t image = begin; image < end; ++image) one_image(serial, image);
                    });
}

/// The arguments that the parts of a gradient by the filter share.
template <class T>
struct FilterGradient {
  const Conv2dShape& shape;
  const Bands& bands;
  const GemmLoops<T>& gemms;
  const WindowGradientLoops<T>& gradients;
  const T* input;
  const T* grad_output;

  /// Adds the products of the bands of all images from `begin` to `end` to the gradient.
  void add_bands(std::int64_t begin, std::int64_t end, const PaddedBand<T>& padded, T* packed, T* to) const {
    const Conv2dShape& s = shape;
    const std::int64_t channels = s.out_channels, image_size = s.in_rows * s.in_cols * s.in_channels;
    const WindowRow row = window_row(s, padded.row_size());
    for (std::int64_t band = begin; band < end; ++band) {
      const std::int64_t image = band / bands.per_image;
      const std::int64_t first = bands.first_row(band), count = bands.rows_of(band, s);
      if (count == 0) continue;
      const T* from = padded.fill(input + image * image_size, first, count);
      const T* grads = grad_output + (image * s.out_rows() + first) * s.out_cols() * channels;
      WindowBand place{count,    s.out_cols(), s.stride_rows * padded.row_size(), s.stride_cols * s.in_channels,
                       channels, gemms.columns};
      if (packed != nullptr) {
        gemms.pack_b(count * s.out_cols(), channels, grads, channels, 1, packed);
        grads = packed;
        place.grad_step = gemms.columns;
        place.strip_step = count * s.out_cols() * gemms.columns;
      }
      gradients.add_products(row, place, channels, from, grads, to);
    }
  }
};

template <class T>
void conv2d_backward_filter_builtin(ThreadPool& pool, const Conv2dShape& s, const T* input, const T* grad_output,
                                    T* grad_filter, const CpuOptions& options) {
  const std::int64_t windows = s.batch * s.out_rows() * s.out_cols();
  const std::int64_t size = patch_size(s);
  const std::int64_t channels = s.out_channels;
  if (is_pointwise(s)) {
    return gemm_builtin(
        pool, make_product(true, false, size, channels, windows, input, grad_output, grad_filter, Epilogue<T>{}),
        options);
  }
  const auto& gemms = loops<GemmLoops<T>>(options.max_level);
  if (windows == 0) return static_cast<void>(std::fill_n(grad_filter, size * channels, T(0)));
  const auto& gradients = loops<WindowGradientLoops<T>>(options.max_level);
  // Partial sums over fixed parts of the windows, so that the bits do not depend on the thread that computes them.
  constexpr std::int64_t most_parts = 16;
  constexpr std::int64_t part_bytes = std::int64_t{8} << 20;
  const std::int64_t grad_size = size * channels;
  const std::int64_t affordable = std::max<std::int64_t>(
      1, part_bytes / std::max<std::int64_t>(1, grad_size * static_cast<std::int64_t>(sizeof(T))));
  const Bands bands(s, std::int64_t{32} << 10, std::min(channels, gemms.columns), sizeof(T));
  const std::int64_t all_bands = s.batch * bands.per_image;
  const std::int64_t parts = std::max<std::int64_t>(1, std::min({most_parts, affordable, all_bands}));
  const Scratch partial(options.cache, parts > 1 ? static_cast<std::size_t>(parts * grad_size) * sizeof(T) : 0);
  const FilterGradient<T> gradient{s, bands, gemms, gradients, input, grad_output};
  // A strip is two registers wide.
  const bool is_packed = channels % (gemms.columns / 2) != 0;
  const std::int64_t packed_size = bands.rows * s.out_cols() * round_up(channels, gemms.columns);
  pool.parallel_for(parts, static_cast<double>(windows * grad_size) / 30.0 / static_cast<double>(parts),
                    [&](std::int64_t begin, std::int64_t end) {
                      const PaddedBand<T> padded(s, bands.rows, options.cache);
                      const Scratch packed(options.cache,
                                           is_packed ? static_cast<std::size_t>(packed_size) * sizeof(T) : 0);
                      for (std::int64_t part = begin; part < end; ++part) {
                        T* to = parts > 1 ? partial.as<T>() + part * grad_size : grad_filter;
                        std::memset(to, 0, static_cast<std::size_t>(grad_size) * sizeof(T));
                        gradient.add_bands(part * all_bands / parts, (part + 1) * all_bands / parts, padded,
                                           is_packed ? packed.as<T>() : nullptr, to);
                      }
                    });
  const auto& patches = loops<PatchLoops<T>>(options.max_level);
  if (parts > 1) patches.sum_parts(grad_size, parts, partial.as<T>(), grad_filter);
}

}  // namespace dflow::cpu
