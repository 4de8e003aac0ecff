#pragma once

#include <dflow/kernels/cuda/bodies/elementwise.hpp>
#include <dflow/kernels/cuda/grid/error_slot.hpp>
#include <dflow/ops/linalg/element_types.hpp>

#include <cstdint>
#include <limits>

namespace dflow::cuda {

namespace detail {

template <class T>
DFLOW_FN bool is_finite_element(T x) {
  if constexpr (is_complex_element<T>) {
    return math::detail::is_finite(x);
  } else {
    return x - x == 0;
  }
}

}  // namespace detail

/// flags[i] = 1 for matrices [rows, columns], row by row, that hold infinity or NaN.
struct FlagMatricesArgs {
  std::int64_t n = 0;  ///< elements of all
  std::int64_t rows = 0, columns = 0;
  bool is_lower = false;  ///< elements above the diagonal do not count
  bool only_nan = false;  ///< infinities do not count
  const void* x = nullptr;
  std::uint32_t* flags = nullptr;  ///< one for each, 0 before
  ErrorSlot* errors = nullptr;     ///< null: a flag is no error
  std::uint32_t kernel = 0;
};

template <class T>
struct FlagMatricesBody {
  static constexpr const char* name = "matrices that are not finite";
  static constexpr bool has_barriers = false;
  using Args = FlagMatricesArgs;

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    for (std::int64_t i = thread.index(); i < args.n; i += thread.count()) {
      const std::int64_t row = i / args.columns % args.rows, column = i % args.columns;
      if (args.is_lower && column > row) continue;
      const T x = static_cast<const T*>(args.x)[i];
      if (args.only_nan ? x == x : detail::is_finite_element(x)) continue;
      thread.compare_and_swap(&args.flags[i / (args.rows * args.columns)], 0u, 1u);
      if (args.errors != nullptr)
        note_error(thread, args.errors, args.kernel, [](ErrorSlot& slot) { slot.detail = 1; });
    }
  }
};

/// y[i] = 0, or NaN if `by_nan`, where flags[i / size] is not 0.
struct ReplaceFlaggedArgs {
  std::int64_t n = 0;
  std::int64_t size = 1;  ///< elements for each flag
  const std::uint32_t* flags = nullptr;
  void* y = nullptr;
  bool by_nan = false;  ///< else by 0
};

template <class T>
struct ReplaceFlaggedBody {
  static constexpr const char* name = "replace flagged matrices";
  static constexpr bool has_barriers = false;
  using Args = ReplaceFlaggedArgs;

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    for (std::int64_t i = thread.index(); i < args.n; i += thread.count()) {
      if (args.flags[i / args.size] == 0) continue;
      static_cast<T*>(args.y)[i] = args.by_nan ? T(std::numeric_limits<float>::quiet_NaN()) : T(0);
    }
  }
};

/// Notes an error if a diagonal of matrices [n, n] has an element that is 0 or NaN. If elements must be positive,
/// notes an error if one is not a finite number above 0.
struct CheckDiagonalArgs {
  std::int64_t count = 0, n = 0;
  const void* a = nullptr;
  bool must_be_positive = false;
  ErrorSlot* errors = nullptr;
  std::uint32_t kernel = 0;
};

template <class T>
struct CheckDiagonalBody {
  static constexpr const char* name = "check diagonals";
  static constexpr bool has_barriers = false;
  using Args = CheckDiagonalArgs;

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    for (std::int64_t i = thread.index(); i < args.count * args.n; i += thread.count()) {
      const T x = static_cast<const T*>(args.a)[i / args.n * args.n * args.n + i % args.n * (args.n + 1)];
      if (args.must_be_positive ? is_positive(x) : x == x && x != T(0)) continue;
      note_error(thread, args.errors, args.kernel, [](ErrorSlot& slot) { slot.detail = 1; });
    }
  }

 private:
  DFLOW_FN static bool is_positive(T x) {
    if constexpr (is_complex_element<T>) {
      return x.real() > 0 && x.real() - x.real() == 0;
    } else {
      return x > 0 && x - x == 0;
    }
  }
};

/// Notes an error where a library's info is not 0.
struct CheckInfoArgs {
  std::int64_t count = 0;
  const std::int32_t* info = nullptr;
  ErrorSlot* errors = nullptr;
  std::uint32_t kernel = 0;
};

struct CheckInfoBody {
  static constexpr const char* name = "check decompositions";
  static constexpr bool has_barriers = false;
  using Args = CheckInfoArgs;

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    for (std::int64_t i = thread.index(); i < args.count; i += thread.count()) {
      if (args.info[i] == 0) continue;
      note_error(thread, args.errors, args.kernel, [](ErrorSlot& slot) { slot.detail = 1; });
    }
  }
};

/// Replaces pivots [count, n] that name no row by valid ones: for a singular matrix a library may leave any value
/// there.
struct SettlePivotsArgs {
  std::int64_t count = 0, n = 0;
  const std::int32_t* info = nullptr;
  std::int64_t* pivots = nullptr;
};

