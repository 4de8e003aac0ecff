#pragma once

/// Public: numbers that record the operations on them, for elementwise ops in chains.

#include <dflow/base/function_ref.hpp>
#include <dflow/op/dual.hpp>
#include <dflow/op/elementwise.hpp>
#include <dflow/op/formula.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

namespace dflow {

/// A number that is not known yet. An elementwise op's expression is evaluated on it, and the operations on it become
/// the steps of a `Formula`. A comparison gives one answer, then the other: the expression is evaluated for each way
/// through it, and the formula chooses where two ways part.
///
/// Constants are made explicitly, `T(2)`, because `x * 0.5` may be computed in another type than T. `Symbol` has no
/// `std::numeric_limits`, because the limits differ by type; code that asks for the limits does not compile.
///
/// Thread safety: used by the thread that records.
class Symbol {
 public:
  Symbol() : Symbol(0) {}
  template <class N>
    requires std::is_arithmetic_v<N>
  explicit(!std::same_as<N, bool>) Symbol(N value) {  // NOLINT(google-explicit-constructor): a truth is a number, too
    constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
    if constexpr (std::is_unsigned_v<N> && sizeof(N) == sizeof(most)) {
      if (value > most) refuse();
    }
    if constexpr (std::is_integral_v<N>) {
      step_ = constant({.is_whole = true, .whole = static_cast<std::int64_t>(value)});
    } else {
      step_ = constant({.real = static_cast<double>(value)});
    }
  }

  explicit operator bool() const { return *this != Symbol(0); }

  friend Symbol operator+(Symbol a, Symbol b) { return made(Formula::Operation::add, a, b); }
  friend Symbol operator-(Symbol a, Symbol b) { return made(Formula::Operation::subtract, a, b); }
  friend Symbol operator*(Symbol a, Symbol b) { return made(Formula::Operation::multiply, a, b); }
  friend Symbol operator/(Symbol a, Symbol b) { return made(Formula::Operation::divide, a, b); }
  friend Symbol operator-(Symbol a) { return made(Formula::Operation::negate, a); }
  friend Symbol operator+(Symbol a) { return a; }
  friend bool operator<(Symbol a, Symbol b) { return decided(Formula::Operation::less, a, b); }
  friend bool operator<=(Symbol a, Symbol b) { return decided(Formula::Operation::less_equal, a, b); }
  friend bool operator>(Symbol a, Symbol b) { return b < a; }
  friend bool operator>=(Symbol a, Symbol b) { return b <= a; }
  friend bool operator==(Symbol a, Symbol b) { return decided(Formula::Operation::equal, a, b); }
  friend bool operator!=(Symbol a, Symbol b) { return decided(Formula::Operation::not_equal, a, b); }
  Symbol& operator+=(Symbol b) { return *this = *this + b; }
  Symbol& operator-=(Symbol b) { return *this = *this - b; }
  Symbol& operator*=(Symbol b) { return *this = *this * b; }
  Symbol& operator/=(Symbol b) { return *this = *this / b; }

  // `ElementwiseMath` calls the members; dual numbers call the friends.
#define DFLOW_FUNCTION_OF_ONE(function, operation)                                    \
  static Symbol function(Symbol x) { return made(Formula::Operation::operation, x); } \
  friend Symbol function(Symbol x) { return made(Formula::Operation::operation, x); }
#define DFLOW_FUNCTION_OF_TWO(function, operation)                                                 \
  static Symbol function(Symbol a, Symbol b) { return made(Formula::Operation::operation, a, b); } \
  friend Symbol function(Symbol a, Symbol b) { return made(Formula::Operation::operation, a, b); }
  DFLOW_FUNCTION_OF_ONE(exp, exp)
  DFLOW_FUNCTION_OF_ONE(log, log)
  DFLOW_FUNCTION_OF_ONE(log1p, log1p)
  DFLOW_FUNCTION_OF_ONE(expm1, expm1)
  DFLOW_FUNCTION_OF_ONE(sqrt, sqrt)
  DFLOW_FUNCTION_OF_ONE(sin, sin)
  DFLOW_FUNCTION_OF_ONE(cos, cos)
  DFLOW_FUNCTION_OF_ONE(tan, tan)
  DFLOW_FUNCTION_OF_ONE(tanh, tanh)
  DFLOW_FUNCTION_OF_ONE(sinh, sinh)
  DFLOW_FUNCTION_OF_ONE(cosh, cosh)
  DFLOW_FUNCTION_OF_ONE(atan, atan)
  DFLOW_FUNCTION_OF_ONE(erf, erf)
  DFLOW_FUNCTION_OF_ONE(erfc, erfc)
  DFLOW_FUNCTION_OF_ONE(floor, floor)
  DFLOW_FUNCTION_OF_ONE(ceil, ceil)
  DFLOW_FUNCTION_OF_ONE(rint, rint)
  DFLOW_FUNCTION_OF_ONE(lgamma, lgamma)
  DFLOW_FUNCTION_OF_ONE(abs, absolute)
  DFLOW_FUNCTION_OF_TWO(fmod, remainder)
  DFLOW_FUNCTION_OF_TWO(pow, power)
  DFLOW_FUNCTION_OF_TWO(max, maximum)
  DFLOW_FUNCTION_OF_TWO(min, minimum)
#undef DFLOW_FUNCTION_OF_ONE
#undef DFLOW_FUNCTION_OF_TWO

