#pragma once

#include <dflow/core/broadcast_walk.hpp>
#include <dflow/kernels/cpu/cpu_kernel.hpp>
#include <dflow/kernels/cpu/elementwise/kernel.hpp>
#include <dflow/kernels/shared/elementwise_output.hpp>
#include <dflow/op/derivative.hpp>

#include <algorithm>
#include <atomic>

namespace dflow::cpu {

namespace detail {

static_assert(dflow::detail::most_derivative_arguments <= BroadcastWalk::max_inputs);

/// The size in bytes of the blocks for repeated or gathered inputs.
inline constexpr std::int64_t block_bytes = 4096;

/// A place in the walk: the index along each dimension and the element of each input there.
struct WalkPosition {
  std::int64_t index[max_rank] = {};
  std::int64_t offset[BroadcastWalk::max_inputs] = {};

  WalkPosition(const BroadcastWalk& walk, int num_inputs, std::int64_t element) {
    for (int d = walk.rank - 1; d >= 0; --d) {
      index[d] = element % walk.extents[d];
      element /= walk.extents[d];
      for (int i = 0; i < num_inputs; ++i) offset[i] += index[d] * walk.strides[i][d];
    }
  }
  /// Steps by `n` elements along the last dimension, and not past its end.
  void advance(const BroadcastWalk& walk, int num_inputs, std::int64_t n) {
    int d = walk.rank - 1;
    index[d] += n;
    for (int i = 0; i < num_inputs; ++i) offset[i] += n * walk.strides[i][d];
    for (; d > 0 && index[d] == walk.extents[d]; --d) {
      index[d] = 0;
      ++index[d - 1];
      for (int i = 0; i < num_inputs; ++i) offset[i] += walk.strides[i][d - 1] - walk.extents[d] * walk.strides[i][d];
    }
  }
};

template <std::size_t bytes>
struct Cell {
  unsigned char value[bytes];
};

template <std::size_t bytes>
void fill_cells(std::int64_t n, const void* from, void* to) {
  const Cell<bytes> cell = *static_cast<const Cell<bytes>*>(from);
  std::fill_n(static_cast<Cell<bytes>*>(to), n, cell);
}

/// to[0, n) = from[0].
void fill_elements(std::size_t bytes, std::int64_t n, const void* from, void* to) {
  switch (bytes) {
    case 1:
      return fill_cells<1>(n, from, to);
    case 2:
      return fill_cells<2>(n, from, to);
    case 4:
      return fill_cells<4>(n, from, to);
    case 8:
      return fill_cells<8>(n, from, to);
    default:
      return fill_cells<16>(n, from, to);
  }
}

template <std::size_t bytes>
void gather_cells(const BroadcastWalk& walk, int input, std::int64_t n, const WalkPosition& position, const void* from,
                  void* to) {
  const Cell<bytes>* source = static_cast<const Cell<bytes>*>(from) + position.offset[input];
  auto* target = static_cast<Cell<bytes>*>(to);
  const int last = walk.rank - 1;
  const std::int64_t* strides = walk.strides[input];
  const bool repeated = strides[last] == 0;
  std::int64_t index[max_rank];
  std::copy_n(position.index, walk.rank, index);
  source -= index[last] * strides[last];  // to the start of the run
  std::int64_t skipped = index[last];
  while (n > 0) {
    const std::int64_t end = std::min(n + skipped, walk.inner);
    if (repeated) {
      for (std::int64_t k = skipped; k < end; ++k) *target++ = *source;
    } else {
      for (std::int64_t k = skipped; k < end; ++k) *target++ = source[k];
    }
    n -= end - skipped;
    skipped = 0;
    for (int d = last - 1; d >= 0; --d) {
      source += strides[d];
      if (++index[d] < walk.extents[d]) break;
      source -= strides[d] * walk.extents[d];
      index[d] = 0;
    }
  }
}

/// to[0, n) = the next n elements of input `input` in the walk. `from` is the input's first element.
void gather_elements(const BroadcastWalk& walk, int input, std::size_t bytes, std::int64_t n,
                     const WalkPosition& position, const void* from, void* to) {
  switch (bytes) {
    case 1:
      return gather_cells<1>(walk, input, n, position, from, to);
    case 2:
      return gather_cells<2>(walk, input, n, position, from, to);
    case 4:
      return gather_cells<4>(walk, input, n, position, from, to);
    case 8:
      return gather_cells<8>(walk, input, n, position, from, to);
    default:
      return gather_cells<16>(walk, input, n, position, from, to);
  }
}

/// One elementwise op on given tensors.
class ElementwiseRun {
 public:
  ElementwiseRun(const ElementwiseCode& code, std::span<const AnyTensor* const> inputs, AnyTensor& y)
      : code_(code), num_inputs_(static_cast<int>(inputs.size())), y_(static_cast<std::byte*>(y.raw_data())) {
    for (std::size_t i = 0; i < inputs.size(); ++i) inputs_[i] = static_cast<const std::byte*>(inputs[i]->raw_data());
  }

