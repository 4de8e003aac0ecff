#pragma once

#include <dflow/base/status.hpp>
#include <dflow/core/tensor.hpp>
#include <dflow/data/own_tensors.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace dflow::data {

/// How elements of a C++ type are made of tensors, if they are. An element can be a Tensor<T>, an AnyTensor, a number
/// or string (a scalar), or a pair or tuple of these.
template <class E>
struct Parts {
  static constexpr std::size_t count = 0;  ///< not made of tensors
  using Batched = E;                       ///< so that the first error gives this reason
  using Elements = TypeList<>;
};

/// The element type of a batch: each tensor gets one dimension more, and each number becomes a tensor.
template <class E>
using Batched = typename Parts<E>::Batched;

/// Elements that batches can be made of.
template <class E>
concept MadeOfTensors = Parts<E>::count > 0;

template <Element T>
struct Parts<T> {
  using Batched = Tensor<T>;
  using Elements = TypeList<T>;  ///< of its tensors, in their order
  static constexpr std::size_t count = 1;
  static void split(T& element, AnyTensor* tensors) {
    Tensor<T> scalar{Shape()};
    *scalar.data() = std::move(element);
    *tensors = std::move(scalar).any();
  }
  static T join(AnyTensor* tensors) { return Tensor<T>(*tensors).scalar(); }
};

template <Element T>
struct Parts<Tensor<T>> {
  using Batched = Tensor<T>;
  using Elements = TypeList<T>;
  static constexpr std::size_t count = 1;
  static void split(Tensor<T>& element, AnyTensor* tensors) { *tensors = std::move(element).any(); }
  static Tensor<T> join(AnyTensor* tensors) { return Tensor<T>(std::move(*tensors)); }
};

template <>
struct Parts<AnyTensor> {
  using Batched = AnyTensor;
  using Elements = TypeList<AnyTensor>;
  static constexpr std::size_t count = 1;
  static void split(AnyTensor& element, AnyTensor* tensors) { *tensors = std::move(element); }
  static AnyTensor join(AnyTensor* tensors) { return std::move(*tensors); }
};

namespace detail {

/// The shared part of pairs and tuples: the tensors of each member follow the tensors of the member before.
template <class E, class B, class... Members>
struct MemberParts {
  using Batched = B;
  using Elements = concat_t<typename Parts<Members>::Elements...>;
  static constexpr std::size_t count = (Parts<Members>::count + ...);
  static void split(E& element, AnyTensor* tensors) {
    std::apply(
        [&](Members&... member) { ((Parts<Members>::split(member, tensors), tensors += Parts<Members>::count), ...); },
        element);
  }
  static E join(AnyTensor* tensors) {
    const auto next = [&]<class M>(std::type_identity<M>) {
      AnyTensor* const of_member = std::exchange(tensors, tensors + Parts<M>::count);
      return Parts<M>::join(of_member);
    };
    return E{next(std::type_identity<Members>())...};  // in braces the members are made in their order
  }
};

}  // namespace detail

template <MadeOfTensors A, MadeOfTensors B>
struct Parts<std::pair<A, B>> : detail::MemberParts<std::pair<A, B>, std::pair<Batched<A>, Batched<B>>, A, B> {};
template <MadeOfTensors... Es>
  requires(sizeof...(Es) > 0)
struct Parts<std::tuple<Es...>> : detail::MemberParts<std::tuple<Es...>, std::tuple<Batched<Es>...>, Es...> {};

namespace detail {
template <class E>
inline constexpr bool is_copyable = std::copy_constructible<E>;
/// A standard container has a copy constructor even if its elements cannot be copied. The constructor is an error only
/// when it is used.
template <class E>
  requires requires {
    typename E::value_type;
    typename E::allocator_type;
  }
inline constexpr bool is_copyable<E> = std::copy_constructible<E> && is_copyable<typename E::value_type>;
}  // namespace detail

/// A type that can be copied, and holds nothing that cannot.
template <class E>
concept CopyableElement = detail::is_copyable<E>;