 private:
  friend class FormulaRecorder;

  /// The expression has no formula.
  [[noreturn]] static void refuse();
  static std::int32_t constant(const Formula::Step& step);
  static Symbol made(Formula::Operation operation, Symbol a);
  static Symbol made(Formula::Operation operation, Symbol a, Symbol b);
  static bool decided(Formula::Operation operation, Symbol a, Symbol b);

  std::int32_t step_ = -1;  ///< of the formula that this thread records
};

}  // namespace dflow

/// The limits are not known. An op that needs them uses the limits of `T` in its own kernel, without a formula.
template <>
class std::numeric_limits<dflow::Symbol>;

namespace dflow {

/// The result of one evaluation of an expression: a number, or a truth.
struct SymbolicResult {
  Symbol number;
  bool truth = false;
};

inline constexpr std::size_t max_formula_ways = 64;
inline constexpr std::size_t max_formula_steps = 1024;

/// The steps of an expression of `num_arguments` arguments. None if it has more than `max_formula_ways` ways through
/// it, takes more than `max_formula_steps`, or has an unsigned constant that is no `std::int64_t`. The formula holds
/// for every type in `types` that all its functions support. The caller sets the formula's rounding and shapes.
std::optional<Formula> record_formula(int num_arguments, bool gives_truth, std::uint32_t types,
                                      FunctionRef<SymbolicResult(const Symbol* arguments)> evaluate);

namespace detail {

template <class O, class T, std::size_t... I>
constexpr bool refuses_elements(std::index_sequence<I...>) {
  return ChecksElements<O, For<T, I>...>;
}

/// The element types that the op's formula holds for. Complex numbers are left out, and so are types with checked
/// elements. Integers narrower than int are computed in int unless an expression says otherwise. The library's
/// expressions do; other ops have no formula for narrow integers.
template <class O, class... Ts>
constexpr std::uint32_t formula_types(TypeList<Ts...>) {
  constexpr auto holds = []<class T>() {
    if (refuses_elements<O, T>(ArgumentsOf<O>{})) return false;
    if (is_floating_element<T> || std::same_as<T, bool>) return true;
    return is_integer_element<T> && (O::in_library || sizeof(T) >= sizeof(int));
  };
  return ((holds.template operator()<Ts>() ? dtype_mask<TypeList<Ts>> : 0u) | ...);
}

template <ElementwiseOpType O, std::size_t... I>
std::optional<Formula> formula_of(std::index_sequence<I...>) {
  constexpr bool gives_truth = is_predicate<O>;
  constexpr std::uint32_t types = formula_types<O>(element_t<0, typename O::TypeParams>{});
  std::optional<Formula> formula =
      record_formula(static_cast<int>(sizeof...(I)), gives_truth, types, [](const Symbol* x) -> SymbolicResult {
        if constexpr (gives_truth) {
          return {{}, O::template apply<Symbol>(x[I]...)};
        } else {
          return {O::template apply<Symbol>(x[I]...), false};
        }
      });
  if (!formula) return formula;
  formula->rounds_once = O::in_library;
  if constexpr (requires { O::broadcasts; }) {
    formula->shapes = O::broadcasts ? Formula::Shapes::broadcast : Formula::Shapes::same;
  }
  return formula;
}

}  // namespace detail

/// The op's expression as a formula, recorded on first use; null if the expression has none (`record_formula`).
template <ElementwiseOpType O>
const Formula* formula_of() {
  static const std::optional<Formula> formula = detail::formula_of<O>(ArgumentsOf<O>{});
  return formula ? &*formula : nullptr;
}

}  // namespace dflow
