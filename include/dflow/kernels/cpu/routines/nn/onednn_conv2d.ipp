#pragma once

#include <dflow/base/config.hpp>
#include <dflow/kernels/cpu/routines/kernel_cache_state.hpp>
#include <dflow/kernels/cpu/routines/onednn.hpp>

#if defined(DFLOW_HAS_ONEDNN)
#include <dflow/kernels/cpu/routines/onednn_one_thread.hpp>

#include <dnnl.hpp>
#endif

#include <algorithm>
#include <cstring>

namespace dflow::cpu {

#if defined(DFLOW_HAS_ONEDNN)

/// `turned` is a forward convolution with a filter [rows, columns, out_channels, in_channels].
enum class ConvKind : std::int32_t { forward, turned, backward_input, backward_filter };

/// One compiled convolution of a shard of the batch, with the reorders between our layouts and its own.
struct OnednnConv2d {
  dnnl::engine engine;
  dnnl::primitive primitive;
  dnnl::memory::desc plain_input, plain_filter, plain_output;  ///< NHWC, HWIO or HWOI, NHWC
  dnnl::memory::desc input, filter, output, scratch;           ///< as the primitive wants them
  dnnl::primitive to_input, to_filter, to_output;              ///< from plain; empty if there is nothing to do
  dnnl::primitive from_input, from_filter, from_output;        ///< back to plain
};

struct OnednnConvKey {
  ConvKind kind;
  std::int32_t unused;
  std::int64_t sizes[16];
};

namespace onednn {

using Desc = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;

inline Desc describe(dnnl::memory::dims dims, Tag tag) {
  return Desc(std::move(dims), dnnl::memory::data_type::f32, tag);
}

inline dnnl::primitive reorder_between(const dnnl::engine& engine, const Desc& from, const Desc& to) {
  if (from == to) return {};
  return dnnl::reorder(dnnl::reorder::primitive_desc(engine, from, engine, to));
}

/// oneDNN's first choice for NHWC is a product of tiles as deep as the input has channels. With few of them, and where
/// a stride leaves a tile few pixels, its next choice, direct loops, is 1.1 to 1.4 times faster.
inline bool has_shallow_tiles(const Conv2dShape& s) {
  if (s.filter_rows == 1 && s.filter_cols == 1) return false;
  return s.in_channels < 16 || (s.in_channels == 16 && (s.stride_rows > 1 || s.stride_cols > 1));
}

inline bool is_tiled(const char* implementation) { return std::strncmp(implementation, "brg", 3) == 0; }

/// [out_channels, in_channels, rows, columns], of a group where there are several: [groups, ...].
inline dnnl::memory::dims filter_dims(const Conv2dShape& s) {
  dnnl::memory::dims dims{s.out_channels / s.groups, s.filter_channels(), s.filter_rows, s.filter_cols};
  if (s.groups > 1) dims.insert(dims.begin(), s.groups);
  return dims;
}

/// Makes the primitive with activations in NHWC, or in the layout it likes best.
class Conv2dMaker {
 public:
  Conv2dMaker(OnednnConv2d& conv, ConvKind kind, const Conv2dShape& s, bool free_layout)
      : conv_(conv), kind_(kind), shape_(s), free_layout_(free_layout) {
    attr_.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  }

  /// False if oneDNN has nothing fast for it.
  bool make() {
    const bool is_gradient = kind_ == ConvKind::backward_input || kind_ == ConvKind::backward_filter;
    const auto mode = is_gradient ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
    const Forward::desc desc(mode, algorithm, x_, w_, y_, strides_, dilations_, before_, after_);
    Forward::primitive_desc forward(desc, attr_, conv_.engine);
    // A gradient by the input is worth turning into a forward convolution for the tiles alone.
    const bool has_tiles = is_tiled(forward.impl_info_str());
    if (kind_ == ConvKind::turned && (!has_tiles || has_shallow_tiles(shape_))) return false;
    if (kind_ == ConvKind::backward_input) {
      const ByInput::primitive_desc by_input({algorithm, x_, w_, y_, strides_, dilations_, before_, after_}, attr_,
                                             conv_.engine, forward);
      return keep(by_input, by_input.diff_src_desc(), by_input.weights_desc(), by_input.diff_dst_desc());
    }
    if (kind_ == ConvKind::backward_filter) {
      const ByFilter::primitive_desc by_filter({algorithm, x_, w_, y_, strides_, dilations_, before_, after_}, attr_,
                                               conv_.engine, forward);
      return keep(by_filter, by_filter.src_desc(), by_filter.diff_weights_desc(), by_filter.diff_dst_desc());
    }
    if (has_tiles && has_shallow_tiles(shape_)) {
      Forward::primitive_desc next(desc, attr_, conv_.engine);
      while (is_tiled(next.impl_info_str()) && next.next_impl()) continue;
      if (is_fast(next.impl_info_str())) forward = next;
    }
    return keep(forward, forward.src_desc(), forward.weights_desc(), forward.dst_desc());
  }

