#pragma once

/// Public: tensors of one element type.

#include <dflow/core/any_tensor.hpp>
#include <dflow/core/nested_elements.hpp>
#include <dflow/core/tensor_view.hpp>

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <type_traits>

namespace dflow {

namespace detail {
[[noreturn]] void throw_wrong_count(const Shape& shape, std::size_t count);
[[noreturn]] void throw_not_scalar(const Shape& shape);
[[noreturn]] void throw_wrong_rank(const Shape& shape, int wanted);

/// The shape with these extents.
template <class I, std::size_t n>
Shape shape_of_dims(const I (&dims)[n]) {
  std::int64_t extents[n];
  for (std::size_t i = 0; i < n; ++i) extents[i] = static_cast<std::int64_t>(dims[i]);
  return Shape(std::span<const std::int64_t>(extents, n));
}

/// A range with elements from which a T can be constructed.
template <class R, class T>
concept RangeOf = requires(const R& range) {
  std::begin(range);
  std::end(range);
  requires std::is_constructible_v<T, decltype(*std::begin(range))>;
} && !std::is_convertible_v<const R&, Shape> && !std::is_base_of_v<AnyTensor, R>;
}  // namespace detail

/// A dense row-major tensor of elements of type T.
///
/// ```cpp
/// df::Tensor<float> t({2, 3}, {1, 2, 3, 4, 5, 6});
/// df::Tensor<float> same({{1, 2, 3}, {4, 5, 6}});
/// t(1, 2) = 7;
/// for (float x : t.span()) sum += x;
/// ```
///
/// It is an AnyTensor with an element type that the compiler knows, and has no members of its own. A copy is a handle
/// to the same elements (`copy` makes new ones). An AnyTensor of the right type can be used as a Tensor<T> in place
/// (`Tensor<T>::of`): kernels get their typed arguments this way at no cost.
///
/// Thread safety and errors: as for AnyTensor.
template <Element T>
class Tensor : public AnyTensor {
 public:
  using value_type = T;
  static constexpr DType element_dtype = dtype_of<T>;

  Tensor() noexcept = default;
  /// Uninitialised numbers, empty strings.
  explicit Tensor(const Shape& shape, Allocator& allocator = default_cpu_allocator())
      : AnyTensor(dtype_of<T>, shape, allocator) {}
  /// The same for integers in braces: `Tensor<int>({64})` has 64 elements, of whatever type.
  template <std::integral I, std::size_t n>
    requires(!std::is_same_v<I, bool> && !std::is_same_v<I, char>)
  explicit Tensor(const I (&dims)[n]) : Tensor(detail::shape_of_dims(dims)) {}
  /// A scalar, from any type that converts to T without narrowing. Implicit, so that `run({{x, 3.0f}})` works.
  template <class U>
    requires(!std::is_base_of_v<AnyTensor, U> && !std::is_same_v<U, Shape> && requires(U u) { T{u}; })
  Tensor(U value) : Tensor(Shape()) {
    *data() = T{std::move(value)};
  }
  /// Errors: InvalidArgument if there are not as many values as the shape has elements.
  Tensor(const Shape& shape, std::initializer_list<T> values)
      : Tensor(shape, std::span<const T>(values.begin(), values.size())) {}
  Tensor(const Shape& shape, std::span<const T> values) : Tensor(shape) {
    if (values.size() != static_cast<std::size_t>(num_elements())) detail::throw_wrong_count(shape, values.size());
    T* to = data();
    for (const T& value : values) *to++ = value;
  }
  template <detail::RangeOf<T> R>
    requires(!std::is_convertible_v<const R&, std::span<const T>>)
  Tensor(const Shape& shape, const R& values) : Tensor(shape) {
    const auto count = static_cast<std::size_t>(std::distance(std::begin(values), std::end(values)));
    if (count != static_cast<std::size_t>(num_elements())) detail::throw_wrong_count(shape, count);
    T* to = data();
    for (auto&& value : values) *to++ = T(value);
  }
  /// The elements in nested braces: braces in braces are rows, as deep as the rank, and never a shape and its elements.
  /// Implicit, so that `run({{x, {{1, 2}, {3, 4}}}})` works.
  ///
  /// Errors: InvalidArgument if rows side by side have different shapes, or T cannot hold a number.
  Tensor(std::initializer_list<std::initializer_list<NestedElements<T>>> rows)
      : Tensor(of_elements(NestedElements<T>::of_rows(rows))) {}
  /// The elements of a strided view, copied.
  template <MdspanLike M>
    requires std::is_same_v<std::remove_const_t<typename M::element_type>, T>
  static Tensor from_view(const M& view);

