#pragma once

#include <dflow/data/dataset.hpp>

#include <concepts>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace dflow::data {

/// The rows of a tensor [rows, ...]: elements of shape [...] that share its memory.
///
/// Errors: InvalidArgument for a scalar.
template <Element T>
Dataset<Tensor<T>> from_tensors(const Tensor<T>& rows) {
  return Dataset<Tensor<T>>(row_source({rows}, element_type<Tensor<T>>));
}
/// Row i of each tensor, as a tuple: images and labels. Errors: InvalidArgument also for different numbers of rows.
template <Element... Ts>
  requires(sizeof...(Ts) > 1)
Dataset<std::tuple<Tensor<Ts>...>> from_tensors(const Tensor<Ts>&... rows) {
  return Dataset<std::tuple<Tensor<Ts>...>>(row_source({rows...}, element_type<std::tuple<Tensor<Ts>...>>));
}

/// The elements of a vector; each pass gives copies of them.
template <class E>
Dataset<E> from_vector(std::vector<E> elements) {
  static_assert(
      CopyableElement<E>,
      "from_vector() gives copies of the elements: they have to be copyable; from_generator() makes new ones");
  const auto shared = std::make_shared<const std::vector<E>>(std::move(elements));
  return Dataset<E>(indexed_source("vector", shared->size(), [shared](std::uint64_t i) {
    return Item::of<E>((*shared)[static_cast<std::size_t>(i)]);
  }));
}

namespace detail {

// Range concepts of <ranges>, written with <iterator> alone, since <ranges> costs 0.1 s to parse.
template <class R>
using IteratorOf = decltype(std::ranges::begin(std::declval<R&>()));
template <class R>
concept InputRange = std::input_iterator<IteratorOf<R>> && requires(R& range) { std::ranges::end(range); };
template <class R>
concept IndexedRange = std::random_access_iterator<IteratorOf<R>> && requires(R& range) { std::ranges::size(range); };

}  // namespace detail

/// The elements of a range, which is copied, or moved in. A view is cheap to copy, but the elements that it refers to
/// have to live as long as the dataset. With `<ranges>`: `from_range(std::views::iota(0, 100))`.
template <class R>
  requires detail::InputRange<R>
auto from_range(R&& range) {
  using Kept = std::remove_cvref_t<R>;
  static_assert(detail::InputRange<const Kept>,
                "this range can be read only once at a time (filter_view, istream_view): copy it into a std::vector");
  using E = std::iter_value_t<detail::IteratorOf<const Kept>>;
  const auto shared = std::make_shared<const Kept>(std::forward<R>(range));
  if constexpr (detail::IndexedRange<const Kept>) {
    const auto size = static_cast<std::uint64_t>(std::ranges::size(*shared));
    return Dataset<E>(indexed_source("range", size, [shared](std::uint64_t i) {
      return Item::of<E>(
          std::ranges::begin(*shared)[static_cast<std::iter_difference_t<detail::IteratorOf<const Kept>>>(i)]);
    }));
  } else {
    return Dataset<E>(generated_source("range", [shared]() -> std::function<Item()> {
      return [shared, at = std::make_shared<decltype(std::ranges::begin(*shared))>(std::ranges::begin(*shared))] {
        if (*at == std::ranges::end(*shared)) return Item();
        Item item = Item::of<E>(**at);
        ++*at;
        return item;
      };
    }));
  }
}

/// The elements that a generator gives, until it gives none. For each pass `begin` makes a generator, a function
/// without arguments that returns std::optional<E>. Each generator must give the same elements. To restore a state, a
/// generator is read from its beginning.
///
/// ```cpp
/// auto squares = df::data::from_generator([] {
///   return [i = 0]() mutable -> std::optional<int> { return ++i < 10 ? std::optional(i * i) : std::nullopt; };
/// });
/// ```
template <class F>
  requires std::invocable<const F&> && std::invocable<std::invoke_result_t<const F&>&>
auto from_generator(F begin) {
  using Generator = std::decay_t<std::invoke_result_t<const F&>>;
  using E = typename std::invoke_result_t<Generator&>::value_type;
  return Dataset<E>(
      generated_source("generator", [begin = std::make_shared<const F>(std::move(begin))]() -> std::function<Item()> {
        return [generate = std::make_shared<Generator>((*begin)())] {
          std::optional<E> element = (*generate)();
          return element ? Item::of<E>(*std::move(element)) : Item();
        };
      }));
}

}  // namespace dflow::data