 private:
  using Forward = dnnl::convolution_forward;
  using ByInput = dnnl::convolution_backward_data;
  using ByFilter = dnnl::convolution_backward_weights;
  using Dims = dnnl::memory::dims;
  static constexpr auto algorithm = dnnl::algorithm::convolution_direct;

  static Forward primitive(const Forward::primitive_desc& desc) { return Forward(desc); }
  static ByInput primitive(const ByInput::primitive_desc& desc) { return ByInput(desc); }
  static ByFilter primitive(const ByFilter::primitive_desc& desc) { return ByFilter(desc); }
  static bool is_fast(const char* name) { return std::strncmp(name, "jit", 3) == 0 || is_tiled(name); }

  template <class PrimitiveDesc>
  bool keep(const PrimitiveDesc& desc, const Desc& input, const Desc& filter, const Desc& output) {
    if (!free_layout_ && !is_fast(desc.impl_info_str())) return false;
    conv_.input = input;
    conv_.filter = filter;
    conv_.output = output;
    conv_.scratch = desc.scratchpad_desc();
    conv_.primitive = primitive(desc);
    return true;
  }

  /// The padding after the input that gives the output its size; a part of the requested padding may be unused.
  static std::int64_t pad_after(std::int64_t out, std::int64_t stride, std::int64_t taps, std::int64_t dilation,
                                std::int64_t in, std::int64_t pad_before) {
    return (out - 1) * stride + (taps - 1) * dilation + 1 - in - pad_before;
  }

