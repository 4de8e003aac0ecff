#pragma once

#include <dflow/kernels/cpu/routines/array/transpose.hpp>
#include <dflow/kernels/cpu/routines/nn/bias.hpp>
#include <dflow/kernels/cpu/routines/nn/conv2d.hpp>
#include <dflow/kernels/cpu/routines/nn/conv2d_builtin.hpp>

#include <algorithm>
#include <array>
#include <cstdint>

/// Convolutions of several groups. If each group has one channel of the input, direct loops compute them. Otherwise
/// each group is copied out and is a convolution by itself. The bits do not depend on the number of threads.
namespace dflow::cpu {

/// Whether each channel of the output sees one channel of the input.
inline bool is_depthwise(const Conv2dShape& s) { return s.groups > 1 && s.groups == s.in_channels; }

/// Whether direct loops are faster for a depthwise convolution than oneDNN's, as measured. oneDNN's are faster for a
/// few channels, which it pads to a register, for many channels of small images, and for the gradient by the filter.
/// They are slow for several filters a channel and for large filters, and use one thread for one image.
inline bool prefers_loops(const Conv2dShape& s, bool is_by_filter) {
  if (s.batch == 1 || s.out_channels != s.in_channels || s.filter_rows * s.filter_cols > 9) return true;
  const bool has_few_channels = s.in_channels < 16;
  return !is_by_filter && !has_few_channels && (s.in_channels < 256 || s.out_cols() > 16);
}

/// Depthwise convolutions with one channel of the output for each of the input.
template <class T>
struct OneToOne {
  ThreadPool& pool;
  const CpuOptions& options;
  const Conv2dShape& shape;

  std::int64_t taps() const { return shape.filter_rows * shape.filter_cols; }
  std::int64_t in_row() const { return shape.in_cols * shape.in_channels; }
  std::int64_t out_row() const { return shape.out_cols() * shape.in_channels; }
  const DepthwiseLoops<T>& table() const { return loops<DepthwiseLoops<T>>(options.max_level); }

  void forward(const T* input, const T* filter, bool accumulate, T* output) const {
    const Windows windows = windows_of(shape);
    const std::int64_t rows = shape.out_rows(), image = shape.in_rows * in_row();
    pool.parallel_for(shape.batch * rows, 20 + static_cast<double>(out_row() * taps()) / 8,
                      [&](std::int64_t begin, std::int64_t end) {
                        for (std::int64_t row = begin; row < end; ++row) {
                          table().row(windows, row % rows, input + row / rows * image, filter, accumulate,
                                      output + row * out_row());
                        }
                      });
  }

  void backward_input(const T* filter, const T* grad_output, T* grad_input) const {
    if (shape.stride_rows == 1 && shape.stride_cols == 1 && out_row() != 0) {
      const std::int64_t channels = shape.in_channels;
      const Scratch turned(options.cache, static_cast<std::size_t>(taps() * channels) * sizeof(T));
      for (std::int64_t tap = 0; tap < taps(); ++tap) {
        std::copy_n(filter + (taps() - 1 - tap) * channels, channels, turned.as<T>() + tap * channels);
      }
      const Conv2dShape back = turned_shape(shape);
      return OneToOne<T>{pool, options, back}.forward(grad_output, turned.as<T>(), false, grad_input);
    }
    const Windows windows = windows_of(shape);
    const std::int64_t rows = shape.in_rows, image = shape.out_rows() * out_row();
    pool.parallel_for(shape.batch * rows, 20 + static_cast<double>(out_row() * taps()) / 4,
                      [&](std::int64_t begin, std::int64_t end) {
                        for (std::int64_t row = begin; row < end; ++row) {
                          table().input_row(windows, row % rows, grad_output + row / rows * image, filter,
                                            grad_input + row * in_row());
                        }
                      });
  }