struct SettlePivotsBody {
  static constexpr const char* name = "settle pivots";
  static constexpr bool has_barriers = false;
  using Args = SettlePivotsArgs;

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    for (std::int64_t i = thread.index(); i < args.count * args.n; i += thread.count()) {
      const std::int64_t row = i % args.n + 1;
      std::int64_t& pivot = args.pivots[i];
      if (args.info[i / args.n] != 0 || pivot < row || pivot > args.n) pivot = row;
    }
  }
};

/// y[i] is the determinant of matrix i from its factors: the product of the diagonal, with the opposite sign if an odd
/// number of rows changed places. It is 0 if the factorisation met a pivot of 0.
struct DeterminantArgs {
  std::int64_t count = 0, n = 0;
  const void* factors = nullptr;
  const std::int64_t* pivots = nullptr;
  const std::int32_t* info = nullptr;
  void* y = nullptr;
};

template <class T>
struct DeterminantBody {
  static constexpr const char* name = "determinants";
  static constexpr bool has_barriers = false;
  using Args = DeterminantArgs;

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    for (std::int64_t i = thread.index(); i < args.count; i += thread.count()) {
      const T* const a = static_cast<const T*>(args.factors) + i * args.n * args.n;
      T product(1);
      for (std::int64_t k = 0; k < args.n; ++k) {
        const T factor = a[k * (args.n + 1)];
        product = product * (args.pivots[i * args.n + k] == k + 1 ? factor : -factor);
      }
      static_cast<T*>(args.y)[i] = args.info[i] > 0 ? T(0) : product;
    }
  }
};

/// Matrices [rows, columns] with ones on their main diagonal and zeros elsewhere.
struct IdentityArgs {
  std::int64_t n = 0;  ///< elements of all
  std::int64_t rows = 0, columns = 0;
  void* y = nullptr;
};

template <class T>
struct IdentityBody {
  static constexpr const char* name = "identity matrices";
  static constexpr bool has_barriers = false;
  using Args = IdentityArgs;

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    for (std::int64_t i = thread.index(); i < args.n; i += thread.count()) {
      static_cast<T*>(args.y)[i] = i / args.columns % args.rows == i % args.columns ? T(1) : T(0);
    }
  }
};

/// y[i] = conj(x[i]); of real numbers x[i]. y may be x.
struct ConjugateArgs {
  std::int64_t n = 0;
  const void* x = nullptr;
  void* y = nullptr;
};

template <class T>
struct ConjugateBody {
  static constexpr const char* name = "conjugate";
  static constexpr bool has_barriers = false;
  using Args = ConjugateArgs;

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    for (std::int64_t i = thread.index(); i < args.n; i += thread.count()) {
      T x = static_cast<const T*>(args.x)[i];
      if constexpr (is_complex_element<T>) x = T(x.real(), -x.imag());
      static_cast<T*>(args.y)[i] = x;
    }
  }
};

/// Adds to the diagonals of matrices [n, n].
struct AddDiagonalArgs {
  std::int64_t count = 0, n = 0;
  double summand = 0;
  void* a = nullptr;
};

template <class T>
struct AddDiagonalBody {
  static constexpr const char* name = "add to diagonals";
  static constexpr bool has_barriers = false;
  using Args = AddDiagonalArgs;

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    for (std::int64_t i = thread.index(); i < args.count * args.n; i += thread.count()) {
      T& x = static_cast<T*>(args.a)[i / args.n * args.n * args.n + i % args.n * (args.n + 1)];
      x = x + T(args.summand);
    }
  }
};

/// Divides row i of w [count, rows, columns] by values[i], and makes it 0 where that is below `threshold` of the first.
struct DivideRowsArgs {
  std::int64_t n = 0;  ///< elements of w
  std::int64_t rows = 0, columns = 0;
  double threshold = 0;
  const double* values = nullptr;  ///< [count, rows], descending
  void* w = nullptr;
};

template <class T>
struct DivideRowsBody {
  static constexpr const char* name = "divide by singular values";
  static constexpr bool has_barriers = false;
  using Args = DivideRowsArgs;

  template <class Thread>
  DFLOW_FN static void run(const Thread& thread, const Args& args) {
    for (std::int64_t i = thread.index(); i < args.n; i += thread.count()) {
      const std::int64_t row = i / args.columns;
      const double value = args.values[row], first = args.values[row / args.rows * args.rows];
      T& x = static_cast<T*>(args.w)[i];
      x = value > args.threshold * first ? x / T(value) : value == value ? T(0) : T(value);
    }
  }
};

namespace detail {

template <class Elements>
struct LinalgBodiesOf;
template <class... Ts>
struct LinalgBodiesOf<TypeList<Ts...>> {
  using type =
      TypeList<FlagMatricesBody<Ts>..., ReplaceFlaggedBody<Ts>..., CheckDiagonalBody<Ts>..., DeterminantBody<Ts>...,
               IdentityBody<Ts>..., ConjugateBody<Ts>..., CheckInfoBody, SettlePivotsBody>;
};

}  // namespace detail

using LinalgBodies = concat_t<typename detail::LinalgBodiesOf<detail::DeviceElements<LinalgTypes>>::type,
                              TypeList<AddDiagonalBody<double>, AddDiagonalBody<math::Complex<double>>,
                                       DivideRowsBody<double>, DivideRowsBody<math::Complex<double>>>>;

}  // namespace dflow::cuda