  const char* dense(std::int64_t begin, std::int64_t end) const {
    const void* inputs[BroadcastWalk::max_inputs];
    for (int i = 0; i < num_inputs_; ++i) inputs[i] = inputs_[i] + begin * code_.input_bytes;
    return code_.dense(end - begin, inputs, y_ + begin * code_.output_bytes, code_.max_level);
  }

  /// Elements [begin, end) of the output, a run of the walk's last dimension at a time.
  const char* by_rows(const BroadcastWalk& walk, std::int64_t begin, std::int64_t end) const {
    WalkPosition position(walk, num_inputs_, begin);
    while (begin < end) {
      const std::int64_t n = std::min(end - begin, walk.inner - position.index[walk.rank - 1]);
      const void* inputs[BroadcastWalk::max_inputs];
      for (int i = 0; i < num_inputs_; ++i) inputs[i] = inputs_[i] + position.offset[i] * code_.input_bytes;
      if (const char* wrong = row(n, inputs, walk.inner_repeated, y_ + begin * code_.output_bytes)) return wrong;
      position.advance(walk, num_inputs_, n);
      begin += n;
    }
    return nullptr;
  }

  /// The same for short runs: inputs are gathered into blocks first.
  const char* by_blocks(const BroadcastWalk& walk, std::int64_t block, std::int64_t begin, std::int64_t end) const {
    alignas(64) std::byte blocks[BroadcastWalk::max_inputs][block_bytes];
    bool is_dense[BroadcastWalk::max_inputs], is_kept[BroadcastWalk::max_inputs];
    for (int i = 0; i < num_inputs_; ++i) {
      is_dense[i] = walk.is_dense(static_cast<std::size_t>(i));
      const std::int64_t period = walk.period(static_cast<std::size_t>(i));
      is_kept[i] = period != 0 && block % period == 0;  // the same in each block
    }
    for (const std::int64_t first = begin; begin < end; begin += block) {
      const std::int64_t n = std::min(block, end - begin);
      const WalkPosition position(walk, num_inputs_, begin);
      const void* inputs[BroadcastWalk::max_inputs];
      for (int i = 0; i < num_inputs_; ++i) {
        inputs[i] = is_dense[i] ? inputs_[i] + begin * code_.input_bytes : blocks[i];
        if (is_dense[i] || (is_kept[i] && begin != first)) continue;
        gather_elements(walk, i, code_.input_bytes, n, position, inputs_[i], blocks[i]);
      }
      if (const char* wrong = code_.dense(n, inputs, y_ + begin * code_.output_bytes, code_.max_level)) return wrong;
    }
    return nullptr;
  }

 private:
  /// Computes n elements. Inputs in `repeated` are one element.
  const char* row(std::int64_t n, const void* const* inputs, unsigned repeated, std::byte* y) const {
    if (repeated == 0) return code_.dense(n, inputs, y, code_.max_level);
    if (repeated == 1 && code_.first_repeated != nullptr) return code_.first_repeated(n, inputs, y, code_.max_level);
    if (repeated == 2 && code_.second_repeated != nullptr) return code_.second_repeated(n, inputs, y, code_.max_level);
    alignas(64) std::byte blocks[BroadcastWalk::max_inputs][block_bytes];
    const std::int64_t block = code_.copies_as_bytes ? block_bytes / code_.input_bytes : 1;
    const void* at[BroadcastWalk::max_inputs];
    for (int i = 0; i < num_inputs_; ++i) {
      at[i] = inputs[i];
      if (!code_.copies_as_bytes || (repeated >> i & 1u) == 0) continue;
      fill_elements(code_.input_bytes, std::min(n, block), inputs[i], blocks[i]);
      at[i] = blocks[i];
    }
    for (; n > 0; n -= block) {
      const std::int64_t count = std::min(n, block);
      if (const char* wrong = code_.dense(count, at, y, code_.max_level)) return wrong;
      y += count * code_.output_bytes;
      for (int i = 0; i < num_inputs_; ++i) {
        if ((repeated >> i & 1u) == 0) at[i] = static_cast<const std::byte*>(at[i]) + count * code_.input_bytes;
      }
    }
    return nullptr;
  }

