#pragma once

#include <dflow/base/shared_part.hpp>
#include <dflow/base/status.hpp>
#include <dflow/base/str_cat.hpp>
#include <dflow/data/calling.hpp>
#include <dflow/data/iterator.hpp>
#include <dflow/data/sources.hpp>
#include <dflow/data/steps/batch.hpp>
#include <dflow/data/steps/cache.hpp>
#include <dflow/data/steps/ignore_errors.hpp>
#include <dflow/data/steps/interleave.hpp>
#include <dflow/data/steps/parallel_map.hpp>
#include <dflow/data/steps/prefetch.hpp>
#include <dflow/data/steps/shuffle.hpp>
#include <dflow/data/steps/transforms.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace dflow::data {

template <class E>
class Dataset;

namespace detail {

template <class D>
struct ElementOf;
template <class E>
struct ElementOf<Dataset<E>> {
  using type = E;
};

template <class E>
constexpr Batching batching(std::optional<double> padding = {}) {
  return {&element_type<E>, &element_type<Batched<E>>, padding};
}

}  // namespace detail

/// A sequence of elements of any C++ type, as a recipe to make them. The recipe is cheap to copy and never changes. An
/// `Iterator`, or a range-based for, reads the elements.
///
/// ```cpp
/// auto data = df::data::from_tensors(images, labels).shuffle(10'000, {.seed = 1}).batch(128).prefetch(2);
/// for (auto& [x, y] : data) step(x, y);
/// ```
/// A function gets an element as it is or, for a pair or tuple, its members, by reference. Functions are called
/// through const, and by several threads if a step asks for it. They are not called for elements that are passed over,
/// so their result must depend on the element alone. The recipe keeps them.
///
/// Elements are values: writing into one never reaches the source, a cache or another element. A tensor that a function
/// or the body of a loop may write is copied first if something else holds its memory. A function that takes a
/// `const Tensor<T>&` gets the tensor without a copy. It must not write through a handle that it makes of it.
/// Tensors are found in pairs, tuples, arrays, optionals and containers. A class of your own says which tensors it
/// holds by a function in its namespace: `auto tensors_of(Sample& sample) { return std::tie(sample.image); }`.
///
/// Thread safety: immutable; iterators of one dataset are independent of one another.
/// Errors: InvalidArgument when an impossible step is added; the errors of `Iterator` when the dataset is read.
template <class E>
class Dataset {
 public:
  using element_type = E;

  /// Errors: InvalidArgument for a null recipe.
  explicit Dataset(SharedRecipe recipe) : recipe_(std::move(recipe)) {
    if (recipe_ == nullptr) throw_error(Status::invalid_argument("data: a dataset of no recipe"));
  }

  /// An iterator at the beginning of an epoch.
  Iterator<E> iterate(std::uint64_t epoch = 0) const { return Iterator<E>(recipe_, epoch); }
  /// The first epoch: `for (auto& [x, y] : data)`.
  ElementIterator<E> begin() const { return ElementIterator<E>(iterate()); }
  std::default_sentinel_t end() const noexcept { return {}; }
  /// The number of elements in an epoch, if it is known without reading them.
  std::optional<std::int64_t> size() const { return iterate().size(); }
  const SharedRecipe& recipe() const noexcept { return recipe_; }

  /// f of each element, in their order: `.map([](df::Tensor<float>& x, df::Tensor<int>& y) { return std::pair{...};
  /// })`.
  template <detail::FunctionOf<E> F>
  Dataset<detail::Called<E, F>> map(F f, MapOptions options = {}) const {
    auto apply = [f = std::make_shared<const F>(std::move(f))](Item item) {
      return Item::of<detail::Called<E, F>>(detail::call<E>(*f, item.get<E>()));
    };
    const bool is_plain = options.threads == 1 && options.ahead == 0 && !options.pool;
    return Dataset<detail::Called<E, F>>(is_plain ? map_recipe(recipe_, std::move(apply))
                                                  : parallel_map_recipe(recipe_, std::move(apply), std::move(options)));
  }
  /// The elements for which f is true.
  template <detail::FunctionOf<const E> F>
  Dataset filter(F f) const {
    return Dataset(filter_recipe(recipe_, [f = std::make_shared<const F>(std::move(f))](const Item& item) -> bool {
      return detail::ask<bool, E>(*f, item.get<E>());
    }));
  }
  /// Reads the datasets that f makes of the elements, several of them in turn.
  template <detail::FunctionOf<E> F>
  auto interleave(F f, InterleaveOptions options = {}) const {
    using Inner = typename detail::ElementOf<detail::Called<E, F>>::type;
    return Dataset<Inner>(interleave_recipe(
        recipe_,
        [f = std::make_shared<const F>(std::move(f))](Item item) -> SharedRecipe {
          return detail::call<E>(*f, item.get<E>()).recipe();
        },
        options));
  }
  /// The same, one dataset after the other.
  template <detail::FunctionOf<E> F>
  auto flat_map(F f) const {
    return interleave(std::move(f), {.cycle = 1});
  }

  // The steps below that take a number of elements refuse 0 and negative numbers (-1 as unsigned): InvalidArgument.