  /// A view of the same elements. Errors: InvalidArgument that names both types if `any` holds another type.
  explicit Tensor(const AnyTensor& any) : AnyTensor(any) { require_dtype(dtype_of<T>); }
  explicit Tensor(AnyTensor&& any) : AnyTensor((any.require_dtype(dtype_of<T>), std::move(any))) {}

  static Tensor full(const Shape& shape, const T& value) {
    Tensor tensor(shape);
    for (T& element : tensor) element = value;
    return tensor;
  }
  static Tensor zeros(const Shape& shape) { return full(shape, T()); }
  /// A tensor of elements that were written in braces. Errors: `elements.status()`.
  static Tensor of_elements(const NestedElements<T>& elements) {
    throw_if_error(elements.status());
    return Tensor(elements.shape(), elements.elements());
  }

  /// `any` as a Tensor<T>, with an assertion as the only check. Sound because Tensor<T> adds nothing to AnyTensor.
  static const Tensor& of(const AnyTensor& any) noexcept {
    assert(any.dtype() == dtype_of<T>);
    return static_cast<const Tensor&>(any);
  }
  static Tensor& of(AnyTensor& any) noexcept {
    assert(any.dtype() == dtype_of<T>);
    return static_cast<Tensor&>(any);
  }

  const AnyTensor& any() const& noexcept { return *this; }
  AnyTensor any() && noexcept { return std::move(*this); }

  T* data() noexcept { return static_cast<T*>(raw_data()); }
  const T* data() const noexcept { return static_cast<const T*>(raw_data()); }
  /// The elements in row-major order; none if uninitialised.
  std::span<T> span() noexcept { return {data(), count()}; }
  std::span<const T> span() const noexcept { return {data(), count()}; }
  T* begin() noexcept { return data(); }
  T* end() noexcept { return data() + count(); }
  const T* begin() const noexcept { return data(); }
  const T* end() const noexcept { return data() + count(); }

  /// The element at these indices; their number and range are asserted.
  template <std::integral... Index>
  T& operator()(Index... index) noexcept {
    return data()[offset_of(index...)];
  }
  template <std::integral... Index>
  const T& operator()(Index... index) const noexcept {
    return data()[offset_of(index...)];
  }

  /// The only element. Errors: InvalidArgument if there is not exactly one.
  const T& scalar() const {
    if (num_elements() != 1 || raw_data() == nullptr) [[unlikely]]
      detail::throw_not_scalar(shape());
    return *data();
  }

  /// A view for `view(i, j)` and strided access. Errors: InvalidArgument if the rank is different.
  template <int Rank>
  TensorView<T, Rank> view() {
    return {data(), extents<Rank>()};
  }
  template <int Rank>
  TensorView<const T, Rank> view() const {
    return {data(), extents<Rank>()};
  }

  Tensor slice(std::int64_t begin, std::int64_t end) const { return Tensor(AnyTensor::slice(begin, end)); }
  Tensor reshaped(const Shape& shape) const { return Tensor(AnyTensor::reshaped(shape)); }
  Tensor deep_copy(Allocator& allocator = default_cpu_allocator()) const {
    return Tensor(AnyTensor::deep_copy(allocator));
  }
  Tensor copy() const { return deep_copy(); }