  OnednnConv2d& conv_;
  const ConvKind kind_;
  const Conv2dShape& shape_;
  const bool free_layout_;
  const Tag tag_ = free_layout_ ? Tag::any : Tag::nhwc;
  const Desc x_ = describe({shape_.batch, shape_.in_channels, shape_.in_rows, shape_.in_cols}, tag_);
  const Desc w_ = describe(filter_dims(shape_), Tag::any);
  const Desc y_ = describe({shape_.batch, shape_.out_channels, shape_.out_rows(), shape_.out_cols()}, tag_);
  const Dims strides_{shape_.stride_rows, shape_.stride_cols};
  const Dims dilations_{shape_.dilation_rows - 1, shape_.dilation_cols - 1};
  const Dims before_{shape_.pad_top, shape_.pad_left};
  const Dims after_{pad_after(shape_.out_rows(), shape_.stride_rows, shape_.filter_rows, shape_.dilation_rows,
                              shape_.in_rows, shape_.pad_top),
                    pad_after(shape_.out_cols(), shape_.stride_cols, shape_.filter_cols, shape_.dilation_cols,
                              shape_.in_cols, shape_.pad_left)};
  dnnl::primitive_attr attr_;
};

/// Null where oneDNN does not know the shape.
inline std::shared_ptr<const OnednnConv2d> build_conv2d(ConvKind kind, const Conv2dShape& s) try {
  auto conv = std::make_shared<OnednnConv2d>();
  conv->engine = dnnl::engine(dnnl::engine::kind::cpu, 0);
  conv->plain_input = describe({s.batch, s.in_channels, s.in_rows, s.in_cols}, Tag::nhwc);
  const dnnl::memory::dims filter = filter_dims(s);
  const std::int64_t tap = s.in_channels * s.out_channels;
  conv->plain_filter = kind == ConvKind::turned
                           ? Desc(filter, dnnl::memory::data_type::f32, {s.in_channels, 1, s.filter_cols * tap, tap})
                           : describe(filter, s.groups > 1 ? Tag::hwigo : Tag::hwio);
  conv->plain_output = describe({s.batch, s.out_channels, s.out_rows(), s.out_cols()}, Tag::nhwc);
  const bool may_reorder = kind != ConvKind::turned;
  if (!Conv2dMaker(*conv, kind, s, false).make() && !(may_reorder && Conv2dMaker(*conv, kind, s, true).make())) {
    return nullptr;
  }
  const dnnl::engine& engine = conv->engine;
  const bool is_forward = kind == ConvKind::forward || kind == ConvKind::turned;
  if (kind != ConvKind::backward_input) conv->to_input = reorder_between(engine, conv->plain_input, conv->input);
  if (kind != ConvKind::backward_filter) conv->to_filter = reorder_between(engine, conv->plain_filter, conv->filter);
  if (!is_forward) conv->to_output = reorder_between(engine, conv->plain_output, conv->output);
  if (kind == ConvKind::backward_input) conv->from_input = reorder_between(engine, conv->input, conv->plain_input);
  if (kind == ConvKind::backward_filter) conv->from_filter = reorder_between(engine, conv->filter, conv->plain_filter);
  if (is_forward) conv->from_output = reorder_between(engine, conv->output, conv->plain_output);
  return conv;
} catch (const dnnl::error&) {
  return nullptr;
}

inline std::shared_ptr<const OnednnConv2d> find_conv2d(ConvKind kind, const Conv2dShape& s, KernelCache* cache) {
  const OnednnConvKey key{
      kind,
      0,
      {s.batch, s.in_rows, s.in_cols, s.in_channels, s.filter_rows, s.filter_cols, s.out_channels, s.stride_rows,
       s.stride_cols, s.dilation_rows, s.dilation_cols, s.pad_top, s.pad_left, s.out_rows(), s.out_cols(), s.groups}};
  const std::string_view bytes(reinterpret_cast<const char*>(&key), sizeof key);
  if (cache != nullptr) {
    const std::lock_guard lock(cache->state().mutex);
    if (const auto* found = cache->state().primitives.find(bytes)) {
      return std::static_pointer_cast<const OnednnConv2d>(*found);
    }
  }
  const OnednnOneThread one_thread;
  auto built = build_conv2d(kind, s);
  if (cache != nullptr) {
    PrimitiveCache::Primitive replaced;
    const std::lock_guard lock(cache->state().mutex);
    replaced = cache->state().primitives.insert(bytes, built);
  }
  return built;
}

inline dnnl::memory view(const OnednnConv2d& conv, const Desc& desc, const float* at) {
  return dnnl::memory(desc, conv.engine, const_cast<float*>(at));
}

inline void run_reorder(const OnednnConv2d& conv, const dnnl::primitive& reorder, const Desc& from_desc,
                        const float* from, const Desc& to_desc, float* to) {
  dnnl::stream stream(conv.engine);
  reorder.execute(stream, {{DNNL_ARG_FROM, view(conv, from_desc, from)}, {DNNL_ARG_TO, view(conv, to_desc, to)}});
}

/// An operand in the layout of the primitive: the caller's memory, or scratch that stands for it.
class Operand {
 public:
  /// `in` and `out` are null, or empty, where nothing is to be brought in or out.
  Operand(const OnednnConv2d& conv, KernelCache* cache, const dnnl::primitive* in, const dnnl::primitive* out,
          const Desc& plain, const Desc& wanted, const float* at)
      : conv_(conv),
        out_(out != nullptr && *out ? out : nullptr),
        plain_(plain),
        wanted_(wanted),
        at_(const_cast<float*>(at)),
        scratch_(cache, (in != nullptr && *in) || out_ != nullptr ? wanted.get_size() : 0) {
    if (in != nullptr && *in) run_reorder(conv_, *in, plain_, at_, wanted_, scratch_.as<float>());
  }
  [[nodiscard]] float* get() const { return scratch_.as<float>() != nullptr ? scratch_.as<float>() : at_; }
  [[nodiscard]] dnnl::memory memory() const { return view(conv_, wanted_, get()); }
  /// Brings a result back to the caller's memory.
  void finish() const {
    if (out_ != nullptr) run_reorder(conv_, *out_, wanted_, get(), plain_, at_);
  }

 private:
  const OnednnConv2d& conv_;
  const dnnl::primitive* out_;
  const Desc& plain_;
  const Desc& wanted_;
  float* at_;
  Scratch scratch_;
};

/// The batch in shards: some of `larger` images and the rest of one fewer, and a primitive for each size.
struct BatchShards {
  std::int64_t count = 0, larger = 0, with_larger = 0;
  std::shared_ptr<const OnednnConv2d> convs[2];