/// The C++ type of elements, for function bodies that are no templates.
struct ElementType {
  void (*destroy)(void* element) noexcept;
  /// A copy on the heap; null for a type that only moves.
  void* (*copy)(const void* element);
  /// 0 if elements are not made of tensors; `split` and `join` are null then.
  std::size_t num_tensors;
  /// Moves the element's tensors to `tensors`.
  void (*split)(void* element, AnyTensor* tensors);
  /// Makes an element on the heap from `tensors`, which are moved from.
  void* (*join)(AnyTensor* tensors);
  /// Makes the element the owner of its tensors; null for a type without tensors.
  void (*unshare)(void* element);
};

namespace detail {
template <class E>
constexpr ElementType make_element_type() {
  ElementType type{[](void* element) noexcept { delete static_cast<E*>(element); },
                   nullptr,
                   Parts<E>::count,
                   nullptr,
                   nullptr,
                   nullptr};
  if constexpr (CopyableElement<E>) {
    type.copy = [](const void* element) -> void* { return new E(*static_cast<const E*>(element)); };
  }
  if constexpr (MadeOfTensors<E>) {
    type.split = [](void* element, AnyTensor* tensors) { Parts<E>::split(*static_cast<E*>(element), tensors); };
    type.join = [](AnyTensor* tensors) -> void* { return new E(Parts<E>::join(tensors)); };
  }
  if constexpr (holds_tensors<E>) {
    type.unshare = [](void* element) { detail::unshare_element(*static_cast<E*>(element)); };
  }
  return type;
}
}  // namespace detail

template <class E>
inline constexpr ElementType element_type = detail::make_element_type<E>();

/// One element of a dataset, of any C++ type, on the heap. Streams hand items on. An item is empty by default and
/// after a move. An item may be a failure: it stands for an element that could not be made, and holds the error.
///
/// Thread safety: distinct objects may be used from distinct threads.
class Item {
 public:
  Item() noexcept = default;
  /// Takes over an element that `type` describes.
  Item(const ElementType& type, void* element) noexcept : type_(&type), element_(element) {}
  template <class E>
  static Item of(E element) {
    return {element_type<E>, new E(std::move(element))};
  }
  /// Stands for the exception that is being handled, which was thrown when `step` made its element `number`: errors
  /// of the library and the standard exceptions with a text of their own get "in step map, element 17: " before it.
  static Item failure_in(std::string_view step, std::uint64_t number);
  /// The same for a source whose errors say themselves where they were.
  static Item failure();
  Item(Item&& other) noexcept : type_(other.type_), element_(std::exchange(other.element_, nullptr)) {}
  Item& operator=(Item&& other) noexcept {
    std::swap(type_, other.type_);
    std::swap(element_, other.element_);
    return *this;
  }
  ~Item() {
    if (element_ != nullptr) type_->destroy(element_);
  }

  bool is_empty() const noexcept { return element_ == nullptr; }
  bool is_failure() const noexcept;
  /// Throws the error of a failure, with the type that it was thrown with.
  void throw_failure() const;
  /// The error of a failure, which always names step and element. Ok for another item.
  Status failure_status() const;
  Item copy() const { return {*type_, type_->copy(element_)}; }
  /// The element. The caller must know its type.
  template <class E>
  E& get() noexcept {
    return *static_cast<E*>(element_);
  }
  template <class E>
  const E& get() const noexcept {
    return *static_cast<const E*>(element_);
  }
  /// Moves the element's tensors to `tensors`, `num_tensors` of its type.
  void split(AnyTensor* tensors) { type_->split(element_, tensors); }
  /// Makes the element the owner of its tensors: whoever writes them then reaches nothing else. Tensors that nothing
  /// else holds stay as they are. Errors: ResourceExhausted if memory runs out.
  void unshare() {
    if (element_ != nullptr && type_->unshare != nullptr) type_->unshare(element_);
  }

 private:
  const ElementType* type_ = nullptr;
  void* element_ = nullptr;
};

}  // namespace dflow::data
