#pragma once

#include <dflow/kernels/cuda/bodies/reductions.hpp>

#include <cstdint>

namespace dflow::cuda {

/// Arguments for [rows, columns]; the threads of a block compute a row together.
struct RowArgs {
  std::int64_t rows = 0, columns = 0;
  const void* x = nullptr;      ///< logits, or the output of the softmax
  const void* other = nullptr;  ///< [rows, columns]: labels, or the output's gradient; [rows]: classes
  void* y = nullptr;            ///< may be x, or the output's gradient
  void* loss = nullptr;         ///< [rows]
  ErrorSlot* errors = nullptr;
  std::uint32_t kernel = 0;
};

namespace detail {

inline constexpr std::uint32_t row_threads = 256;

template <class C>
struct RowShared {
  C parts[row_threads];
};

/// Reduces the values of all threads of the block with `R` and returns the result to each thread. R: of parts of C.
template <class R, class C, class Thread>
DFLOW_FN C joined_by_block(const Thread& thread, C value) {
  RowShared<C>& shared = thread.template shared<RowShared<C>>();
  const std::uint32_t index = thread.index_in_block();
  shared.parts[index] = value;
  for (std::uint32_t half = row_threads / 2; half > 0; half /= 2) {
    thread.barrier();
    if (index < half) shared.parts[index] = R::template combined<C>(shared.parts[index], shared.parts[index + half]);
  }
  thread.barrier();
  const C all = shared.parts[0];
  thread.barrier();
  return all;
}

/// The same of `value(column)` for the columns of this block's row.
template <class R, class C, class Thread, class Value>
DFLOW_FN C joined_of_row(const Thread& thread, std::int64_t columns, const Value& value) {
  C part = R::template first<C>();
  for (std::int64_t c = thread.index_in_block(); c < columns; c += row_threads) {
    part = R::template combined<C>(part, value(c));
  }
  return joined_by_block<R, C>(thread, part);
}

using Largest = ExtremeReduction<Maximum>;

/// A row's largest logit, and the sum of exp(logit - largest).
template <class C>
struct RowSums {
  C largest;
  C sum;
};
template <class C, class T, class Thread>
DFLOW_FN RowSums<C> row_sums(const Thread& thread, std::int64_t columns, const T* x) {
  RowSums<C> sums;
  sums.largest = joined_of_row<Largest, C>(thread, columns, [&](std::int64_t c) { return static_cast<C>(x[c]); });
  sums.sum = joined_of_row<SumReduction, C>(
      thread, columns, [&](std::int64_t c) { return math::exp(static_cast<C>(x[c]) - sums.largest); });
  return sums;
}

}  // namespace detail

/// y = softmax(x) of each row, or its logarithm.
template <class T, bool is_log>
struct SoftmaxBody {
  static constexpr const char* name = is_log ? "log softmax" : "softmax";
  static constexpr bool has_barriers = true;
  using Args = RowArgs;

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    using C = detail::WideType<T>;
    for (std::int64_t r = thread.block(); r < args.rows; r += thread.blocks()) {
      const T* const x = static_cast<const T*>(args.x) + r * args.columns;
      T* const y = static_cast<T*>(args.y) + r * args.columns;
      const detail::RowSums<C> sums = detail::row_sums<C>(thread, args.columns, x);
      const C log_of_sum = is_log ? math::log(sums.sum) : C(0);
      for (std::int64_t c = thread.index_in_block(); c < args.columns; c += detail::row_threads) {
        const C shifted = static_cast<C>(x[c]) - sums.largest;
        y[c] = static_cast<T>(is_log ? shifted - log_of_sum : math::exp(shifted) / sums.sum);
      }
    }
  }
};

/// x: the softmax, or its logarithm, other: the gradient of it; y: the gradient of the logits.
template <class T, bool is_log>
struct SoftmaxGradBody {
  static constexpr const char* name = is_log ? "log softmax gradient" : "softmax gradient";
  static constexpr bool has_barriers = true;
  using Args = RowArgs;

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    using C = detail::WideType<T>;
    for (std::int64_t r = thread.block(); r < args.rows; r += thread.blocks()) {
      const T* const y = static_cast<const T*>(args.x) + r * args.columns;
      const T* const dy = static_cast<const T*>(args.other) + r * args.columns;
      T* const dx = static_cast<T*>(args.y) + r * args.columns;
      const C sum = detail::joined_of_row<detail::SumReduction, C>(thread, args.columns, [&](std::int64_t c) {
        return is_log ? static_cast<C>(dy[c]) : static_cast<C>(dy[c]) * static_cast<C>(y[c]);
      });
      for (std::int64_t c = thread.index_in_block(); c < args.columns; c += detail::row_threads) {
        const C gradient = static_cast<C>(dy[c]), output = static_cast<C>(y[c]);
        dx[c] = static_cast<T>(is_log ? gradient - math::exp(output) * sum : (gradient - sum) * output);
      }
    }
  }
};