  /// The elements in random order, drawn from `buffer` elements at a time: data/steps/shuffle.hpp.
  Dataset shuffle(std::uint64_t buffer, ShuffleOptions options = {}) const {
    return Dataset(shuffle_recipe(recipe_, buffer, options));
  }
  /// Makes n elements one: n of Tensor<T> [...] become a Tensor<T> [n, ...], n numbers T a Tensor<T> [n], and n tuples
  /// a tuple of batches. Rows that lie side by side in one tensor stay there; all other rows are copied once.
  auto batch(std::uint64_t n, BatchOptions options = {}) const {
    require_tensors();
    return Dataset<Batched<E>>(batch_recipe(recipe_, n, options.drop_remainder, detail::batching<E>()));
  }
  /// The same for tensors of different extents, filled up to the largest extents of each batch.
  auto padded_batch(std::uint64_t n, PaddedBatchOptions options = {}) const {
    require_tensors();
    return Dataset<Batched<E>>(batch_recipe(recipe_, n, options.drop_remainder, detail::batching<E>(options.padding)));
  }
  /// Padded batches of elements of about one length; f gives the length: data/steps/batch.hpp.
  template <detail::FunctionOf<const E> F>
  auto bucket_by_length(F f, BucketOptions options) const {
    require_tensors();
    const Batching batching = detail::batching<E>(options.padding);
    auto length = [f = std::make_shared<const F>(std::move(f))](const Item& item) {
      return detail::ask<std::int64_t, E>(*f, item.get<E>());
    };
    return Dataset<Batched<E>>(bucket_recipe(recipe_, std::move(length), std::move(options), batching));
  }
  /// n consecutive elements as a vector. By default each element is in one window, and the last window may have fewer
  /// elements. Elements that only move are in one window each. Errors also: InvalidArgument for such elements if the
  /// shift is less than n.
  Dataset<std::vector<E>> window(std::uint64_t n, WindowOptions options = {}) const {
    if (!CopyableElement<E> && options.shift.value_or(n) < n) {
      throw_error(Status::invalid_argument(str_cat(
          "data: windows of ", n, " elements with a shift of ", *options.shift,
          " have elements in common, and these elements cannot be copied; a shift of the window's size will do")));
    }
    return Dataset<std::vector<E>>(window_recipe(recipe_, n, options, [](std::vector<Item> items) {
      std::vector<E> elements;
      elements.reserve(items.size());
      for (Item& item : items) elements.push_back(std::move(item.get<E>()));
      return Item::of(std::move(elements));
    }));
  }

  /// Leaves out the elements that the steps before cannot make: data/steps/ignore_errors.hpp.
  ///
  /// ```cpp
  /// auto good = records.map(parse).ignore_errors({.limit = 100}).batch(32);
  /// ```
  Dataset ignore_errors(IgnoreErrorsOptions options = {}) const {
    return Dataset(ignore_errors_recipe(recipe_, std::move(options)));
  }
  /// Reads up to n elements ahead, in a thread of the iterator's own: data/steps/prefetch.hpp.
  Dataset prefetch(std::uint64_t n) const { return Dataset(prefetch_recipe(recipe_, n)); }
  /// Keeps elements in memory once they have been read: data/steps/cache.hpp. The dataset before the cache is read
  /// once, as its first epoch.
  Dataset cache() const {
    static_assert(CopyableElement<E>, "cache() keeps elements and gives copies of them: they have to be copyable");
    return Dataset(cache_recipe(recipe_));
  }

  /// Repeats the dataset n times, each time in the order of another epoch. Without a number it is endless.
  Dataset repeat(std::uint64_t n) const { return Dataset(repeat_recipe(recipe_, n)); }
  Dataset repeat() const { return Dataset(repeat_recipe(recipe_, std::nullopt)); }
  Dataset take(std::uint64_t n) const { return Dataset(take_recipe(recipe_, n)); }
  Dataset skip(std::uint64_t n) const { return Dataset(skip_recipe(recipe_, n)); }
  Dataset concatenate(const Dataset& more) const { return Dataset(concatenate_recipe(recipe_, more.recipe_)); }
  /// Each element with its number, which begins at 0 in each epoch.
  Dataset<std::pair<std::int64_t, E>> enumerate() const {
    return Dataset<std::pair<std::int64_t, E>>(zip_recipe({counting_source(), recipe_}, [](std::vector<Item>& items) {
      return Item::of(std::pair<std::int64_t, E>(items[0].get<std::int64_t>(), std::move(items[1].get<E>())));
    }));
  }

 private:
  static constexpr void require_tensors() {
    static_assert(MadeOfTensors<E>,
                  "batches are made of tensors, numbers, strings, and pairs and tuples of them: map the "
                  "elements to one of these first");
  }

  SharedPart<const Recipe> recipe_;
};

/// An element of each dataset, as a tuple, until the first dataset ends.
template <class... Es>
  requires(sizeof...(Es) > 0)
Dataset<std::tuple<Es...>> zip(const Dataset<Es>&... datasets) {
  return Dataset<std::tuple<Es...>>(zip_recipe({datasets.recipe()...}, [](std::vector<Item>& items) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return Item::of(std::tuple<Es...>(std::move(items[I].template get<Es>())...));
    }(std::index_sequence_for<Es...>());
  }));
}

}  // namespace dflow::data