 private:
  std::size_t count() const noexcept { return data() == nullptr ? 0 : static_cast<std::size_t>(num_elements()); }
  template <class... Index>
  std::int64_t offset_of(Index... index) const noexcept {
    assert(static_cast<int>(sizeof...(Index)) == rank());
    std::int64_t offset = 0;
    [[maybe_unused]] int i = 0;
    ((assert(static_cast<std::int64_t>(index) >= 0 && static_cast<std::int64_t>(index) < dim(i)),
      offset = offset * shape().begin()[i] + static_cast<std::int64_t>(index), ++i),
     ...);
    return offset;
  }
  template <int Rank>
  typename TensorView<T, Rank>::Extents extents() const {
    if (rank() != Rank) detail::throw_wrong_rank(shape(), Rank);
    typename TensorView<T, Rank>::Extents extents{};
    for (int i = 0; i < Rank; ++i) extents[static_cast<std::size_t>(i)] = dim(i);
    return extents;
  }
};

template <Element T>
template <MdspanLike M>
  requires std::is_same_v<std::remove_const_t<typename M::element_type>, T>
Tensor<T> Tensor<T>::from_view(const M& view) {
  constexpr auto rank = static_cast<std::size_t>(M::rank());
  std::array<std::int64_t, rank> extents{};
  for (std::size_t i = 0; i < rank; ++i) extents[i] = static_cast<std::int64_t>(view.extent(i));
  Tensor tensor{Shape(std::span<const std::int64_t>(extents))};
  std::array<std::int64_t, rank> index{};
  const T* from = view.data_handle();
  for (T& to : tensor) {
    to = *from;
    for (std::size_t i = rank; i-- > 0;) {
      const auto stride = static_cast<std::int64_t>(view.stride(i));
      if (++index[i] < extents[i]) {
        from += stride;
        break;
      }
      from -= stride * (extents[i] - 1);
      index[i] = 0;
    }
  }
  return tensor;
}

template <Element T>
Tensor<T> AnyTensor::as() const& {
  return Tensor<T>(*this);
}
template <Element T>
Tensor<T> AnyTensor::as() && {
  return Tensor<T>(std::move(*this));
}

namespace detail {
template <Element T>
Tensor<T> tensor_over(std::span<T> elements, const Shape& shape, UniqueFunction<void()> release, Lending lending) {
  if (elements.size() != static_cast<std::size_t>(shape.num_elements())) throw_wrong_count(shape, elements.size());
  return Tensor<T>(
      AnyTensor::adopt(dtype_of<T>, shape, elements.data(), elements.size_bytes(), std::move(release), lending));
}
}  // namespace detail

/// A tensor over the caller's memory, without a copy. Kernels read the memory and neither write nor keep it. The caller
/// keeps it alive until `release` is called or, if `release` is empty, until every handle to the tensor is gone.
/// Errors: InvalidArgument if the sizes do not agree.
template <Element T>
Tensor<T> borrow(std::span<T> elements, const Shape& shape, UniqueFunction<void()> release = {}) {
  return detail::tensor_over(elements, shape, std::move(release), Lending::view);
}

/// The same for memory that must not be written: holders of the tensor do not write it either.
template <Element T>
Tensor<T> borrow(std::span<const T> elements, const Shape& shape, UniqueFunction<void()> release = {}) {
  return detail::tensor_over(std::span(const_cast<T*>(elements.data()), elements.size()), shape, std::move(release),
                             Lending::read_only);
}

/// A tensor over memory that the caller gives away. The library owns the memory until `release` is called: it may write
/// results there and keep the memory, for example as a variable's value. Errors: InvalidArgument if the sizes do not
/// agree.
template <Element T>
Tensor<T> adopt(std::span<T> elements, const Shape& shape, UniqueFunction<void()> release) {
  return detail::tensor_over(elements, shape, std::move(release), Lending::given);
}

/// From any contiguous range of elements: `borrow(vector, {2, 3})`.
template <class R>
  requires requires(R& range) {
    std::span(range);
    requires Element<std::remove_const_t<typename decltype(std::span(range))::element_type>>;
  } && (!std::is_rvalue_reference_v<R &&>)
auto borrow(R&& elements, const Shape& shape, UniqueFunction<void()> release = {}) {
  return borrow(std::span<typename decltype(std::span(elements))::element_type>(elements), shape, std::move(release));
}

}  // namespace dflow