  void backward_filter(const T* input, const T* grad_output, T* grad_filter) const {
    // Partial sums over fixed parts of the rows, so that the bits do not depend on the thread that computes them.
    constexpr std::int64_t most_parts = 16, part_bytes = std::int64_t{8} << 20;
    const Windows windows = windows_of(shape);
    const std::int64_t size = taps() * shape.in_channels, rows = shape.out_rows(), all = shape.batch * rows;
    const std::int64_t affordable = part_bytes / (size * static_cast<std::int64_t>(sizeof(T)));
    const std::int64_t parts = std::max<std::int64_t>(1, std::min({most_parts, affordable, all}));
    const Scratch partial(options.cache, parts > 1 ? static_cast<std::size_t>(parts * size) * sizeof(T) : 0);
    T* const sums = parts > 1 ? partial.as<T>() : grad_filter;
    pool.parallel_for(parts, static_cast<double>(all * out_row() * taps()) / 8 / static_cast<double>(parts),
                      [&](std::int64_t begin, std::int64_t end) {
                        for (std::int64_t part = begin; part < end; ++part) {
                          T* to = sums + part * size;
                          std::fill_n(to, size, T(0));
                          for (std::int64_t row = part * all / parts; row < (part + 1) * all / parts; ++row) {
                            table().filter_row(windows, row % rows, input + row / rows * shape.in_rows * in_row(),
                                               grad_output + row * out_row(), to);
                          }
                        }
                      });
    if (parts > 1) loops<PatchLoops<T>>(options.max_level).sum_parts(size, parts, sums, grad_filter);
  }
};

/// An array [pixels, channels, multiplier] as [multiplier, pixels, channels]: a one-to-one convolution for each of the
/// multiplier's channels. An array with a multiplier of 1 is not copied.
template <class T>
class ByMultiplier {
 public:
  ByMultiplier(ThreadPool& pool, const CpuOptions& options, std::int64_t size, std::int64_t multiplier, T* at)
      : pool_(pool),
        options_(options),
        size_(size),
        multiplier_(multiplier),
        at_(at),
        scratch_(options.cache, multiplier > 1 ? static_cast<std::size_t>(size) * sizeof(T) : 0) {}
  void read() const {
    if (multiplier_ > 1) turn(size_ / multiplier_, multiplier_, at_, get(0));
  }
  void write() const {
    if (multiplier_ > 1) turn(multiplier_, size_ / multiplier_, get(0), at_);
  }
  /// The part of channel `i` of the multiplier.
  [[nodiscard]] T* get(std::int64_t i) const {
    return multiplier_ > 1 ? scratch_.template as<T>() + i * (size_ / multiplier_) : at_;
  }

 private:
  void turn(std::int64_t rows, std::int64_t columns, const T* from, T* to) const {
    transpose(pool_, sizeof(T), std::array{rows, columns}, std::array{1, 0}, from, to, options_);
  }

  ThreadPool& pool_;
  const CpuOptions& options_;
  std::int64_t size_, multiplier_;
  T* at_;
  Scratch scratch_;
};

/// Rows of `width` elements, from_step apart, to rows that are to_step apart.
template <class T>
void copy_columns(ThreadPool& pool, std::int64_t rows, std::int64_t width, const T* from, std::int64_t from_step, T* to,
                  std::int64_t to_step) {
  pool.parallel_for(rows, 2 + static_cast<double>(width) / 4, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) std::copy_n(from + row * from_step, width, to + row * to_step);
  });
}

/// The operands of one group, copied out of those of all groups, which have their channels last.
template <class T>
class OneGroup {
 public:
  OneGroup(ThreadPool& pool, const CpuOptions& options, const Conv2dShape& all)
      : pool_(pool),
        groups_(all.groups),
        shape_(of_group(all)),
        x_rows_(all.batch * all.in_rows * all.in_cols),
        y_rows_(all.batch * all.out_rows() * all.out_cols()),
        x_(options.cache, bytes(x_rows_ * shape_.in_channels)),
        filter_(options.cache, bytes(patch_size(shape_) * shape_.out_channels)),
        y_(options.cache, bytes(y_rows_ * shape_.out_channels)) {}

  [[nodiscard]] const Conv2dShape& shape() const { return shape_; }
  [[nodiscard]] T* x() const { return x_.template as<T>(); }
  [[nodiscard]] T* filter() const { return filter_.template as<T>(); }
  [[nodiscard]] T* y() const { return y_.template as<T>(); }

  void read_x(std::int64_t group, const T* all) const { read(group, x_rows_, shape_.in_channels, all, x()); }
  void read_filter(std::int64_t group, const T* all) const {
    read(group, patch_size(shape_), shape_.out_channels, all, filter());
  }
  void read_y(std::int64_t group, const T* all) const { read(group, y_rows_, shape_.out_channels, all, y()); }
  void write_x(std::int64_t group, T* all) const { write(group, x_rows_, shape_.in_channels, x(), all); }
  void write_filter(std::int64_t group, T* all) const {
    write(group, patch_size(shape_), shape_.out_channels, filter(), all);
  }
  void write_y(std::int64_t group, T* all) const { write(group, y_rows_, shape_.out_channels, y(), all); }

 private:
  static Conv2dShape of_group(Conv2dShape s) {
    s.in_channels /= s.groups;
    s.out_channels /= s.groups;
    s.groups = 1;
    return s;
  }
  static std::size_t bytes(std::int64_t elements) { return static_cast<std::size_t>(elements) * sizeof(T); }
  void read(std::int64_t group, std::int64_t rows, std::int64_t width, const T* all, T* to) const {
    if (rows > 0) copy_columns(pool_, rows, width, all + group * width, groups_ * width, to, width);
  }
  void write(std::int64_t group, std::int64_t rows, std::int64_t width, const T* from, T* all) const {
    if (rows > 0) copy_columns(pool_, rows, width, from, width, all + group * width, groups_ * width);
  }

  ThreadPool& pool_;
  std::int64_t groups_;
  Conv2dShape shape_;
  std::int64_t x_rows_, y_rows_;
  Scratch x_, filter_, y_;
};

