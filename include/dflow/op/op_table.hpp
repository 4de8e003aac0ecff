#pragma once

/// Public: tables of ops: the library's table, and tables with ops of your own.

#include <dflow/base/function_ref.hpp>
#include <dflow/op/derivative.hpp>
#include <dflow/op/op.hpp>
#include <dflow/op/op_def_of.hpp>

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace dflow {

/// The ops that a session or an import knows: a sorted table made by the compiler. It says nothing of devices; kernels
/// stand in tables of their own (`kernels/contract/kernel_table.hpp`).
///
/// Thread safety: immutable.
class OpTable {
 public:
  constexpr explicit OpTable(std::span<const OpDef* const> ops) : ops_(ops) {}
  /// Errors: InvalidArgument if an op has the same name as an op of the parent.
  OpTable(std::span<const OpDef* const> ops, const OpTable* parent);

  /// Null if the table has no such op.
  const OpDef* find(std::string_view name) const noexcept;
  /// Calls `visit` for every op, parents' first, each part in order of names.
  void for_each(FunctionRef<void(const OpDef&)> visit) const;
  std::size_t size() const noexcept;
  /// A hash of the signatures and all names, including the names of type parameters and attributes. Two processes with
  /// different fingerprints must not exchange graphs.
  std::uint64_t fingerprint() const noexcept;

 private:
  std::span<const OpDef* const> ops_;
  const OpTable* parent_ = nullptr;
};

/// The table of all ops of the library.
const OpTable& standard_op_table() noexcept;

namespace detail {

/// An op with the derivatives that its gradient builds.
template <class O, bool derives = derives_gradient<O>()>
struct WithDerivatives {
  using type = TypeList<O>;
};
template <class... Lists>
struct Concatenated {
  using type = decltype((TypeList<>{} + ... + Lists{}));
};
/// Joins eight lists at a time: clang takes folds of up to 256.
template <class A, class B, class C, class D, class E, class F, class G, class H, class Next, class... Rest>
struct Concatenated<A, B, C, D, E, F, G, H, Next, Rest...> {
  using type = typename Concatenated<decltype(A{} + B{} + C{} + D{} + E{} + F{} + G{} + H{}),
                                     typename Concatenated<Next, Rest...>::type>::type;
};
template <class O, class Indices>
struct DerivativesOf;
template <class O, std::size_t... I>
struct DerivativesOf<O, std::index_sequence<I...>> {
  using type =
      typename Concatenated<TypeList<O>, typename WithDerivatives<Derivative<O, static_cast<int>(I)>>::type...>::type;
};
template <class O>
struct WithDerivatives<O, true> {
  using type = typename DerivativesOf<O, ArgumentsOf<O>>::type;
};

/// The ops of a list, each with its derivatives.
template <class List>
struct WithAllDerivatives;
template <class... Ops>
struct WithAllDerivatives<TypeList<Ops...>> : Concatenated<typename WithDerivatives<Ops>::type...> {};

/// Sorts in few steps, because compilers limit the steps of a constant expression: merges halves, from single entries
/// up. Entries of one name stay in their order. (<algorithm> costs each user 0.1 s to parse.)
template <class Entry, std::size_t n>
constexpr void sort_by_name(std::array<Entry, n>& entries, auto name) {
  std::array<std::size_t, n> order{}, merged{};
  for (std::size_t i = 0; i < n; ++i) order[i] = i;
  for (std::size_t width = 1; width < n; width *= 2) {
    for (std::size_t begin = 0; begin < n; begin += 2 * width) {
      const std::size_t middle = begin + width < n ? begin + width : n, end = middle + width < n ? middle + width : n;
      std::size_t left = begin, right = middle;
      for (std::size_t to = begin; to < end; ++to) {
        const bool takes_right =
            left == middle || (right < end && name(entries[order[right]]).compare(name(entries[order[left]])) < 0);
        merged[to] = order[takes_right ? right++ : left++];
      }
    }
    order = merged;
  }
  const std::array<Entry, n> unsorted = entries;
  for (std::size_t i = 0; i < n; ++i) entries[i] = unsorted[order[i]];
}

template <class List>
struct SortedOps;
template <class... Ops>
struct SortedOps<TypeList<Ops...>> {
  static constexpr auto ops = [] {
    std::array<const OpDef*, sizeof...(Ops)> sorted{&op_def<Ops>...};
    sort_by_name(sorted, [](const OpDef* op) { return op->name; });
    return sorted;
  }();
  static constexpr bool has_duplicates = [] {
    for (std::size_t i = 1; i < ops.size(); ++i) {
      if (ops[i - 1]->name == ops[i]->name) return true;
    }
    return false;
  }();
  static_assert(!has_duplicates, "two ops of one table have the same name");
};

}  // namespace detail

/// A list of ops as a value. `df::ops<MatMul, Relu>` is a small table that links a small binary.
/// `df::standard_ops + df::ops<Swish>` has the library's ops and one more.
template <bool with_standard, class... Ops>
struct OpList {
  // NOLINTNEXTLINE(google-explicit-constructor): a list of ops is a table
  operator OpTable() const {
    using Sorted =
        detail::SortedOps<typename detail::Concatenated<typename detail::WithDerivatives<Ops>::type...>::type>;
    return OpTable(Sorted::ops, with_standard ? standard_parent() : nullptr);
  }

 private:
  static const OpTable* standard_parent() {
    if constexpr (with_standard) {
      return &standard_op_table();
    } else {
      return nullptr;
    }
  }
};

template <bool a, class... As, bool b, class... Bs>
constexpr OpList<(a || b), As..., Bs...> operator+(OpList<a, As...>, OpList<b, Bs...>) {
  return {};
}

template <OpType... Ops>
inline constexpr OpList<false, Ops...> ops{};

/// Every op of the library.
inline constexpr OpList<true> standard_ops{};

}  // namespace dflow
