#pragma once

#include <dflow/base/function_ref.hpp>
#include <dflow/kernels/cuda/grid/kernel_function.hpp>

#include <cstddef>
#include <cstdint>

namespace dflow::cuda {

class EmulatedBlock;

/// The thread on the host, as the body of a kernel sees it.
class EmulatedThread {
 public:
  EmulatedThread(GridShape shape, std::uint32_t block, std::uint32_t index, EmulatedBlock* of) noexcept
      : shape_(shape), block_(block), index_(index), of_(of) {}

  std::uint32_t index_in_block() const noexcept { return index_; }
  std::uint32_t block() const noexcept { return block_; }
  std::uint32_t threads() const noexcept { return shape_.threads; }
  std::uint32_t blocks() const noexcept { return shape_.blocks; }
  std::int64_t index() const noexcept { return std::int64_t{block_} * shape_.threads + index_; }
  std::int64_t count() const noexcept { return std::int64_t{shape_.blocks} * shape_.threads; }

  /// Lets the block's other threads go on until all have come to a barrier or to their end.
  void barrier() const;

  template <class Shared>
  Shared& shared() const;

  template <class T>
  T add(T* to, T value) const {
    const T before = *to;
    *to = static_cast<T>(before + value);
    return before;
  }
  std::uint32_t compare_and_swap(std::uint32_t* at, std::uint32_t expected, std::uint32_t wanted) const {
    const std::uint32_t found = *at;
    if (found == expected) *at = wanted;
    return found;
  }

 private:
  GridShape shape_;
  std::uint32_t block_;
  std::uint32_t index_;
  EmulatedBlock* of_;  ///< null where the body has no barriers
};

/// A block whose threads meet at barriers. Each thread is a fibre with a stack of its own, and one fibre runs at a
/// time.
///
/// Thread safety: used by one thread.
class EmulatedBlock {
 public:
  /// Runs `body(thread index)` for every thread of a block, between two barriers in the order that `order` chooses.
  /// Throws Internal if threads end while others wait at a barrier.
  static void run(std::uint32_t threads, std::uint64_t order, FunctionRef<void(EmulatedBlock&, std::uint32_t)> body);

  void barrier();
  /// The block's own memory: uninitialised, which AddressSanitizer cannot tell, so its bytes are a pattern.
  void* shared(std::size_t bytes);

 private:
  struct Fibre;
  struct State;
  explicit EmulatedBlock(State& state) noexcept : state_(&state) {}

  State* state_;
};

inline void EmulatedThread::barrier() const { of_->barrier(); }

template <class Shared>
Shared& EmulatedThread::shared() const {
  return *static_cast<Shared*>(of_->shared(sizeof(Shared)));
}

namespace detail {

/// Counts from 0 to n - 1 in an order that `order` chooses: forwards, backwards, or strided.
class GridOrder {
 public:
  GridOrder(std::uint32_t n, std::uint64_t order) noexcept : n_(n), kind_(order % 3) {}
  std::uint32_t operator()(std::uint32_t i) const noexcept {
    if (kind_ == 0) return i;
    if (kind_ == 1) return n_ - 1 - i;
    // Even ones, then odd ones backwards.
    const std::uint32_t even = (n_ + 1) / 2;
    return i < even ? 2 * i : 2 * (n_ - 1 - i) + 1;
  }

 private:
  std::uint32_t n_;
  std::uint64_t kind_;
};

}  // namespace detail

/// Runs a body over a grid on the host.
template <class Body>
void emulate(GridShape shape, const void* arguments, std::uint64_t order) {
  const auto& args = *static_cast<const typename Body::Args*>(arguments);
  const detail::GridOrder blocks(shape.blocks, order), threads(shape.threads, order / 3);
  for (std::uint32_t b = 0; b < shape.blocks; ++b) {
    const std::uint32_t block = blocks(b);
    if constexpr (Body::has_barriers) {
      EmulatedBlock::run(shape.threads, order / 3, [&](EmulatedBlock& of, std::uint32_t index) {
        Body::run(EmulatedThread(shape, block, index, &of), args);
      });
    } else {
      for (std::uint32_t t = 0; t < shape.threads; ++t)
        Body::run(EmulatedThread(shape, block, threads(t), nullptr), args);
    }
  }
}

}  // namespace dflow::cuda
