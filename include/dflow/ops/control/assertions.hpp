#pragma once

#include <dflow/op/build.hpp>
#include <dflow/ops/control/check.hpp>
#include <dflow/ops/math/compare.hpp>

#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

namespace dflow {

namespace detail {

/// A relation between the elements of two edges, as a check demands it.
enum class CheckedRelation : std::uint8_t { equal, less, less_equal };
/// A relation between the elements of an edge and 0.
enum class CheckedSign : std::uint8_t { negative, positive, non_negative, non_positive };

AnyOutput any_assert_relation(CheckedRelation relation, const AnyOutput& x, const AnyOutput& y,
                              std::string_view message, const At& at);
AnyOutput any_assert_sign(CheckedSign sign, const AnyOutput& x, std::string_view message, const At& at);
AnyOutput any_assert_order(bool strictly, const AnyOutput& x, std::string_view message, const At& at);
AnyOutput any_is_ordered(bool strictly, const AnyOutput& x, const At& at);
AnyOutput any_assert_rank(bool at_least, const AnyOutput& x, int rank, std::string_view message, const At& at);
/// x, once a step has found that all its elements are in [low, high]. The error gives x the name of `named`, from which
/// it was made, and says `range`. Precondition: x has an element type of `LessEqual`, which holds the limits.
AnyOutput any_assert_within(const AnyOutput& x, double low, double high, const AnyOutput& named, std::string_view range,
                            std::string_view message, const At& at);
AnyOutput any_verify_all_finite(const AnyOutput& x, std::string_view message, const At& at);

}  // namespace detail

// Checks, TensorFlow's assert_less and its kin. A check gives x back, and what reads the result runs after the check.
//
// ```cpp
// auto shares = df::assert_non_negative(weights, "weights of the classes");
// auto scaled = df::log(df::assert_less(x, limit));
// ```
// y may be a tensor or a literal; x and y broadcast. An edge without elements passes. A NaN passes no check.
//
// If both edges are constants, or shapes that the graph knows, the builder checks them and adds no nodes. Else a step
// does. As long as the check holds, a step compares the elements and no more.
//
// Errors: InvalidArgument, at once or when the step runs. It has `message`, the names of the edges, the first position
// where the check does not hold, the elements there, and the shapes.

/// x, if all its elements equal those of y.
template <AllowedFor<Equal> T>
Output<T> assert_equal(const Output<T>& x, const std::type_identity_t<Operand<T>>& y, std::string_view message = {},
                       const At& at = {}) {
  return Output<T>::unchecked(detail::any_assert_relation(detail::CheckedRelation::equal, x, y.beside(x), message, at));
}
/// x, if all its elements are less than those of y.
template <AllowedFor<Less> T>
Output<T> assert_less(const Output<T>& x, const std::type_identity_t<Operand<T>>& y, std::string_view message = {},
                      const At& at = {}) {
  return Output<T>::unchecked(detail::any_assert_relation(detail::CheckedRelation::less, x, y.beside(x), message, at));
}
/// x, if no element of it is greater than that of y.
template <AllowedFor<LessEqual> T>
Output<T> assert_less_equal(const Output<T>& x, const std::type_identity_t<Operand<T>>& y,
                            std::string_view message = {}, const At& at = {}) {
  return Output<T>::unchecked(
      detail::any_assert_relation(detail::CheckedRelation::less_equal, x, y.beside(x), message, at));
}

/// x, if all its elements are less than 0, greater than 0, at least 0, or at most 0.
template <AllowedFor<Less> T>
Output<T> assert_negative(const Output<T>& x, std::string_view message = {}, const At& at = {}) {
  return Output<T>::unchecked(detail::any_assert_sign(detail::CheckedSign::negative, x, message, at));
}
template <AllowedFor<Less> T>
Output<T> assert_positive(const Output<T>& x, std::string_view message = {}, const At& at = {}) {
  return Output<T>::unchecked(detail::any_assert_sign(detail::CheckedSign::positive, x, message, at));
}
template <AllowedFor<Less> T>
Output<T> assert_non_negative(const Output<T>& x, std::string_view message = {}, const At& at = {}) {
  return Output<T>::unchecked(detail::any_assert_sign(detail::CheckedSign::non_negative, x, message, at));
}
template <AllowedFor<Less> T>
Output<T> assert_non_positive(const Output<T>& x, std::string_view message = {}, const At& at = {}) {
  return Output<T>::unchecked(detail::any_assert_sign(detail::CheckedSign::non_positive, x, message, at));
}

/// x, if no element is less than the element before it, in row-major order. The position counts elements in that order.
template <AllowedFor<Less> T>
Output<T> assert_non_decreasing(const Output<T>& x, std::string_view message = {}, const At& at = {}) {
  return Output<T>::unchecked(detail::any_assert_order(false, x, message, at));
}
/// x, if each element is greater than the element before it, in row-major order.
template <AllowedFor<Less> T>
Output<T> assert_strictly_increasing(const Output<T>& x, std::string_view message = {}, const At& at = {}) {
  return Output<T>::unchecked(detail::any_assert_order(true, x, message, at));
}
/// Whether no element is less than the element before it, in row-major order: a scalar. Up to one element is in order.
template <AllowedFor<Less> T>
Output<bool> is_non_decreasing(const Output<T>& x, const At& at = {}) {
  return Output<bool>::unchecked(detail::any_is_ordered(false, x, at));
}
/// Whether each element is greater than the element before it, in row-major order: a scalar.
template <AllowedFor<Less> T>
Output<bool> is_strictly_increasing(const Output<T>& x, const At& at = {}) {
  return Output<bool>::unchecked(detail::any_is_ordered(true, x, at));
}

/// x, if it has this rank; nodes that read the result know the rank. Errors: as above, and InvalidArgument for a
/// negative rank.
template <AllowedFor<EnsureShape> T>
Output<T> assert_rank(const Output<T>& x, int rank, std::string_view message = {}, const At& at = {}) {
  return Output<T>::unchecked(detail::any_assert_rank(false, x, rank, message, at));
}
/// x, if it has this rank or a greater one.
template <AllowedFor<EnsureShape> T>
Output<T> assert_rank_at_least(const Output<T>& x, int rank, std::string_view message = {}, const At& at = {}) {
  return Output<T>::unchecked(detail::any_assert_rank(true, x, rank, message, at));
}

/// x itself. An edge without a static element type is checked when this is called.
///
/// Errors: InvalidArgument if x has another element type, with `message`.
AnyOutput assert_type(const AnyOutput& x, DType dtype, std::string_view message = {}, const At& at = {});
/// The same edge as an Output<T>.
template <Element T>
Output<T> assert_type(const AnyOutput& x, std::string_view message = {}, const At& at = {}) {
  return Output<T>::unchecked(assert_type(x, dtype_of<T>, message, at));
}
/// x itself, if its elements are integers. Errors: as `assert_type`.
AnyOutput assert_integer(const AnyOutput& x, std::string_view message = {}, const At& at = {});
template <Element T>
Output<T> assert_integer(const Output<T>& x, std::string_view message = {}, const At& at = {}) {
  return Output<T>::unchecked(assert_integer(static_cast<const AnyOutput&>(x), message, at));
}
/// Whether the elements of x are numbers: integers, or real or complex floating-point numbers.
bool is_numeric_tensor(const AnyOutput& x);

/// x, once a step has found that all its elements are finite. Unlike `check_numerics`, it does not check the gradient.
///
/// Errors: InvalidArgument when the step runs, as `check_numerics`.
template <AllowedFor<CheckNumerics> T>
Output<T> verify_tensor_all_finite(const Output<T>& x, std::string_view message = {}, const At& at = {}) {
  return Output<T>::unchecked(detail::any_verify_all_finite(x, message, at));
}

/// An operation that checks every floating-point edge which the graph has now, in the order in which they were built,
/// and so finds the first that is not finite. A step that runs it computes all these edges, so all placeholders must be
/// fed.
///
/// ```cpp
/// auto check = df::add_check_numerics_ops(graph);
/// session.run({{x, batch}}, train, check);
/// ```
/// The edges in bodies of `cond`, `while_loop` and functions are not checked.
/// Errors: InvalidArgument if the graph has control flow of the raw form (`frames`), as in TensorFlow; when the step
/// runs, as `check_numerics`. The error names the edge.
Operation add_check_numerics_ops(Graph& graph, const At& at = {});

}  // namespace dflow