  BatchShards(ThreadPool& pool, ConvKind kind, const Conv2dShape& s, const CpuOptions& options) {
    const std::int64_t wanted = options.reproducible ? 8 : pool.num_threads();
    count = std::min(s.batch, wanted);
    larger = (s.batch + count - 1) / count;
    with_larger = s.batch - (larger - 1) * count;
    Conv2dShape part = s;
    part.batch = larger;
    convs[0] = find_conv2d(kind, part, options.cache);
    part.batch = larger - 1;
    if (with_larger < count) convs[1] = find_conv2d(kind, part, options.cache);
  }
  [[nodiscard]] bool usable() const { return convs[0] != nullptr && (with_larger == count || convs[1] != nullptr); }
  [[nodiscard]] const OnednnConv2d& conv(std::int64_t shard) const { return *convs[shard < with_larger ? 0 : 1]; }
  [[nodiscard]] std::int64_t first_image(std::int64_t shard) const {
    return shard * larger - std::max<std::int64_t>(0, shard - with_larger);
  }

  template <class Body>
  void run(ThreadPool& pool, const Conv2dShape& s, Body&& body) const {
    const double cost_ns = static_cast<double>(s.batch * s.out_rows() * s.out_cols() * s.out_channels) *
                           static_cast<double>(s.filter_rows * s.filter_cols * s.filter_channels()) / 30.0;
    pool.parallel_for(count, cost_ns / static_cast<double>(count), [&](std::int64_t begin, std::int64_t end) {
      const OnednnOneThread one_thread;
      for (std::int64_t shard = begin; shard < end; ++shard) body(conv(shard), shard, first_image(shard));
    });
  }
};

/// The filter in the layout of each of the two primitives, reordered once for all shards.
struct SharedFilter {
  const BatchShards& shards;
  Operand first, second;

  SharedFilter(const BatchShards& s, KernelCache* cache, const float* filter)
      : shards(s),
        first(make(*s.convs[0], cache, filter)),
        second(make(s.convs[1] == nullptr ? *s.convs[0] : *s.convs[1], cache, same_layout(s) ? first.get() : filter,
                    same_layout(s))) {}
  [[nodiscard]] dnnl::memory memory(std::int64_t shard) const {
    return shard < shards.with_larger ? first.memory() : second.memory();
  }