/// The shape of the one-to-one convolutions of a depthwise convolution.
inline Conv2dShape one_to_one(Conv2dShape s) {
  s.out_channels = s.in_channels;
  return s;
}

template <class T>
void conv2d_in_groups(ThreadPool& pool, const Conv2dShape& s, const T* input, const T* filter, T* output,
                      const Epilogue<T>& epilogue, const CpuOptions& options) {
  const std::int64_t outputs = s.batch * s.out_rows() * s.out_cols() * s.out_channels;
  if (is_depthwise(s)) {
    const Conv2dShape one = one_to_one(s);
    const std::int64_t multiplier = s.out_channels / s.groups;
    const ByMultiplier<T> w(pool, options, patch_size(s) * s.out_channels, multiplier, const_cast<T*>(filter));
    const ByMultiplier<T> y(pool, options, outputs, multiplier, output);
    w.read();
    if (epilogue.accumulate) y.read();
    for (std::int64_t i = 0; i < multiplier; ++i) {
      OneToOne<T>{pool, options, one}.forward(input, w.get(i), epilogue.accumulate, y.get(i));
    }
    y.write();
  } else {
    const OneGroup<T> group(pool, options, s);
    for (std::int64_t g = 0; g < s.groups; ++g) {
      group.read_x(g, input);
      group.read_filter(g, filter);
      if (epilogue.accumulate) group.read_y(g, output);
      conv2d<T>(pool, group.shape(), group.x(), group.filter(), group.y(), {.accumulate = epilogue.accumulate},
                options);
      group.write_y(g, output);
    }
  }
  if (epilogue.bias == nullptr) return;
  bias_add(pool, outputs / s.out_channels, s.out_channels, output, epilogue.bias, output, epilogue.relu, options);
}

template <class T>
void conv2d_backward_input_in_groups(ThreadPool& pool, const Conv2dShape& s, const T* filter, const T* grad_output,
                                     T* grad_input, const CpuOptions& options) {
  if (!is_depthwise(s)) {
    const OneGroup<T> group(pool, options, s);
    for (std::int64_t g = 0; g < s.groups; ++g) {
      group.read_filter(g, filter);
      group.read_y(g, grad_output);
      conv2d_backward_input<T>(pool, group.shape(), group.filter(), group.y(), group.x(), options);
      group.write_x(g, grad_input);
    }
    return;
  }
  const Conv2dShape one = one_to_one(s);
  const std::int64_t multiplier = s.out_channels / s.groups;
  const std::int64_t inputs = s.batch * s.in_rows * s.in_cols * s.in_channels;
  const std::int64_t outputs = s.batch * s.out_rows() * s.out_cols() * s.out_channels;
  const ByMultiplier<T> w(pool, options, patch_size(s) * s.out_channels, multiplier, const_cast<T*>(filter));
  const ByMultiplier<T> dy(pool, options, outputs, multiplier, const_cast<T*>(grad_output));
  const Scratch other(options.cache, multiplier > 1 ? static_cast<std::size_t>(inputs) * sizeof(T) : 0);
  w.read();
  dy.read();
  const OneToOne<T> convolution{pool, options, one};
  convolution.backward_input(w.get(0), dy.get(0), grad_input);
  for (std::int64_t i = 1; i < multiplier; ++i) {
    const T* part = other.as<T>();
    convolution.backward_input(w.get(i), dy.get(i), other.as<T>());
    pool.parallel_for(inputs, 0.3, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t j = begin; j < end; ++j) grad_input[j] += part[j];
    });
  }
}

template <class T>
void conv2d_backward_filter_in_groups(ThreadPool& pool, const Conv2dShape& s, const T* input, const T* grad_output,
                                      T* grad_filter, const CpuOptions& options) {
  if (!is_depthwise(s)) {
    const OneGroup<T> group(pool, options, s);
    for (std::int64_t g = 0; g < s.groups; ++g) {
      group.read_x(g, input);
      group.read_y(g, grad_output);
      conv2d_backward_filter<T>(pool, group.shape(), group.x(), group.y(), group.filter(), options);
      group.write_filter(g, grad_filter);
    }
    return;
  }
  const Conv2dShape one = one_to_one(s);
  const std::int64_t multiplier = s.out_channels / s.groups;
  const std::int64_t outputs = s.batch * s.out_rows() * s.out_cols() * s.out_channels;
  const ByMultiplier<T> dw(pool, options, patch_size(s) * s.out_channels, multiplier, grad_filter);
  const ByMultiplier<T> dy(pool, options, outputs, multiplier, const_cast<T*>(grad_output));
  dy.read();
  for (std::int64_t i = 0; i < multiplier; ++i) {
    OneToOne<T>{pool, options, one}.backward_filter(input, dy.get(i), dw.get(i));
  }
  dw.write();
}

}  // namespace dflow::cpu