/// other: distributions. loss and y, the gradient of the loss.
template <class T>
struct CrossEntropyBody {
  static constexpr const char* name = "softmax cross entropy";
  static constexpr bool has_barriers = true;
  using Args = RowArgs;

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    using C = detail::WideType<T>;
    for (std::int64_t r = thread.block(); r < args.rows; r += thread.blocks()) {
      const T* const x = static_cast<const T*>(args.x) + r * args.columns;
      const T* const labels = static_cast<const T*>(args.other) + r * args.columns;
      T* const y = static_cast<T*>(args.y) + r * args.columns;
      const detail::RowSums<C> sums = detail::row_sums<C>(thread, args.columns, x);
      const C log_of_sum = math::log(sums.sum);
      // A class of no weight adds nothing, even where its logit is infinite.
      const C loss = detail::joined_of_row<detail::SumReduction, C>(thread, args.columns, [&](std::int64_t c) {
        const C label = static_cast<C>(labels[c]);
        return label == C(0) ? C(0) : label * (log_of_sum - (static_cast<C>(x[c]) - sums.largest));
      });
      if (thread.index_in_block() == 0) static_cast<T*>(args.loss)[r] = static_cast<T>(loss);
      for (std::int64_t c = thread.index_in_block(); c < args.columns; c += detail::row_threads) {
        y[c] = static_cast<T>(math::exp(static_cast<C>(x[c]) - sums.largest) / sums.sum - static_cast<C>(labels[c]));
      }
    }
  }
};

/// other: a class for each row, in [0, columns).
template <class T, class Index>
struct SparseCrossEntropyBody {
  static constexpr const char* name = "sparse softmax cross entropy";
  static constexpr bool has_barriers = true;
  using Args = RowArgs;

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    using C = detail::WideType<T>;
    for (std::int64_t r = thread.block(); r < args.rows; r += thread.blocks()) {
      const std::int64_t label = static_cast<std::int64_t>(static_cast<const Index*>(args.other)[r]);
      if (label < 0 || label >= args.columns) {
        if (thread.index_in_block() == 0) {
          note_error(thread, args.errors, args.kernel, [&](ErrorSlot& slot) {
            slot.position = r;
            *reinterpret_cast<std::int64_t*>(slot.values[0]) = label;
          });
        }
        continue;
      }
      const T* const x = static_cast<const T*>(args.x) + r * args.columns;
      T* const y = static_cast<T*>(args.y) + r * args.columns;
      const detail::RowSums<C> sums = detail::row_sums<C>(thread, args.columns, x);
      if (thread.index_in_block() == 0) {
        static_cast<T*>(args.loss)[r] = static_cast<T>(math::log(sums.sum) - (static_cast<C>(x[label]) - sums.largest));
      }
      thread.barrier();  // y may be x
      for (std::int64_t c = thread.index_in_block(); c < args.columns; c += detail::row_threads) {
        const C share = math::exp(static_cast<C>(x[c]) - sums.largest) / sums.sum;
        y[c] = static_cast<T>(c == label ? share - C(1) : share);
      }
    }
  }
};

namespace detail {

template <class Floats>
struct SoftmaxBodiesOf;
template <class... Ts>
struct SoftmaxBodiesOf<TypeList<Ts...>> {
  using type = concat_t<
      TypeList<SoftmaxBody<Ts, false>, SoftmaxBody<Ts, true>, SoftmaxGradBody<Ts, false>, SoftmaxGradBody<Ts, true>,
               CrossEntropyBody<Ts>, SparseCrossEntropyBody<Ts, std::int32_t>, SparseCrossEntropyBody<Ts, std::int64_t>,
               ReduceByThreadBody<HalfSquareReduction, Ts>, ReduceByBlockBody<HalfSquareReduction, Ts>>...>;
};

}  // namespace detail

/// The bodies of softmax, its losses and L2Loss.
using SoftmaxBodies = typename detail::SoftmaxBodiesOf<FloatTypes>::type;

}  // namespace dflow::cuda