 private:
  static bool same_layout(const BatchShards& s) {
    return s.convs[1] == nullptr || s.convs[0]->filter == s.convs[1]->filter;
  }
  static Operand make(const OnednnConv2d& conv, KernelCache* cache, const float* at, bool ready = false) {
    return Operand(conv, cache, ready ? nullptr : &conv.to_filter, nullptr, conv.plain_filter, conv.filter, at);
  }
};

}  // namespace onednn

namespace onednn {
/// `kind` is forward or turned.
inline bool run_forward(ThreadPool& pool, ConvKind kind, const Conv2dShape& s, const float* input, const float* filter,
                        float* output, const CpuOptions& options) try {
  const BatchShards shards(pool, kind, s, options);
  if (!shards.usable()) return false;
  const SharedFilter weights(shards, options.cache, filter);
  const std::int64_t input_image = s.in_rows * s.in_cols * s.in_channels;
  const std::int64_t output_image = s.out_rows() * s.out_cols() * s.out_channels;
  shards.run(pool, s, [&](const OnednnConv2d& conv, std::int64_t shard, std::int64_t first) {
    const Operand x(conv, options.cache, &conv.to_input, nullptr, conv.plain_input, conv.input,
                    input + first * input_image);
    const Operand y(conv, options.cache, nullptr, &conv.from_output, conv.plain_output, conv.output,
                    output + first * output_image);
    const Scratch scratch(options.cache, conv.scratch.get_size());
    dnnl::stream stream(conv.engine);
    conv.primitive.execute(stream, {{DNNL_ARG_SRC, x.memory()},
                                    {DNNL_ARG_WEIGHTS, weights.memory(shard)},
                                    {DNNL_ARG_DST, y.memory()},
                                    {DNNL_ARG_SCRATCHPAD, view(conv, conv.scratch, scratch.as<float>())}});
    y.finish();
  });
  return true;
} catch (const dnnl::error&) {
  return false;
}
}  // namespace onednn

bool onednn_conv2d(ThreadPool& pool, const Conv2dShape& s, const float* input, const float* filter, float* output,
                   const CpuOptions& options) {
  return onednn::run_forward(pool, ConvKind::forward, s, input, filter, output, options);
}

bool onednn_conv2d_turned(ThreadPool& pool, const Conv2dShape& s, const float* input, const float* filter,
                          float* output, const CpuOptions& options) {
  return onednn::run_forward(pool, ConvKind::turned, s, input, filter, output, options);
}

bool onednn_conv2d_backward_input(ThreadPool& pool, const Conv2dShape& s, const float* filter, const float* grad_output,
                                  float* grad_input, const CpuOptions& options) try {
  const onednn::BatchShards shards(pool, ConvKind::backward_input, s, options);
  if (!shards.usable()) return false;
  const onednn::SharedFilter weights(shards, options.cache, filter);
  const std::int64_t input_image = s.in_rows * s.in_cols * s.in_channels;
  const std::int64_t output_image = s.out_rows() * s.out_cols() * s.out_channels;
  shards.run(pool, s, [&](const OnednnConv2d& conv, std::int64_t shard, std::int64_t first) {
    const onednn::Operand dy(conv, options.cache, &conv.to_output, nullptr, conv.plain_output, conv.output,
                             grad_output + first * output_image);
    const onednn::Operand dx(conv, options.cache, nullptr, &conv.from_input, conv.plain_input, conv.input,
                             grad_input + first * input_image);
    const Scratch scratch(options.cache, conv.scratch.get_size());
    dnnl::stream stream(conv.engine);
    conv.primitive.execute(stream, {{DNNL_ARG_DIFF_DST, dy.memory()},
                                    {DNNL_ARG_WEIGHTS, weights.memory(shard)},
                                    {DNNL_ARG_DIFF_SRC, dx.memory()},
                                    {DNNL_ARG_SCRATCHPAD, onednn::view(conv, conv.scratch, scratch.as<float>())}});
    dx.finish();
  });
  return true;
} catch (const dnnl::error&) {
  return false;
}

bool onednn_conv2d_backward_filter(ThreadPool& pool, const Conv2dShape& s, const float* input, const float* grad_output,
                                   float* grad_filter, const CpuOptions& options) try {
  const onednn::BatchShards shards(pool, ConvKind::backward_filter, s, options);
  if (!shards.usable()) return false;
  const std::int64_t input_image = s.in_rows * s.in_cols * s.in_channels;
  const std::int64_t output_image = s.out_rows() * s.out_cols() * s.out_channels;
  const std::int64_t size = s.filter_rows * s.filter_cols * s.filter_channels() * s.out_channels;
  // Each shard's gradient in HWIO; they are added in order.
  const Scratch parts(options.cache,
                      shards.count > 1 ? static_cast<std::size_t>(shards.count * size) * sizeof(float) : 0);
  shards.run(pool, s, [&](const OnednnConv2d& conv, std::int64_t shard, std::int64_t first) {
    const onednn::Operand x(conv, options.cache, &conv.to_input, nullptr, conv.plain_input, conv.input,
                            input + first * input_image);
    const onednn::Operand dy(conv, options.cache, &conv.to_output, nullptr, conv.plain_output, conv.output,
                             grad_output + first * output_image);
    const onednn::Operand dw(conv, options.cache, nullptr, &conv.from_filter, conv.plain_filter, conv.filter,
                             shards.count > 1 ? parts.as<float>() + shard * size : grad_filter);
    const Scratch scratch(options.cache, conv.scratch.get_size());
    dnnl::stream stream(conv.engine);
    conv.primitive.execute(stream, {{DNNL_ARG_SRC, x.memory()},
                                    {DNNL_ARG_DIFF_DST, dy.memory()},
                                    {DNNL_ARG_DIFF_WEIGHTS, dw.memory()},
                                    {DNNL_ARG_SCRATCHPAD, onednn::view(conv, conv.scratch, scratch.as<float>())}});
    dw.finish();
  });
  if (shards.count > 1) {
    for (std::int64_t i = 0; i < size; ++i) {
      float sum = parts.as<float>()[i];
      for (std::int64_t shard = 1; shard < shards.count; ++shard) sum += parts.as<float>()[shard * size + i];
      grad_filter[i] = sum;
    }
  }
  return true;
} catch (const dnnl::error&) {
  return false;
}

#else

bool onednn_conv2d(ThreadPool&, const Conv2dShape&, const float*, const float*, float*, const CpuOptions&) {
  return false;
}

bool onednn_conv2d_turned(ThreadPool&, const Conv2dShape&, const float*, const float*, float*, const CpuOptions&) {
  return false;
}

bool onednn_conv2d_backward_input(ThreadPool&, const Conv2dShape&, const float*, const float*, float*,
                                  const CpuOptions&) {
  return false;
}

bool onednn_conv2d_backward_filter(ThreadPool&, const Conv2dShape&, const float*, const float*, float*,
                                   const CpuOptions&) {
  return false;
}

#endif

}  // namespace dflow::cpu
