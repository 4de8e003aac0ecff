#pragma once

#include <dflow/kernels/cpu/raw/conv2d.hpp>
#include <dflow/kernels/cpu/raw/gemm_builtin.hpp>

#if defined(DFLOW_HEADER_ONLY)
#include <dflow/kernels/cpu/raw/variants/patch_loops.hpp>
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>

/// Convolutions as products of patches (rows of window_rows * window_cols * in_channels) and the filter, which has that
/// many rows as it lies. Patches are made in blocks that stay in the cache. The bits do not depend on the number of
/// threads.
namespace dflow::cpu {

inline Windows windows_of(const Conv2dShape& s) {
  return {s.in_rows,     s.in_cols,     s.in_channels,   s.out_rows(),    s.out_cols(), s.filter_rows, s.filter_cols,
          s.stride_rows, s.stride_cols, s.dilation_rows, s.dilation_cols, s.pad_top,    s.pad_left};
}

inline std::int64_t patch_size(const Conv2dShape& s) { return s.filter_rows * s.filter_cols * s.in_channels; }

/// Every patch is a pixel of the input, in order.
inline bool is_pointwise(const Conv2dShape& s) {
  return s.filter_rows == 1 && s.filter_cols == 1 && s.stride_rows == 1 && s.stride_cols == 1 &&
         s.out_rows() == s.in_rows && s.out_cols() == s.in_cols && s.pad_top == 0 && s.pad_left == 0;
}

/// Windows in a block of patches: a few strips of the register tile, and no more than half an L2 cache.
template <class T> std::int64_t patches_per_block(const GemmLoops<T>& gemms, std::int64_t size) {
  const std::int64_t fitting =
      (std::int64_t{192} << 10) / static_cast<std::int64_t>(sizeof(T)) / std::max<std::int64_t>(1, size);
  return std::clamp(fitting / gemms.rows * gemms.rows, 4 * gemms.rows, gemms.height);
}

template <class T>
void conv2d_builtin(ThreadPool& pool, const Conv2dShape& shape, const T* input, const T* filter, T* output,
                    const Epilogue<T>& epilogue, const CpuOptions& options) {
  const std::int64_t windows = shape.batch * shape.out_rows() * shape.out_cols();
  const std::int64_t size = patch_size(shape);
  const std::int64_t channels = shape.out_channels;
  if (is_pointwise(shape) || size == 0) {
    return gemm_builtin(pool, make_product(false, false, windows, channels, size, input, filter, output, epilogue),
                        options);
  }
  const auto& gemms = loops<GemmLoops<T>>(options.max_level);
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

/// With stride 1 the gradient is a convolution of grad_output with the filter turned by 180 degrees.
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
  Conv2dShape turned_shape = s;
  turned_shape.in_rows = s.out_rows();
  turned_shape.in_cols = s.out_cols();
  turned_shape.in_channels = s.out_channels;
  turned_shape.out_channels = s.in_channels;
  const std::int64_t reach_rows = (s.filter_rows - 1) * s.dilation_rows;
  const std::int64_t reach_cols = (s.filter_cols - 1) * s.dilation_cols;
  turned_shape.pad_top = reach_rows - s.pad_top;
  turned_shape.pad_left = reach_cols - s.pad_left;
  turned_shape.pad_bottom = s.in_rows + reach_rows - s.out_rows() - turned_shape.pad_top;
  turned_shape.pad_right = s.in_cols + reach_cols - s.out_cols() - turned_shape.pad_left;
  conv2d_builtin(pool, turned_shape, grad_output, static_cast<const T*>(to), grad_input, Epilogue<T>{}, options);
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
  const auto& patches = loops<PatchLoops<T>>(options.max_level);
  const Windows geometry = windows_of(s);
  // Partial sums over fixed parts of the windows, so that the bits do not depend on who computes them.
  constexpr std::int64_t most_parts = 16;
  constexpr std::int64_t part_bytes = std::int64_t{8} << 20;
  const std::int64_t grad_size = size * channels;
  const std::int64_t affordable = std::max<std::int64_t>(
      1, part_bytes / std::max<std::int64_t>(1, grad_size * static_cast<std::int64_t>(sizeof(T))));
  const std::int64_t block = std::min<std::int64_t>(
      gemms.depth, std::max<std::int64_t>(32, (std::int64_t{256} << 10) / static_cast<std::int64_t>(sizeof(T)) /
                                                  std::max<std::int64_t>(1, size)));
  const std::int64_t blocks = std::max<std::int64_t>(1, (windows + block - 1) / block);
  const std::int64_t parts = std::min({most_parts, affordable, blocks});
  const Scratch partial(options.cache, parts > 1 ? static_cast<std::size_t>(parts * grad_size) * sizeof(T) : 0);
  const std::int64_t padded_channels = round_up(channels, gemms.columns);
  const std::int64_t padded_size = round_up(size, gemms.rows);
  pool.parallel_for(
      parts, static_cast<double>(windows * grad_size) / 20.0 / static_cast<double>(parts),
      [&](std::int64_t begin, std::int64_t end) {
        const Scratch rows(options.cache, static_cast<std::size_t>(block * size) * sizeof(T));
        const Scratch packed_rows(options.cache, static_cast<std::size_t>(block * padded_size) * sizeof(T));
        const Scratch packed_grads(options.cache, static_cast<std::size_t>(block * padded_channels) * sizeof(T));
        for (std::int64_t part = begin; part < end; ++part) {
          T* to = parts > 1 ? partial.as<T>() + part * grad_size : grad_filter;
          std::memset(to, 0, static_cast<std::size_t>(grad_size) * sizeof(T));
          const std::int64_t last = std::min(windows, (part + 1) * blocks / parts * block);
          for (std::int64_t first = part * blocks / parts * block; first < last; first += block) {
            const std::int64_t count = std::min(block, last - first);
            patches.gather(geometry, input, first, count, rows.as<T>());
            gemms.pack_a(size, count, rows.as<T>(), 1, size, packed_rows.as<T>());
            gemms.pack_b(count, channels, grad_output + first * channels, channels, 1, packed_grads.as<T>());
            gemms.packed(size, channels, count, packed_rows.as<T>(), packed_grads.as<T>(), to, channels,
                         GemmStore<T>{true, nullptr, false});
          }
        }
      });
  if (parts > 1) patches.sum_parts(grad_size, parts, partial.as<T>(), grad_filter);
}

}  // namespace dflow::cpu