  const ElementwiseCode& code_;
  int num_inputs_;
  const std::byte* inputs_[BroadcastWalk::max_inputs];
  std::byte* y_;
};

/// Runs `part(begin, end)` over [0, total) on the pool and returns one of the errors, if there are any.
template <class Part>
const char* split(ThreadPool& pool, std::int64_t total, double ns_per_element, std::int64_t align, const Part& part) {
  if (static_cast<double>(total) * ns_per_element < pool.min_split_ns()) return part(0, total);
  std::atomic<const char*> complaint{nullptr};
  pool.parallel_for(
      total, ns_per_element,
      [&](std::int64_t begin, std::int64_t end) {
        if (const char* wrong = part(begin, end)) complaint.store(wrong, std::memory_order_relaxed);
      },
      align);
  return complaint.load(std::memory_order_relaxed);
}

const char* run_dense(ThreadPool& pool, const ElementwiseCode& code, std::span<const AnyTensor* const> inputs,
                      AnyTensor& y) {
  const ElementwiseRun run(code, inputs, y);
  return split(pool, y.num_elements(), code.ns_per_element, 64,
               [&](std::int64_t begin, std::int64_t end) { return run.dense(begin, end); });
}

const char* run_broadcast(ThreadPool& pool, const ElementwiseCode& code, std::span<const AnyTensor* const> inputs,
                          AnyTensor& y) {
  const std::int64_t total = y.num_elements();
  const BroadcastWalk walk(inputs, y.shape());
  const ElementwiseRun run(code, inputs, y);
  if (walk.rank == 0) return run.dense(0, 1);
  constexpr std::int64_t short_run = 32;
  if (walk.inner >= short_run || walk.rank == 1 || !code.copies_as_bytes) {
    return split(pool, total, code.ns_per_element, 64,
                 [&](std::int64_t begin, std::int64_t end) { return run.by_rows(walk, begin, end); });
  }
  std::int64_t block = block_bytes / code.input_bytes;
  std::int64_t longest = 1;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::int64_t period = walk.period(i);
    if (period <= block) longest = std::max(longest, period);
  }
  block -= block % longest;
  return split(pool, total, code.ns_per_element + 1, block,
               [&](std::int64_t begin, std::int64_t end) { return run.by_blocks(walk, block, begin, end); });
}

bool have_one_shape(std::span<const AnyTensor* const> tensors) {
  for (std::size_t i = 1; i < tensors.size(); ++i) {
    if (!(tensors[i]->shape() == tensors[0]->shape())) return false;
  }
  return true;
}

/// See make_elementwise_kernel.
class ElementwiseKernel final : public AnyKernel {
 public:
  ElementwiseKernel(const KernelInit& init, const ElementwiseCode& code)
      : AnyKernel({.splits = true}),
        code_(code),
        cost_ns_(30 + estimated_elements(init.node.outputs[0]) * static_cast<double>(code.ns_per_element)) {
    code_.max_level = allowed_cpu_level(init);
  }

  void run(KernelContext& context) const override {
    if (all_scalars(context)) return run_scalars(context);
    const AnyTensor* tensors[BroadcastWalk::max_inputs];
    for (int i = 0; i < code_.num_inputs; ++i) tensors[i] = &context.input(i);
    const std::span<const AnyTensor* const> inputs(tensors, code_.num_inputs);
    const bool one_shape = have_one_shape(inputs);
    AnyTensor& y = make_elementwise_output(
        context, code_.num_inputs,
        one_shape ? tensors[0]->shape() : broadcast_input_shapes(context, code_.num_inputs, code_.broadcasts));
    if (y.num_elements() == 0) return;
    const char* wrong =
        one_shape ? run_dense(context.pool(), code_, inputs, y) : run_broadcast(context.pool(), code_, inputs, y);
    if (wrong != nullptr) [[unlikely]]
      context.fail(wrong);
  }

  double cost_ns() const noexcept override { return cost_ns_; }

 private:
  bool all_scalars(const KernelContext& context) const noexcept {
    for (int i = 0; i < code_.num_inputs; ++i) {
      if (context.input(i).rank() != 0) return false;
    }
    return true;
  }

  void run_scalars(KernelContext& context) const {
    const void* inputs[BroadcastWalk::max_inputs];
    for (int i = 0; i < code_.num_inputs; ++i) inputs[i] = context.input(i).raw_data();
    const char* wrong =
        code_.dense(1, inputs, make_elementwise_output(context, code_.num_inputs, Shape()).raw_data(), code_.max_level);
    if (wrong != nullptr) [[unlikely]]
      context.fail(wrong);
  }

  ElementwiseCode code_;
  double cost_ns_;
};

}  // namespace detail

std::unique_ptr<AnyKernel> make_elementwise_kernel(const KernelInit& init, const ElementwiseCode& code) {
  return std::make_unique<detail::ElementwiseKernel>(init, code);
}

void run_elementwise(ThreadPool& pool, const ElementwiseCode& code, std::span<const AnyTensor* const> inputs,
                     AnyTensor& y) {
  if (y.num_elements() == 0) return;
  const bool is_dense = detail::have_one_shape(inputs) && inputs[0]->shape() == y.shape();
  const char* wrong =
      is_dense ? detail::run_dense(pool, code, inputs, y) : detail::run_broadcast(pool, code, inputs, y);
  if (wrong != nullptr) throw_error(Status::invalid_argument(wrong));
}

CpuLevel allowed_cpu_level(const KernelInit& init) noexcept {
  return init.device.state == nullptr ? CpuLevel::x86_64_v4 : init.device.state_as<CpuState>().options.max_level;
}

}  // namespace dflow::cpu
